"""Test each Triton feature that kernels with bundles need, compiled on a GPU, otherwise interpreted."""

from typing import NamedTuple

import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
gpu = pytest.importorskip("neural_brane.kernels.gpu")
tl = pytest.importorskip("triton.language")


class Column(NamedTuple):
    data: object
    stride: int
    extra: object = None


class Nested(NamedTuple):
    data: object
    stride: int


class Pair(NamedTuple):
    left: Nested
    right: Nested
    scale: float


class Part(NamedTuple):
    size: int
    turns: int


class Tiles(NamedTuple):
    left: Part
    right: Part
    doubled: bool


@triton.jit
def read(column, at):
    value = tl.load(column.data + at * column.stride)
    if column.extra is not None:
        value += tl.load(column.extra + at)
    return value


@triton.jit
def combine(pair, flat, result, spare, count, TILES: tl.constexpr):
    """Write scale · (left + right) + flat, doubled with TILES.doubled, plus spare if given, to result."""
    LEFT: tl.constexpr = TILES.left
    at = tl.program_id(0) * TILES.left.size + tl.arange(0, TILES.left.size)
    total = add_turns(pair, at, LEFT) + read(flat, at)
    if TILES.doubled:
        total *= 2
    if spare is not None:
        total += tl.load(spare.data + at)
    tl.store(result + at, total, mask=at < count)


@triton.jit
def add_turns(pair, at, PART: tl.constexpr):
    """Return the scaled sum of both columns, PART.turns times."""
    SIZE: tl.constexpr = PART.size
    TURNS: tl.constexpr = PART.turns
    total = tl.zeros([SIZE], tl.float32)
    for _ in range(0, PART.turns):  # a bundle stays unchanged in a loop
        total += pair.scale * tl.load(pair.left.data + at * pair.left.stride)
    for _turn in tl.static_range(TURNS):
        total += pair.scale * tl.load(pair.right.data + at * pair.right.stride)
    return total


@pytest.mark.parametrize("stride", [1, 2, 16])  # Triton compiles special versions for 1 and multiples of 16
@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("spare", [False, True])
def test_kernels_read_bundles_by_field(stride, extra, spare):
    left, right, flat = (torch.rand(32 * 16, device=gpu.DEVICE) for _ in range(3))
    more = torch.rand(32, device=gpu.DEVICE)
    result = torch.full((32,), torch.nan, device=gpu.DEVICE)
    pair = Pair(Nested(left, 2), Nested(right, 16), 0.5)
    combine[2,](
        pair, Column(flat, stride, more if extra else None), result, Nested(more, 1) if spare else None, 32,
        TILES=Tiles(Part(16, 3), Part(8, 1), doubled=spare),
    )  # fmt: skip
    expected = 1.5 * (left[: 32 * 2 : 2] + right[::16]) + flat[: 32 * stride : stride] + (more if extra else 0)
    torch.testing.assert_close(result, 2 * expected + more if spare else expected)
