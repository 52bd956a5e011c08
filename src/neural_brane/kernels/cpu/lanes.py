"""Compute on vector registers in Numba: small products, sparse products, and the pooling of bags.

A lane is LANE consecutive float32 numbers of a table's row as one value. Numba alone does not vectorise loops that read
and write rows of one table in turn, because the rows might overlap, and it keeps running results in memory.
"""

from typing import NamedTuple

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.model import LANE, MAX, MEAN

# Numba optimises a function again in each of its callers and generates code for each. So we inline a function with one
# caller before it is compiled, and compile a function with several callers separately.

compiled = njit(error_model="numpy")
inlined = numba.njit(error_model="numpy", inline="always")

_NUMBER, _INDEX = ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(ir.FloatType(), LANE)
_READ, _KEEP, _DATA = 0, 3, 1  # prefetch for reading, into every cache, data instead of instructions


class Lane(types.Type):
    """The Numba type of a lane."""

    def __init__(self):
        super().__init__("Lane")


@register_model(Lane)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


lane = Lane()


def address_of(context, builder, kind, table, *position):
    """Emit the address of table[row, column], or of table[k]."""
    array = context.make_array(kind)(context, builder, table)
    return cgutils.get_item_pointer(context, builder, kind, array, position)


def lane_address(context, builder, kind, table, row, column):
    """Emit the address of the lane table[row, column : column + LANE]."""
    return builder.bitcast(address_of(context, builder, kind, table, row, column), VECTOR.as_pointer())


def broadcast(builder, number):
    """Emit a vector that repeats a number of any type."""
    vector = ir.VectorType(number.type, LANE)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), number, _NUMBER(0))
    return builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(_NUMBER, LANE), [0] * LANE))


def fused(builder, a, b, c):
    """Emit a × b + c of three vectors."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fmuladd.v16f32"), [a, b, c])


@intrinsic
def load(typing_context, table, row, column):
    """Return the lane table[row, column : column + LANE]."""

    def generate(context, builder, signature, arguments):
        return builder.load(lane_address(context, builder, signature.args[0], *arguments), align=4)

    return lane(table, types.int64, types.int64), generate


@intrinsic
def store(typing_context, value, table, row, column):
    """Write a lane to table[row, column : column + LANE]."""

    def generate(context, builder, signature, arguments):
        builder.store(arguments[0], lane_address(context, builder, signature.args[1], *arguments[1:]), align=4)
        return context.get_dummy_value()

    return types.none(lane, table, types.int64, types.int64), generate


@intrinsic
def fill(typing_context, number):
    """Return a lane that repeats one number."""
    return lane(types.float32), lambda context, builder, signature, arguments: broadcast(builder, *arguments)


@intrinsic
def if_greater(typing_context, a, b, then, otherwise):
    """Return a lane with the numbers of `then` where a > b, else of `otherwise`."""

    def generate(context, builder, signature, arguments):
        a, b, then, otherwise = arguments
        return builder.select(builder.fcmp_ordered(">", a, b), then, otherwise)

    return lane(lane, lane, lane, lane), generate


@intrinsic
def multiply_add(typing_context, a, b, c):
    """Return a × b + c, rounded once if the processor has a fused multiply-add."""
    return lane(lane, lane, lane), lambda context, builder, signature, arguments: fused(builder, *arguments)


@intrinsic
def total(typing_context, value):
    """Return the sum of a lane's numbers in a fixed order: add one half to the other until one number is left."""

    def generate(context, builder, signature, arguments):
        part, width = arguments[0], LANE
        while width > 1:
            width //= 2
            low, high = (ir.Constant(ir.VectorType(_NUMBER, width), list(range(at, at + width))) for at in (0, width))
            part = builder.fadd(builder.shuffle_vector(part, part, low), builder.shuffle_vector(part, part, high))
        return builder.extract_element(part, _NUMBER(0))

    return types.float32(lane), generate


