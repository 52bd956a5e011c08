"""Pool the rows of one node's bag, some lanes of columns at a time, in registers."""

import numpy as np
from llvmlite import ir
from numba.core import types
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


@inlined
def pool(bags, table, node, settings, scale, winner, pooled, row, first):
    """Reduce one node's rows of a table (rows, d) to one and write it, times scale, to pooled[row, first : first + d].

    For max, which row won is written to winner[row] (d,). d is a multiple of LANE.
    """
    start, stop = bags.indptr[node], bags.indptr[node + 1]
    if settings.pooling != MAX:
        for column in range(0, table.shape[1], LANE):
            _total(bags, table, start, stop, column, settings.pooling == MEAN, scale, pooled, row, first)
        return
    ahead = _rows_ahead(table)
    floor = np.float32(0) if settings.zero_floor or start == stop else np.float32(-np.inf)
    for column in range(0, table.shape[1], 4 * LANE):
        lanes = (table.shape[1] - column) // LANE
        if lanes >= 4:
            _four_lanes(bags.indices, table, start, stop, ahead, column, floor, scale, winner, pooled, row, first)
        elif lanes == 3:
            _three_lanes(bags.indices, table, start, stop, ahead, column, floor, scale, winner, pooled, row, first)
        elif lanes == 2:
            _two_lanes(bags.indices, table, start, stop, ahead, column, floor, scale, winner, pooled, row, first)
        else:
            _one_lane(bags.indices, table, start, stop, ahead, column, floor, scale, winner, pooled, row, first)


@njit(error_model="numpy", nogil=True)
def pool_nodes(bags, table, nodes, settings, pooled, first):
    """Pool one table for every node of nodes (k,) into the columns of pooled (k, ≥ first + d) from first on."""
    winner = np.empty((1, table.shape[1]), np.int32)
    for row in range(len(nodes)):
        pool(bags, table, nodes[row], settings, np.float32(1), winner, pooled[row : row + 1], np.int64(0), first)


@inlined
def prefetch_bag(bags, table, node):
    """Prefetch the first rows of the next node; `pool` prefetches the rest."""
    start = bags.indptr[node]
    for k in range(start, min(start + _rows_ahead(table), bags.indptr[node + 1])):
        prefetch_row(table, bags.indices[k])


@inlined
def prefetch_indices(bags, nodes, position, last):
    """Prefetch which rows the node two positions on pools, and where those of the node after it are."""
    prefetch_entry(bags.indices, bags.indptr[nodes[min(position + 2, last)]])
    prefetch_entry(bags.indptr, nodes[min(position + 3, last)])


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
def _total(bags, table, start, stop, column, mean, scale, pooled, row, first):
    """The sum, or the mean, of each column over the rows."""
    zero, one = fill(np.float32(0)), fill(np.float32(1))
    total = zero
    for k in range(start, stop):
        total = multiply_add(one, load(table, bags.indices[k], column), total)
    share = np.float32(1 / (stop - start)) if mean and stop > start else np.float32(1)
    mean_of_rows = multiply_add(fill(share), total, zero)
    store(multiply_add(fill(scale), mean_of_rows, zero), pooled, row, first + column)


def _largest_of(lanes: int):
    """A function that finds, for so many lanes of columns, the largest numbers among the rows: the first of equals."""

    @intrinsic
    def largest(typing_context, indices, table, start, stop, ahead, column, floor, scale, winner, pooled, row, first):
        def generate(context, builder, signature, arguments):
            indices, table, start, stop, ahead, column, floor, scale, winner, pooled, row, first = arguments
            kinds = signature.args
            across = [builder.add(column, _INDEX(LANE * lane)) for lane in range(lanes)]

            def row_at(k):
                return builder.load(place_of(context, builder, kinds[0], indices, k))

            def lane_at(number, c):
                return lane_of(context, builder, kinds[1], table, builder.sext(number, _INDEX), c)

            best, which = _walk_bag(builder, row_at, lane_at, across, start, stop, ahead, floor)
            factor = broadcast(builder, scale)
            for c, numbers, labels in zip(across, best, which, strict=True):
                place = lane_of(context, builder, kinds[9], pooled, row, builder.add(first, c))
                builder.store(builder.fmul(factor, numbers), place, align=4)
                place = place_of(context, builder, kinds[8], winner, row, c)
                builder.store(labels, builder.bitcast(place, _LABELS.as_pointer()), align=4)
            return context.get_dummy_value()

        numbers = [types.int64] * 4 + [types.float32] * 2
        return types.none(indices, table, *numbers, winner, pooled, types.int64, types.int64), generate

    return largest


def _walk_bag(builder, row_at, lane_at, across, start, stop, ahead, floor):
    """The largest numbers above floor in the lanes `across` of rows start to stop of a bag, and their rows, else -1."""
    nothing = [broadcast(builder, floor)] * len(across) + [ir.Constant(_LABELS, [-1] * LANE)] * len(across)
    entry, loop, end = builder.block, builder.append_basic_block("rows"), builder.append_basic_block("pooled")
    builder.cbranch(builder.icmp_signed("<", start, stop), loop, end)
    builder.position_at_end(loop)
    k = builder.phi(_INDEX)
    before = [builder.phi(value.type) for value in nothing]
    final = builder.sub(stop, _INDEX(1))
    later = builder.add(k, ahead)
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
