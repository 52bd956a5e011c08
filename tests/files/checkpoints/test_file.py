import json

import numpy as np
import pytest
from safetensors import numpy as library

from neural_brane.errors import CheckpointError
from neural_brane.files import tensors
from neural_brane.files.checkpoints import CHECKPOINT

ARRAYS = {
    "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
    "turned": np.arange(6.0).reshape(2, 3).T,
    "counts": np.arange(4),
    "none": np.zeros((0, 5), np.float32),
}


@pytest.fixture
def path(tmp_path):
    tensors.write(tmp_path / "a.checkpoint", CHECKPOINT, {"seed": 3, "losses": [0.1, 1e-300]}, ARRAYS)
    return tmp_path / "a.checkpoint"


def test_what_is_written_is_read(path):
    about, arrays = tensors.read(path, CHECKPOINT)
    assert about == {"seed": 3, "losses": [0.1, 1e-300]}
    assert list(arrays) == list(ARRAYS)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype
    assert tensors.read_about(path, CHECKPOINT) == about


def test_it_is_a_safetensors_file(path):
    for name, array in library.load_file(path).items():
        np.testing.assert_array_equal(array, ARRAYS[name])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no tensors here",
        b"\xff" * 7 + b"\x7f" + b"{}" * 90,
        (2).to_bytes(8, "little") + b"{}",
        (4).to_bytes(8, "little") + b"null",
        (22).to_bytes(8, "little") + b'{"__metadata__":{"a":1}}',
    ],
)
def test_a_file_of_another_kind_is_refused(content, tmp_path):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        tensors.read(tmp_path / "a", CHECKPOINT)
    assert tensors.read_about(tmp_path / "a", CHECKPOINT) == {}


def with_header(path, change):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    change(header)
    new = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(len(new).to_bytes(8, "little") + new + content[8 + size :])


@pytest.mark.parametrize("shape", [[2**60, 3], [-2, -3], [2.0, 3], "23", None, [3, 2]])
def test_wrong_sizes_in_the_header_are_refused_before_memory_is_allocated(path, shape):
    with_header(path, lambda header: header["floats"].update(shape=shape))
    with pytest.raises(CheckpointError, match="damaged"):
        tensors.read(path, CHECKPOINT)


def test_another_format_is_refused_by_name(path):
    with_header(path, lambda header: header["__metadata__"].update(format="3"))
    with pytest.raises(CheckpointError, match="format '3'"):
        tensors.read(path, CHECKPOINT)


def test_the_first_format_is_known(tmp_path):
    header = json.dumps({"__metadata__": {"state": "{}"}}).encode()
    (tmp_path / "a").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(CheckpointError, match="format '1'"):
        tensors.read(tmp_path / "a", CHECKPOINT)
