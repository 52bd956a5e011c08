"""Pool the rows of one node's bag, some lanes of columns at a time, in registers."""

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import (
    ask_for,
    broadcast,
    fill,
    inlined,
    lane_of,
    load,
    multiply_add,
    place_of,
    prefetch,
    prefetch_entry,
    store,
)
from neural_brane.kernels.model import LANE, MAX, MEAN

PREFETCH = 16  # cache lines asked for ahead of the row being pooled: many reads at once hide how long each takes
FEWEST_AHEAD = 4  # rows
_INDEX, _ROW = ir.IntType(64), ir.IntType(32)
_LABELS = ir.VectorType(_ROW, LANE)


class Side(NamedTuple):
    """One of a model's two tables, which of its rows each node pools, and where they are pooled to."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32: node v pools the rows indices[indptr[v]:indptr[v + 1]]
    table: np.ndarray  # (rows, a multiple of LANE) float32
    winner: np.ndarray  # (vectors, as wide as the table) int32: for max, the row that each number came from, else -1
    first: int  # the columns of a pooled vector that belong to this table: first … last - 1
    last: int


@inlined
def pool(side, settings, scale, node, pooled, row):
    """Reduce one node's rows of a table to one and write it, times scale, to pooled[row] from column `first` on.

    pooled (vectors, ≥ first + width of the table) float32; for max, side.winner[row] is written too.
    """
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
    """Pool one table for every node of nodes (k,) into pooled (k, any); writes row 0 of side.winner only."""
    for row in range(len(nodes)):
        pool(side, settings, np.float32(1), nodes[row], pooled[row : row + 1], np.int64(0))


@inlined
def prefetch_bag(side, node):
    """Prefetch the first rows of the next node; `pool` prefetches the rest."""
    start, stop = side.indptr[node], side.indptr[node + 1]
    for k in range(start, min(start + _rows_ahead(side.table), stop)):
        prefetch_row(side.table, side.indices[k])


@inlined
def prefetch_indices(side, nodes, position, last):
    """Prefetch which rows the node two positions on pools, and where those of the node after it are."""
    prefetch_entry(side.indices, side.indptr[nodes[min(position + 2, last)]])
    prefetch_entry(side.indptr, nodes[min(position + 3, last)])


@inlined
def _rows_ahead(table):
    """How many rows ahead of the one being pooled a row is prefetched."""
    return max(PREFETCH * LANE // max(table.shape[1], 1), FEWEST_AHEAD)


@inlined
def prefetch_row(table, row):
    """Prefetch one row of a table."""
    for column in range(0, table.shape[1], LANE):
        prefetch(table, row, column)


@inlined
def _add_rows(side, settings, scale, node, pooled, row):
    """The sum, or the mean, of each column over a node's rows."""
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
    """One node's rows in side.indices, and how they are reduced to the largest."""

    start: int
    stop: int
    ahead: int  # how many rows ahead of the one being read a row is prefetched
    floor: float  # float32: only larger numbers win
    scale: float  # float32


def _largest_of(lanes: int):
    """A function that finds, for so many lanes of columns, the largest numbers among the rows: the first of equals."""

    @intrinsic
    def largest(typing_context, side, bag, column, pooled, row):
        def generate(context, builder, signature, arguments):
            side, bag, column, pooled, row = arguments
            _, indices, table, winner, first, _ = cgutils.unpack_tuple(builder, side)
            _, index_kind, table_kind, winner_kind, *_ = signature.args[0].types
            across = [builder.add(column, _INDEX(LANE * lane)) for lane in range(lanes)]

            def row_at(k):
                return builder.load(place_of(context, builder, index_kind, indices, k))

            def lane_at(number, c):
                return lane_of(context, builder, table_kind, table, builder.sext(number, _INDEX), c)

            bag = Bag(*cgutils.unpack_tuple(builder, bag))
            best, which = _walk_bag(builder, row_at, lane_at, across, bag)
            factor = broadcast(builder, bag.scale)
            for c, numbers, labels in zip(across, best, which, strict=True):
                place = lane_of(context, builder, signature.args[3], pooled, row, builder.add(first, c))
                builder.store(builder.fmul(factor, numbers), place, align=4)
                place = place_of(context, builder, winner_kind, winner, row, c)
                builder.store(labels, builder.bitcast(place, _LABELS.as_pointer()), align=4)
            return context.get_dummy_value()

        return types.none(side, bag, types.int64, pooled, types.int64), generate

    return largest


def _walk_bag(builder, row_at, lane_at, across, bag):
    """The largest numbers above the floor in the lanes `across` of a bag's rows, and their rows, else -1."""
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
        ask_for(builder, lane_at(later, c))
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
    found = [builder.phi(value.type) for value in nothing]
    for phi, first, then in zip(found, nothing, after, strict=True):
        phi.add_incoming(first, entry)
        phi.add_incoming(then, loop)
    return found[: len(across)], found[len(across) :]


# Of several lanes, the comparisons of one fill the time in which another waits for its own.
_one_lane, _two_lanes, _three_lanes, _four_lanes = (_largest_of(lanes) for lanes in (1, 2, 3, 4))