def emit_prefetch(builder, place):
    """Emit a prefetch of the cache line at an address."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _NUMBER, _NUMBER, _NUMBER])
    instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    hints = [ir.Constant(_NUMBER, hint) for hint in (_READ, _KEEP, _DATA)]
    builder.call(instruction, [builder.bitcast(place, byte), *hints])


def _emit_prefetch_of_entry(context, builder, signature, arguments):
    emit_prefetch(builder, address_of(context, builder, signature.args[0], *arguments))
    return context.get_dummy_value()


@intrinsic
def prefetch(typing_context, table, row, column):
    """Prefetch the cache line of table[row, column], so that a later read is faster."""
    return types.none(table, types.int64, types.int64), _emit_prefetch_of_entry


@intrinsic
def prefetch_entry(typing_context, array, k):
    """Prefetch the cache line of array[k]."""
    return types.none(array, types.int64), _emit_prefetch_of_entry


# Multiply small dense matrices on one core. The packing and the calls of BLAS would double the time.
#
# A tile of the result stays in registers over the whole inner dimension. Each number is one sum in a fixed order, so
# the shape of the tiles changes no bit.

ROWS = 5
LANES = 5 if llvm.get_host_cpu_features().get("avx512f") else 1  # a tile takes 25 of the 32 registers of AVX-512
DEPTH = 80  # inner dimension per pass: this part of b stays in the first cache for all rows of a


class Depths(NamedTuple):
    """The range first … last - 1 of the inner dimension; add: c already has the sum before `first`."""

    first: int
    last: int
    add: bool


@compiled
def multiply(a, b, c, add):
    """Write a × b to c (m, n), or add it to c if `add`; float32. n is a multiple of LANE; only a may be transposed."""
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


def _make_tile(rows: int, lanes: int):
    """Return a function that computes a tile of rows × lanes vectors; a vector may need several registers."""

    @intrinsic
    def tile(typing_context, product, row, column, depths):
        def generate(context, builder, signature, arguments):
            product, row, column, depths = arguments
            arrays, kinds = cgutils.unpack_tuple(builder, product), signature.args[0].types
            addresses = (address_of, lane_address, lane_address)  # numbers of a, lanes of b and c
            places = [
                (lambda i, j, at=at, kind=kind, array=array: at(context, builder, kind, array, i, j))
                for at, kind, array in zip(addresses, kinds, arrays, strict=True)
            ]
            down = [builder.add(row, _INDEX(step)) for step in range(rows)]
            across = [builder.add(column, _INDEX(LANE * lane)) for lane in range(lanes)]
            _emit_products(builder, places, down, across, Depths(*cgutils.unpack_tuple(builder, depths)))
            return context.get_dummy_value()

        return types.none(product, types.int64, types.int64, depths), generate

    return tile


def _emit_products(builder, places, down, across, depths):
    """Emit c[down, across] = (c[down, across] if add else 0) + Σ a[down, k] b[k, across] over the depths."""
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


_tile, _row = _make_tile(ROWS, LANES), _make_tile(1, LANES)
_narrow_tile, _narrow_row = _make_tile(ROWS, 1), _make_tile(1, 1)


# Multiply sparse matrices with tables in registers; SciPy's `matrix @ table` is the definition.

COLUMNS = 2 * LANE  # columns of a table that are summed at once
ENTRIES_AHEAD = 8  # distance in entries from the sum to the prefetch


class Scaled(NamedTuple):
    """A sparse matrix with scales and a diagonal: diag(rows) · matrix · diag(columns) + diag(diagonal)."""

    indptr: np.ndarray  # (rows + 1,) int64
    indices: np.ndarray  # (entries,) int32
    values: np.ndarray  # (entries,) float32
    rows: np.ndarray  # (rows,) float32
    columns: np.ndarray  # (columns,) float32
    diagonal: np.ndarray  # (rows,) float32, or empty


@njit(nogil=True, error_model="numpy")
def multiply_rows(matrix, table, first, product):
    """Write rows first, first + 1, … of matrix (`Scaled`) @ table to product; widths are multiples of COLUMNS."""
    indptr, indices, values, rows, columns, diagonal = matrix
    zero = fill(np.float32(0))
    end = indptr[first + len(product)] - 1
    for at in range(len(product)):
        row = first + at
        for column in range(0, table.shape[1], COLUMNS):
            low, high = zero, zero
            for k in range(indptr[row], indptr[row + 1]):
                ahead, other = indices[min(k + ENTRIES_AHEAD, end)], indices[k]
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


class Largest(NamedTuple):
    """The largest numbers of some rows, written by `step_rows`; each row keeps at most `room` of them."""

    columns: np.ndarray  # (rows, room) int32
    values: np.ndarray  # (rows, room) float32
    counts: np.ndarray  # (rows,) int64: numbers kept
    width: int  # columns of the whole matrix


@njit(nogil=True, error_model="numpy")
def step_rows(walk, table, start, share, first, largest):
    """Write the largest numbers of rows first, first + 1, … of start + share · walk @ table to largest (`Largest`).

    walk, table, start: `Rows` of numbers ≥ 0. Kept numbers are in the order of their columns; among equal numbers the
    first in the order of the entries are kept. Sums are float64, in the order of the entries.
    """
    columns, values, counts, width = largest
    total, touched, scratch = np.zeros(width), np.empty(width, np.int32), np.empty(width)
    most = columns.shape[1]
    for at in range(len(counts)):
        row, count = first + at, 0
        for k in range(start.indptr[row], start.indptr[row + 1]):
            count = _add(total, touched, count, start.indices[k], np.float64(start.values[k]))
        for k in range(walk.indptr[row], walk.indptr[row + 1]):
            other, chance = walk.indices[k], share * np.float64(walk.values[k])
            for j in range(table.indptr[other], table.indptr[other + 1]):
                count = _add(total, touched, count, table.indices[j], chance * table.values[j])
        kept = _keep_largest(total, touched, count, most, scratch, columns[at])
        for k in range(kept):
            values[at, k] = total[columns[at, k]]
        counts[at] = kept
        for k in range(count):
            total[touched[k]] = 0.0


@njit(nogil=True, error_model="numpy", inline="always")
def _add(total, touched, count, column, value):
    """Add a number to a column's total; return the number of distinct columns so far."""
    if value > 0.0:
        if total[column] == 0.0:
            touched[count] = column
            count += 1
        total[column] += value
    return count


