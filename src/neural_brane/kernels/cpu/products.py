"""Products of small matrices on one core. For these, the packing and the calls of BLAS would double the time.

A tile of the result stays in registers over the whole inner dimension, and every number of it is one sum in one order:
the tiles' shape changes no bit.
"""

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from neural_brane.kernels.cpu.lanes import VECTOR, broadcast, compiled, fused, inlined, lane_of, place_of
from neural_brane.kernels.model import LANE

ROWS = 5
LANES = 5 if llvm.get_host_cpu_features().get("avx512f") else 1  # AVX-512 has 32 registers, of which a tile takes 25
DEPTH = 80  # of the inner dimension at a time: that much of b stays in the first cache for all rows of a
_INDEX = ir.IntType(64)


@compiled
def multiply(a, b, c, add):
    """c (m, n) = a (m, k) × b (k, n), all float32; with add, the product is added to c.

    n is a multiple of LANE, and only a may be transposed.
    """
    for first in range(0, a.shape[1], DEPTH):
        last = min(first + DEPTH, a.shape[1])
        column = 0
        while column < c.shape[1]:
            wide = column + LANES * LANE <= c.shape[1]
            _multiply_columns(a, b, c, column, wide, first, last, add or first > 0)
            column += LANES * LANE if wide else LANE


@inlined
def _multiply_columns(a, b, c, column, wide, first, last, add):
    """Compute LANES lanes of c's columns if wide, else one lane."""
    whole = len(a) // ROWS * ROWS
    for row in range(0, whole, ROWS):
        if wide:
            _tile(a, b, c, row, column, first, last, add)
        else:
            _narrow_tile(a, b, c, row, column, first, last, add)
    for row in range(whole, len(a)):
        if wide:
            _row(a, b, c, row, column, first, last, add)
        else:
            _narrow_row(a, b, c, row, column, first, last, add)


def _tile_of(rows: int, lanes: int):
    """A function that computes a tile of rows × lanes vectors; shorter registers hold a vector in two or four."""

    @intrinsic
    def tile(typing_context, a, b, c, row, column, first, last, add):
        def generate(context, builder, signature, arguments):
            addresses = (place_of, lane_of, lane_of)  # of a single number of a, of lanes of b and c
            places = [
                (lambda i, j, at=at, kind=kind, array=array: at(context, builder, kind, array, i, j))
                for at, kind, array in zip(addresses, signature.args[:3], arguments[:3], strict=True)
            ]
            _walk_depth(builder, places, rows, lanes, *arguments[3:])
            return context.get_dummy_value()

        return types.none(a, b, c, *[types.int64] * 4, types.boolean), generate

    return tile


def _walk_depth(builder, places, rows, lanes, row, column, first, last, add):
    """c[row…, column…] = (itself with add, else 0) + Σ a[row…, k] b[k, column…] for k from first to last."""
    a, b, c = places
    across = [builder.add(column, _INDEX(LANE * lane)) for lane in range(lanes)]
    down = [builder.add(row, _INDEX(step)) for step in range(rows)]
    results = [c(i, j) for i in down for j in across]
    zero = ir.Constant(VECTOR, [0.0] * LANE)
    before = [builder.select(add, builder.load(result, align=4), zero) for result in results]
    entry, loop, end = builder.block, builder.append_basic_block("depth"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, sums = builder.phi(_INDEX), [builder.phi(VECTOR) for _ in results]
    columns = [builder.load(b(k, j), align=4) for j in across]
    numbers = [broadcast(builder, builder.load(a(i, k))) for i in down]
    pairs = [(number, lane) for number in numbers for lane in columns]
    after = [fused(builder, *pair, total) for pair, total in zip(pairs, sums, strict=True)]
    k_next = builder.add(k, _INDEX(1))
    for phi, start, following in zip([k, *sums], [first, *before], [k_next, *after], strict=True):
        phi.add_incoming(start, entry)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", k_next, last), loop, end)
    builder.position_at_end(end)
    for total, result in zip(after, results, strict=True):
        builder.store(total, result, align=4)


_tile, _row, _narrow_tile, _narrow_row = _tile_of(ROWS, LANES), _tile_of(1, LANES), _tile_of(ROWS, 1), _tile_of(1, 1)
