"""Products of matrices, small dense ones and sparse ones, in registers."""

from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import (
    VECTOR,
    broadcast,
    compiled,
    fill,
    fused,
    lane_of,
    load,
    multiply_add,
    place_of,
    prefetch,
    store,
)
from neural_brane.kernels.model import LANE

# Products of small dense matrices on one core, where the packing and the calls of BLAS would double the time.
#
# A tile of the result stays in registers over the whole inner dimension, and every number of it is one sum in one
# order: the tiles' shape changes no bit.

ROWS = 5
LANES = 5 if llvm.get_host_cpu_features().get("avx512f") else 1  # AVX-512 has 32 registers, of which a tile takes 25
DEPTH = 80  # of the inner dimension at a time: that much of b stays in the first cache for all rows of a
_INDEX = ir.IntType(64)


class Depths(NamedTuple):
    """The part first … last - 1 of the inner dimension, and whether c has the sum over those before it."""

    first: int
    last: int
    add: bool


@compiled
def multiply(a, b, c, add):
    """c (m, n) = a (m, k) × b (k, n), all float32; with add, the product is added to c.

    n is a multiple of LANE, and only a may be transposed.
    """
    product = a, b, c
    whole = len(a) // ROWS * ROWS
    for first in range(0, a.shape[1], DEPTH):
        depths = Depths(first, min(first + DEPTH, a.shape[1]), add or first > 0)
        column = 0
        while column < c.shape[1]:
            wide = column + LANES * LANE <= c.shape[1]
            for row in range(0, whole, ROWS):
                if wide:
                    _tile(product, row, column, depths)
                else:
                    _narrow_tile(product, row, column, depths)
            for row in range(whole, len(a)):
                if wide:
                    _row(product, row, column, depths)
                else:
                    _narrow_row(product, row, column, depths)
            column += LANES * LANE if wide else LANE


def _tile_of(rows: int, lanes: int):
    """A function that computes a tile of rows × lanes vectors; shorter registers hold a vector in two or four."""

    @intrinsic
    def tile(typing_context, product, row, column, depths):
        def generate(context, builder, signature, arguments):
            product, row, column, depths = arguments
            arrays, kinds = cgutils.unpack_tuple(builder, product), signature.args[0].types
            addresses = (place_of, lane_of, lane_of)  # of a single number of a, of lanes of b and c
            places = [
                (lambda i, j, at=at, kind=kind, array=array: at(context, builder, kind, array, i, j))
                for at, kind, array in zip(addresses, kinds, arrays, strict=True)
            ]
            down = [builder.add(row, _INDEX(step)) for step in range(rows)]
            across = [builder.add(column, _INDEX(LANE * lane)) for lane in range(lanes)]
            _walk_depth(builder, places, down, across, Depths(*cgutils.unpack_tuple(builder, depths)))
            return context.get_dummy_value()

        return types.none(product, types.int64, types.int64, depths), generate

    return tile


