import hashlib
import json

import numpy as np
import pytest
from safetensors import numpy as library

from neural_brane.errors import EmbeddingError
from neural_brane.files import tensors
from neural_brane.files.tensors import FileKind, list_arrays, read, read_about, read_arrays, write

THING = FileKind("thing", "7", EmbeddingError, advice="make it again", outdated="ask for a newer one", mark="thing")
OTHER = THING._replace(noun="book", mark="book")
ARRAYS = {
    "doubles": np.arange(6.0).reshape(2, 3).T,
    "floats": np.arange(6, dtype=np.float32).reshape(2, 3),
    "halves": np.arange(3, dtype=np.float16),
    "counts": np.arange(4),
    "none": np.zeros((0, 5), np.float32),
    "bytes": np.frombuffer(b"abc", np.uint8),
    "flags": np.array([True, False, True]),
}


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "a.thing", THING, {"name": "é", "losses": [0.1]}, ARRAYS)
    return tmp_path / "a.thing"


@pytest.mark.parametrize("options", [{}, {"mapped": True}, {"mapped": True, "verify": False}])
def test_what_is_written_is_read(path, options):
    about, arrays = read(path, THING, **options)
    assert about == {"name": "é", "losses": [0.1]}
    assert list(arrays) == list(ARRAYS)
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype
    assert read_about(path, THING) == about


def test_the_checksum_is_that_of_the_whole_file_with_zeros_for_its_digits(path):
    content = path.read_bytes()
    begin = 8 + len(tensors.PREFIX)
    digits, rest = content[begin : begin + 64], content[:begin] + b"0" * 64 + content[begin + 64 :]
    assert hashlib.sha256(rest).hexdigest().encode() == digits


def test_mapped_arrays_are_views_of_the_file_that_cannot_be_written(path):
    _, arrays = read(path, THING, mapped=True)
    for array in arrays.values():
        assert not array.flags.writeable
    base = arrays["floats"]
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_a_mapped_file_can_be_replaced(path):
    _, arrays = read(path, THING, mapped=True)
    write(path, THING, {}, {"floats": np.zeros(3, np.float32)})
    np.testing.assert_array_equal(arrays["floats"], ARRAYS["floats"])


@pytest.mark.parametrize("mapped", [False, True])
def test_no_flipped_byte_is_accepted(path, mapped):
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        with pytest.raises(EmbeddingError, match=r"a\.thing: "):
            read(path, THING, mapped=mapped)
    path.write_bytes(content)
    read(path, THING, mapped=mapped)


@pytest.mark.parametrize("mapped", [False, True])
def test_no_file_with_missing_or_extra_bytes_is_accepted(path, mapped):
    content = path.read_bytes()
    for cut in [*(content[:at] for at in range(0, len(content), 7)), content + b"\0"]:
        path.write_bytes(cut)
        with pytest.raises(EmbeddingError):
            read(path, THING, mapped=mapped)


def test_damaged_numbers_go_unnoticed_without_verification(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert read(path, THING, mapped=True, verify=False)[1]["flags"].tolist() != [True, False, True]


def test_a_file_of_another_kind_is_refused_by_its_kind(path):
    with pytest.raises(EmbeddingError, match=r"header.*'thing'"):
        read(path, OTHER)
    assert read_about(path, OTHER) == {}


def test_a_file_of_another_format_says_what_to_do(path):
    newer = THING._replace(format="8")
    with pytest.raises(EmbeddingError, match=r"format '7'.*8"):
        read(path, newer)


def test_a_file_of_the_safetensors_library_is_read(tmp_path):
    arrays = {name: np.ascontiguousarray(array) for name, array in ARRAYS.items()}
    library.save_file(arrays, tmp_path / "a.safetensors", metadata={"made by": "hand"})
    header = list_arrays(tmp_path / "a.safetensors", EmbeddingError)
    assert header.metadata == {"made by": "hand"}
    assert header.arrays["floats"] == ("F32", (2, 3))
    for mapped in (False, True):
        found = read_arrays(tmp_path / "a.safetensors", header, mapped=mapped)
        assert found.keys() == ARRAYS.keys()
        for name, array in found.items():
            np.testing.assert_array_equal(array, ARRAYS[name])


def test_the_safetensors_library_reads_what_is_written(path):
    found = library.load_file(path)
    assert found.keys() == ARRAYS.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, ARRAYS[name])


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}},
        {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": "x"}},
        {"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}},
        {"a": 3},
    ],
)
def test_a_header_that_makes_no_sense_is_refused(header, tmp_path):
    text = json.dumps(header).encode()
    (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text + b"\0\0\0\0")
    with pytest.raises(EmbeddingError, match="safetensors file"):
        list_arrays(tmp_path / "a", EmbeddingError)
