"""No training resumes from a checkpoint with a flipped bit or a missing end."""

import numpy as np
import pytest

from neural_brane import NeuralBrane
from neural_brane.errors import CheckpointError
from neural_brane.files.checkpoints import CHECKPOINT
from neural_brane.files.tensors import PREFIX, read

RUN = {"dim": 8, "epochs": 2, "batches_per_epoch": 5, "seed": 3, "threads": 1}
FLIPS, CUTS = 1_000, 300


@pytest.fixture
def path(small_graph, tmp_path):
    NeuralBrane(checkpoint=tmp_path / "run.checkpoint", **RUN).fit(small_graph)
    return tmp_path / "run.checkpoint"


def accepted(path, content):
    path.write_bytes(content)
    try:
        read(path, CHECKPOINT)
    except CheckpointError as error:
        return "remove it" not in str(error)  # the error must say what to do
    return True


def flip(content, bit):
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return damaged


def test_no_flipped_bit_is_accepted(path):
    content = path.read_bytes()
    bits = np.random.default_rng(0).choice(8 * len(content), FLIPS, replace=False)
    assert accepted(path, content)
    assert not [bit for bit in bits.tolist() if accepted(path, flip(content, bit))]


def test_no_flipped_bit_of_the_first_words_is_accepted(path):
    """These bytes are the length of the header, its first name and the checksum itself."""
    content = path.read_bytes()
    assert not [bit for bit in range(8 * (8 + len(PREFIX) + 64 + 30)) if accepted(path, flip(content, bit))]


@pytest.mark.slow
def test_no_byte_with_a_flipped_bit_is_accepted(path):
    content = path.read_bytes()
    assert not [at for at in range(len(content)) if accepted(path, flip(content, 8 * at + at % 8))]


def test_no_file_that_was_cut_off_is_accepted(path):
    content = path.read_bytes()
    ends = np.random.default_rng(0).choice(len(content), CUTS - 2, replace=False)
    assert not [end for end in [0, len(content) - 1, *ends.tolist()] if accepted(path, content[:end])]


def test_no_file_with_extra_bytes_is_accepted(path):
    assert not accepted(path, path.read_bytes() + b"\0")


def test_training_refuses_a_damaged_checkpoint_and_does_not_change_it(path, small_graph):
    damaged = flip(path.read_bytes(), 8 * (path.stat().st_size - 100))
    path.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=r"run\.checkpoint: .*damaged.*checksum.*restore it"):
        NeuralBrane(checkpoint=path, **RUN).fit(small_graph)
    assert path.read_bytes() == damaged
    assert [one.name for one in path.parent.iterdir()] == [path.name]