def _walk_depth(builder, places, down, across, depths):
    """c[down, across] = (itself with add, else 0) + Σ a[down, k] b[k, across] over the depths."""
    a, b, c = places
    results = [c(i, j) for i in down for j in across]
    zero = ir.Constant(VECTOR, [0.0] * LANE)
    before = [builder.select(depths.add, builder.load(result, align=4), zero) for result in results]
    entry, loop, end = builder.block, builder.append_basic_block("depth"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    k, sums = builder.phi(_INDEX), [builder.phi(VECTOR) for _ in results]
    columns = [builder.load(b(k, j), align=4) for j in across]
    numbers = [broadcast(builder, builder.load(a(i, k))) for i in down]
    pairs = [(number, lane) for number in numbers for lane in columns]
    after = [fused(builder, *pair, total) for pair, total in zip(pairs, sums, strict=True)]
    k_next = builder.add(k, _INDEX(1))
    for phi, start, following in zip([k, *sums], [depths.first, *before], [k_next, *after], strict=True):
        phi.add_incoming(start, entry)
        phi.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", k_next, depths.last), loop, end)
    builder.position_at_end(end)
    for total, result in zip(after, results, strict=True):
        builder.store(total, result, align=4)


_tile, _row, _narrow_tile, _narrow_row = _tile_of(ROWS, LANES), _tile_of(1, LANES), _tile_of(ROWS, 1), _tile_of(1, 1)


# Products of sparse matrices with tables, as SciPy's `matrix @ table` defines them, in registers.

COLUMNS = 2 * LANE  # of a table that are summed at once: two lanes
PREFETCH = 8  # entries ahead of the one being added


class Scaled(NamedTuple):
    """A sparse matrix between two scalings, and a diagonal: diag(rows) · matrix · diag(columns) + diag(diagonal)."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    values: np.ndarray  # float32, as all that follow
    rows: np.ndarray  # a number per row
    columns: np.ndarray  # a number per column
    diagonal: np.ndarray  # a number per row, or none at all


@njit(nogil=True, error_model="numpy")
def multiply_rows(matrix, table, first, product):
    """Write rows of a matrix times a table to product, as many as it holds, beginning with the matrix's row `first`.

    matrix: `Scaled`. table and product are float32, and their width is a multiple of COLUMNS. Each number is one sum in
    the order of the row's entries.
    """
    indptr, indices, values, rows, columns, diagonal = matrix
    zero = fill(np.float32(0))
    end = indptr[first + len(product)] - 1
    for at in range(len(product)):
        row = first + at
        for column in range(0, table.shape[1], COLUMNS):
            low, high = zero, zero
            for k in range(indptr[row], indptr[row + 1]):
                ahead, other = indices[min(k + PREFETCH, end)], indices[k]
                value = fill(values[k] * columns[other])
                prefetch(table, ahead, column)
                prefetch(table, ahead, column + LANE)
                low = multiply_add(value, load(table, other, column), low)
                high = multiply_add(value, load(table, other, column + LANE), high)
            scale = fill(rows[row])
            low, high = multiply_add(scale, low, zero), multiply_add(scale, high, zero)
            if len(diagonal):
                own = fill(diagonal[row])
                low = multiply_add(own, load(table, row, column), low)
                high = multiply_add(own, load(table, row, column + LANE), high)
            store(low, product, at, column)
            store(high, product, at, column + LANE)


# One step of random walks with restart over sparse rows, of which the largest numbers are kept.


class Largest(NamedTuple):
    """The largest numbers of some rows, for `step_rows` to write: as many of each row as there is room for."""

    columns: np.ndarray  # (rows, room) int32
    values: np.ndarray  # (rows, room) float32
    counts: np.ndarray  # (rows,) int64: how many were kept
    width: int  # columns of the whole matrix


@njit(nogil=True, error_model="numpy")
def step_rows(walk, table, start, share, first, largest):
    """Write rows of start + share · walk @ table to largest (`Largest`), beginning with the row `first`.

    walk, table, start: `Rows` of numbers from 0. A row keeps its largest numbers in the order of their columns; among
    equal ones those met first, which follows from the row alone. Sums are float64, in the order of the entries.
    """
    columns, values, counts, width = largest
    total, touched, scratch = np.zeros(width), np.empty(width, np.int32), np.empty(width)
    most = columns.shape[1]
    for at in range(len(counts)):
        row, met = first + at, 0
        for k in range(start.indptr[row], start.indptr[row + 1]):
            met = _add(total, touched, met, start.indices[k], np.float64(start.values[k]))
        for k in range(walk.indptr[row], walk.indptr[row + 1]):
            other, chance = walk.indices[k], share * np.float64(walk.values[k])
            for j in range(table.indptr[other], table.indptr[other + 1]):
                met = _add(total, touched, met, table.indices[j], chance * table.values[j])
        kept = _keep_largest(total, touched, met, most, scratch, columns[at])
        for k in range(kept):
            values[at, k] = total[columns[at, k]]
        counts[at] = kept
        for k in range(met):
            total[touched[k]] = 0.0


@njit(nogil=True, error_model="numpy", inline="always")
def _add(total, touched, met, column, value):
    """Add a number to a column's total; returns how many columns have been met."""
    if value > 0.0:
        if total[column] == 0.0:
            touched[met] = column
            met += 1
        total[column] += value
    return met


@njit(nogil=True, error_model="numpy")
def _keep_largest(total, touched, met, most, scratch, columns):
    """Write the columns of the largest totals, in order; returns how many there are."""
    if met <= most:
        columns[:met] = np.sort(touched[:met])
        return met
    for k in range(met):
        scratch[k] = total[touched[k]]
    least = np.partition(scratch[:met], met - most)[met - most]
    equal = most  # places for totals that equal the least one kept: those that larger ones leave
    for k in range(met):
        equal -= scratch[k] > least
    kept = 0
    for k in range(met):
        if scratch[k] > least or (scratch[k] == least and equal > 0):
            equal -= scratch[k] == least
            columns[kept] = touched[k]
            kept += 1
    columns[:kept] = np.sort(columns[:kept])
    return kept