@njit(nogil=True, error_model="numpy")
def _keep_largest(total, touched, count, most, scratch, columns):
    """Write the columns of the `most` largest totals in increasing order; return their number."""
    if count <= most:
        columns[:count] = np.sort(touched[:count])
        return count
    for k in range(count):
        scratch[k] = total[touched[k]]
    least = np.partition(scratch[:count], count - most)[count - most]
    equal = most  # places left for totals equal to the smallest kept total
    for k in range(count):
        equal -= scratch[k] > least
    kept = 0
    for k in range(count):
        if scratch[k] > least or (scratch[k] == least and equal > 0):
            equal -= scratch[k] == least
            columns[kept] = touched[k]
            kept += 1
    columns[:kept] = np.sort(columns[:kept])
    return kept


PREFETCH = 16  # cache lines prefetched ahead of the current row, so that reads overlap
FEWEST_AHEAD = 4  # rows prefetched at least
_LABELS = ir.VectorType(_NUMBER, LANE)


class Side(NamedTuple):
    """One of a model's two tables, the rows that each node pools, and the columns of the pooled vector."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32: node v pools rows indices[indptr[v]:indptr[v + 1]]
    table: np.ndarray  # (rows, a multiple of LANE) float32
    winner: np.ndarray  # (vectors, width of the table) int32: in max pooling the row of each number, -1 for none
    first: int  # columns first … last - 1 of a pooled vector belong to this table
    last: int


@inlined
def pool(side, settings, scale, node, pooled, row):
    """Write a node's pooled rows × scale to pooled[row] from side.first on; max pooling also writes winner[row]."""
    table, start, stop = side.table, side.indptr[node], side.indptr[node + 1]
    if settings.pooling != MAX:
        _add_rows(side, settings, scale, node, pooled, row)
        return
    floor = np.float32(0) if settings.zero_floor or start == stop else np.float32(-np.inf)
    bag = Bag(start, stop, _rows_ahead(table), floor, scale)
    for column in range(0, table.shape[1], 4 * LANE):
        lanes = (table.shape[1] - column) // LANE
        if lanes >= 4:
            _four_lanes(side, bag, column, pooled, row)
        elif lanes == 3:
            _three_lanes(side, bag, column, pooled, row)
        elif lanes == 2:
            _two_lanes(side, bag, column, pooled, row)
        else:
            _one_lane(side, bag, column, pooled, row)


@njit(error_model="numpy", nogil=True)
def pool_nodes(side, nodes, settings, pooled):
    """Pool one table for each of nodes (k,) int32 into pooled (k, ≥ side.last); only row 0 of winner is written."""
    for row in range(len(nodes)):
        pool(side, settings, np.float32(1), nodes[row], pooled[row : row + 1], np.int64(0))


@inlined
def prefetch_bag(side, node):
    """Prefetch the first rows of a node's bag; `pool` prefetches the rest."""
    start, stop = side.indptr[node], side.indptr[node + 1]
    for k in range(start, min(start + _rows_ahead(side.table), stop)):
        prefetch_row(side.table, side.indices[k])


@inlined
def prefetch_indices(side, nodes, position, last):
    """Prefetch the row numbers of the node two positions ahead, and the indptr entry three positions ahead."""
    prefetch_entry(side.indices, side.indptr[nodes[min(position + 2, last)]])
    prefetch_entry(side.indptr, nodes[min(position + 3, last)])


@inlined
def _rows_ahead(table):
    """Return the distance in rows from the current row to the prefetch."""
    return max(PREFETCH * LANE // max(table.shape[1], 1), FEWEST_AHEAD)


@inlined
def prefetch_row(table, row):
    """Prefetch one row of a table."""
    for column in range(0, table.shape[1], LANE):
        prefetch(table, row, column)


@inlined
def _add_rows(side, settings, scale, node, pooled, row):
    """Write the scaled sum or mean of a node's rows to pooled[row]."""
    start, stop = side.indptr[node], side.indptr[node + 1]
    zero, one = fill(np.float32(0)), fill(np.float32(1))
    share = np.float32(1 / (stop - start)) if settings.pooling == MEAN and stop > start else np.float32(1)
    for column in range(0, side.table.shape[1], LANE):
        total = zero
        for k in range(start, stop):
            total = multiply_add(one, load(side.table, side.indices[k], column), total)
        total = multiply_add(fill(share), total, zero)
        store(multiply_add(fill(scale), total, zero), pooled, row, side.first + column)


class Bag(NamedTuple):
    """The range of one node's rows in side.indices, and the parameters of max pooling."""

    start: int
    stop: int
    ahead: int  # distance in rows from the current row to the prefetch
    floor: float  # float32: only larger numbers win
    scale: float  # float32: factor of the result


def _make_largest(lanes: int):
    """Return a function that max-pools a bag over `lanes` lanes of columns; the first of equal numbers wins."""

    @intrinsic
    def largest(typing_context, side, bag, column, pooled, row):
        def generate(context, builder, signature, arguments):
            side, bag, column, pooled, row = arguments
            _, indices, table, winner, first, _ = cgutils.unpack_tuple(builder, side)
            _, index_kind, table_kind, winner_kind, *_ = signature.args[0].types
            across = [builder.add(column, _INDEX(LANE * lane)) for lane in range(lanes)]

            def row_at(k):
                return builder.load(address_of(context, builder, index_kind, indices, k))

            def lane_at(number, c):
                return lane_address(context, builder, table_kind, table, builder.sext(number, _INDEX), c)

            bag = Bag(*cgutils.unpack_tuple(builder, bag))
            best, which = _emit_largest(builder, row_at, lane_at, across, bag)
            factor = broadcast(builder, bag.scale)
            for c, numbers, labels in zip(across, best, which, strict=True):
                place = lane_address(context, builder, signature.args[3], pooled, row, builder.add(first, c))
                builder.store(builder.fmul(factor, numbers), place, align=4)
                place = address_of(context, builder, winner_kind, winner, row, c)
                builder.store(labels, builder.bitcast(place, _LABELS.as_pointer()), align=4)
            return context.get_dummy_value()

        return types.none(side, bag, types.int64, pooled, types.int64), generate

    return largest


def _emit_largest(builder, row_at, lane_at, across, bag):
    """Emit the largest numbers above the floor in the lanes `across` of a bag's rows, and their rows, -1 for none."""
    start, stop = bag.start, bag.stop
    nothing = [broadcast(builder, bag.floor)] * len(across) + [ir.Constant(_LABELS, [-1] * LANE)] * len(across)
    entry, loop, end = builder.block, builder.append_basic_block("rows"), builder.append_basic_block("pooled")
    builder.cbranch(builder.icmp_signed("<", start, stop), loop, end)
    builder.position_at_end(loop)
    k = builder.phi(_INDEX)
    before = [builder.phi(value.type) for value in nothing]
    final = builder.sub(stop, _INDEX(1))
    later = builder.add(k, bag.ahead)
    later = row_at(builder.select(builder.icmp_signed("<", later, final), later, final))
    number = row_at(k)
    label = broadcast(builder, number)
    after = [None] * len(before)
    for lane, c in enumerate(across):
        emit_prefetch(builder, lane_at(later, c))
        best, which = before[lane], before[lane + len(across)]
        value = builder.load(lane_at(number, c), align=4)
        greater = builder.fcmp_ordered(">", value, best)
        after[lane] = builder.select(greater, value, best)
        after[lane + len(across)] = builder.select(greater, label, which)
    following = builder.add(k, _INDEX(1))
    for phi, first, then in zip([k, *before], [start, *nothing], [following, *after], strict=True):
        phi.add_incoming(first, entry)
        phi.add_incoming(then, loop)
    builder.cbranch(builder.icmp_signed("<", following, stop), loop, end)
    builder.position_at_end(end)
    results = [builder.phi(value.type) for value in nothing]
    for phi, first, then in zip(results, nothing, after, strict=True):
        phi.add_incoming(first, entry)
        phi.add_incoming(then, loop)
    return results[: len(across)], results[len(across) :]


# With several lanes, the processor compares one lane while it waits for another.
_one_lane, _two_lanes, _three_lanes, _four_lanes = (_make_largest(lanes) for lanes in (1, 2, 3, 4))
