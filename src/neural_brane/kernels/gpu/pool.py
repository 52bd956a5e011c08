"""Pool each bag's rows of both tables to one vector, and plan the bags of a group of steps.

A slot is a place in a batch: slot 3t + role of triplet t, with roles 0, 1, 2 for u, i, j. A step computes one vector
per slot or, in some large batches, one per node. A vector's row has `width` columns: the attributes' part, then the
neighbours' part.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from neural_brane.kernels import model as types
from neural_brane.kernels.gpu.bundles import INTERPRETED, Limits, Shape, Spans, TablePair, store_split
from neural_brane.kernels.model import Array, Bags, Settings

MAX, MEAN = tl.constexpr(types.MAX), tl.constexpr(types.MEAN)
NO_ROW = tl.constexpr(2**31 - 1)
NO_KEY = tl.constexpr(-(2**63))
SECTOR = 8  # numbers in the smallest unit of a memory read
POOL_WARPS = 1  # warps per program
NUMBERS = 128  # numbers that a program reads at a time, four per thread; several rows of a narrow table
UNROLL = 8  # reads issued together


class PoolSide(NamedTuple):
    """Compile-time options for pooling one table."""

    number: int  # 0: attributes, 1: neighbours
    first: int  # first column of this table's part in a vector's row
    span: int  # columns of the part, with padding
    dim: int  # columns of the part, without padding
    read: int  # columns read: whole sectors, so that loads are vectorised
    rows: int  # table rows that a program reads at a time
    columns: int  # columns per program, a power of two
    strips: int  # programs that share the columns
    unroll: int  # reads issued together

    @classmethod
    def of(cls, number: int, shape: Shape, columns: int | None) -> "PoolSide":
        """Return the options for table `number`; columns: columns per program, None for all columns."""
        first, dim = number * shape.d1_padded, (shape.d1, shape.d2)[number]
        span = (shape.d1_padded, shape.width - shape.d1_padded)[number]
        columns = columns or triton.next_power_of_2(max(span, 1))
        rows, read = max(1, NUMBERS // columns), -(-dim // SECTOR) * SECTOR
        return cls(number, first, span, dim, read, rows, columns, triton.cdiv(span, columns), UNROLL)


class PoolWork(NamedTuple):
    """Compile-time options for pooling both tables."""

    attributes: PoolSide
    neighbours: PoolSide
    width: int  # width of a vector's row
    pooling: int
    zero_floor: bool  # adds a row of zeros to every bag in max pooling
    ahead: bool  # the launch may start before the previous launch ends

    @classmethod
    def of(cls, shape: Shape, settings: Settings, columns: int | None = None) -> "PoolWork":
        """Return the options for a model, with ahead=False; columns: columns per program, None for all columns."""
        attributes, neighbours = (PoolSide.of(number, shape, columns) for number in range(2))
        return cls(attributes, neighbours, shape.width, settings.pooling, settings.zero_floor, ahead=False)

    def strips(self) -> int:
        """Return the number of programs that share a vector's columns."""
        return self.attributes.strips + self.neighbours.strips


@triton.jit
def wait_for_launch(AHEAD: tl.constexpr):
    """Wait for the previous launch, if this one may start AHEAD of its end; then let the next launch start."""
    if AHEAD:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def pool(tables, spans, pooled, WORK: tl.constexpr):
    """Pool a strip of columns of one vector, from tables (`TablePair`) and spans (`Spans`), into pooled (`Pooled`)."""
    strip = tl.program_id(1)
    ATTRIBUTES: tl.constexpr = WORK.attributes
    NEIGHBOURS: tl.constexpr = WORK.neighbours
    if strip < ATTRIBUTES.strips:
        _pool_bag(tables.attributes, spans, pooled, strip, WORK, ATTRIBUTES)
    else:
        _pool_bag(tables.neighbours, spans, pooled, strip - ATTRIBUTES.strips, WORK, NEIGHBOURS)


@triton.jit
def _pool_bag(table, spans, pooled, strip, WORK: tl.constexpr, SIDE: tl.constexpr):
    """Pool one strip of columns of one bag into pooled (`Pooled`)."""
    slot = tl.program_id(0).to(tl.int64)
    bag = SIDE.number * spans.vectors + slot
    at = slot * WORK.width + SIDE.first
    size = tl.load(spans.sizes + bag)
    columns = strip * SIDE.columns + tl.arange(0, SIDE.columns)
    rows_to_read = size
    if spans.hubs is not None:
        hub = tl.load(spans.hubs + bag)
        rows_to_read = tl.where(hub < 0, size, 0)
    rows = table.indices + tl.load(spans.starts + bag)
    best, best_rows = read_rows(table, rows, rows_to_read, columns, WORK, SIDE)
    if WORK.pooling == MAX:
        top, first = largest(best, best_rows)
        if spans.hubs is not None:  # noqa: SIM102  (known when compiling)
            if hub >= 0:
                keys = spans.maxima + hub.to(tl.int64) * WORK.width + columns
                top, first = unpack(tl.load(keys, mask=columns < SIDE.read, other=NO_KEY))
        won = (columns < SIDE.dim) & (top > (0.0 if WORK.zero_floor else float("-inf")))
        result = tl.where(won, top * spans.scale, 0.0)
        tl.store(pooled.winner + at + columns, tl.where(won, first, -1), mask=columns < SIDE.span)
    else:
        result = tl.sum(best, 0) * spans.scale
        if WORK.pooling == MEAN:
            result /= tl.maximum(size, 1)
    if pooled.plane is not None:
        store_split(pooled.data + at + columns, pooled.plane, result, columns < SIDE.span)
    else:
        tl.store(pooled.data + at + columns, result, mask=columns < SIDE.span)


@triton.jit
def read_rows(table, rows, size, columns, WORK: tl.constexpr, SIDE: tl.constexpr):
    """Reduce some columns of a table's rows (size,) to SIDE.rows partial results, one per row that is read at a time.

    Returns the largest numbers and their rows for max pooling, otherwise the sums, each (SIDE.rows, SIDE.columns). Row
    numbers are planned before any step, so they are read before the previous launch ends.
    """
    ROWS: tl.constexpr = SIDE.rows
    UNROLL: tl.constexpr = SIDE.unroll
    present = (columns < SIDE.read)[None, :]
    missing = float("-inf") if WORK.pooling == MAX else 0.0
    best = tl.full([ROWS, SIDE.columns], missing, tl.float32)
    best_rows = tl.full([ROWS, SIDE.columns], NO_ROW, tl.int32)
    places = tl.arange(0, ROWS)
    next_rows = tl.load(rows + places, mask=places < size, other=0)
    wait_for_launch(WORK.ahead)
    for _ in range(0, size, ROWS * UNROLL):
        for _turn in tl.static_range(UNROLL):
            row, more = next_rows, places < size
            at = row.to(tl.int64)[:, None] * table.stride + columns[None, :]
            values = tl.load(table.rows + at, mask=more[:, None] & present, other=missing)
            places += ROWS
            next_rows = tl.load(rows + places, mask=places < size, other=0)
            if WORK.pooling == MAX:
                greater = values > best
                best = tl.where(greater, values, best)
                best_rows = tl.where(greater, row[:, None], best_rows)
            else:
                best += values
    return best, best_rows


@triton.jit
def largest(best, best_rows):
    """Return the largest number of each column and its row; like the reference, the smallest row among equals."""
    top = tl.max(best, 0)
    return top, tl.min(tl.where(best == top[None, :], best_rows, NO_ROW), 0)


@triton.jit
def pack(value, row):
    """Return a number and its row as one int64, larger for a larger number and, among equals, for a smaller row."""
    bits = value.to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & NO_ROW)
    return (ordered.to(tl.int64) << 32) | (row ^ NO_ROW).to(tl.int64)


@triton.jit
def unpack(key):
    """Return the number and the row that `pack` has packed."""
    ordered = (key >> 32).to(tl.int32)
    bits = ordered ^ ((ordered >> 31) & NO_ROW)
    return bits.to(tl.float32, bitcast=True), (key & NO_ROW).to(tl.int32) ^ NO_ROW


BLOCK = 1024  # slots per program of `_locate`


class SegmentArrays(NamedTuple):
    """The arrays of `Segments` that `gather` reads: for each row of a table, the vectors that pool it."""

    bounds: Array  # (≥ 2,) int64: a step has the segments bounds[0] … bounds[1] - 1
    rows: Array  # (segments,) int64: table row of each segment
    ends: Array  # (segments + 1,) int64: segment s is entries[ends[s]:ends[s + 1]]
    entries: Array  # (entries,) int32: vectors


class BothSegments(NamedTuple):
    """The segments of both tables."""

    attributes: SegmentArrays
    neighbours: SegmentArrays


class Plan:
    """The bags of a group's steps, at fixed addresses; starts and sizes have the shape (steps, 2, vectors)."""

    def __init__(
        self, bags: tuple[Bags, Bags], table_rows: tuple[int, int], steps: int, slots: int, vectors: int | None = None
    ):
        self.bags, self.steps, self.slots = bags, steps, slots
        self.vectors = slots if vectors is None else vectors
        shape, device = (steps, 2, self.vectors), bags[0].indptr.device
        self.starts = torch.zeros(shape, dtype=torch.int64, device=device)
        self.sizes = torch.zeros(shape, dtype=torch.int32, device=device)
        self.segments = [Segments(bag, rows, steps, self.vectors) for bag, rows in zip(bags, table_rows, strict=True)]

    def fill(self, triplets: torch.Tensor, *, segments: bool) -> bool:
        """Plan the steps of triplets (≤ steps, batch, 3) int32; return True if memory was allocated again."""
        self._locate(triplets.reshape(len(triplets), self.slots))
        return segments and self._find_segments(len(triplets))

    def spans(self, step: int) -> Spans:
        """Return the bags of a step."""
        return Spans(self.starts[step], self.sizes[step], self.vectors)

    def segments_of(self, step: int) -> BothSegments:
        """Return, for each row of both tables, the vectors of a step that pool it."""
        arrays = [SegmentArrays(one.bounds[step:], one.rows, one.ends, one.entries) for one in self.segments]
        return BothSegments(*arrays)

    def nodes_of_vectors(self, triplets: torch.Tensor) -> torch.Tensor:
        """Return the node of every vector that the steps of triplets compute, (steps, vectors)."""
        return triplets.reshape(len(triplets), self.vectors)

    def _locate(self, nodes: torch.Tensor) -> None:
        """Write starts and sizes for nodes (≤ steps, slots) int32, the node of each slot."""
        locate(self.bags, nodes, self.starts[: len(nodes)], self.sizes[: len(nodes)])

    def _find_segments(self, steps: int) -> bool:
        """Find the segments of the first steps; return True if memory was allocated again."""
        starts, sizes = self.starts[:steps], self.sizes[:steps]
        moved = [one.fill(starts[:, side], sizes[:, side]) for side, one in enumerate(self.segments)]
        return any(moved)


class Segments:
    """A group's bags transposed: for each step and each row of a table, the vectors that pool it, in order.

    Segment s has the table row rows[s] and the vectors entries[ends[s]:ends[s + 1]]. Step t has the segments bounds[t]
    … bounds[t + 1] - 1.
    """

    def __init__(self, bags: Bags, table_rows: int, steps: int, vectors: int):
        self.bags, self.table_rows, self.vectors = bags, max(table_rows, 1), vectors
        self.bounds = torch.zeros(steps + 1, dtype=torch.int64, device=bags.indptr.device)
        self._make_room(0)

    def _make_room(self, entries: int) -> None:
        room = entries * 5 // 4
        self.rows = torch.zeros(room, dtype=torch.int64, device=self.bounds.device)
        self.ends = torch.zeros(room + 1, dtype=torch.int64, device=self.bounds.device)
        self.entries = torch.zeros(room, dtype=torch.int32, device=self.bounds.device)

    def fill(self, starts: torch.Tensor, sizes: torch.Tensor) -> bool:
        """Transpose bags, given starts and sizes (steps, vectors); return True if memory was allocated again."""
        counts = sizes.reshape(-1).long()
        total = int(counts.sum())
        moved = total > len(self.entries)
        if moved:
            self._make_room(total)
        owner = torch.repeat_interleave(counts, output_size=total)
        shift = starts.reshape(-1) - (counts.cumsum(0) - counts)
        row = self.bags.indices[torch.arange(total, device=owner.device) + shift[owner]]
        key, order = torch.sort(owner // self.vectors * self.table_rows + row, stable=True)
        key, lengths = torch.unique_consecutive(key, return_counts=True)
        self.entries[:total] = owner[order] % self.vectors
        self.rows[: len(key)] = key % self.table_rows
        torch.cumsum(lengths, 0, out=self.ends[1 : len(key) + 1])
        steps = torch.arange(len(starts) + 1, device=key.device)
        self.bounds[: len(steps)] = torch.searchsorted(key, steps * self.table_rows)
        return moved


class NodeSlots(NamedTuple):
    """A step's slots by node, cut into pieces of one node each: piece p has slots order[pieces[p]:pieces[p + 1]]."""

    nodes: Array  # (slots,) int32: the node of each slot
    order: Array  # (slots,) int32: slots sorted by node
    pieces: Array  # (pieces + 1,) int32: start of each piece in order
    bounds: Array  # (nodes + 1,) int32: node v has the pieces bounds[v] … bounds[v + 1] - 1
    triplets: int


class NodePlan(Plan):
    """A plan with one vector per node, and `NodeSlots` for each step; nodes outside a batch have empty bags."""

    def __init__(
        self, bags: tuple[Bags, Bags], table_rows: tuple[int, int], steps: int, slots: int, piece: int
    ):  # fmt: skip
        super().__init__(bags, table_rows, steps, slots, vectors=len(bags[1].indptr) - 1)
        starts = torch.stack([bag.indptr[:-1] for bag in bags])
        self.starts = starts.expand(steps, -1, -1)  # every step has the same starts
        self.piece = piece  # most slots per piece
        self.most_pieces = self.vectors + slots // piece
        self._has_segments = False
        shapes = slots, slots, self.most_pieces + 2, self.vectors + 1
        arrays = [torch.zeros((steps, width), dtype=torch.int32, device=starts.device) for width in shapes]
        self.nodes, self.order, self.pieces, self.bounds = arrays

    def slots_by_node(self, step: int) -> NodeSlots:
        """Return a step's slots, sorted by node."""
        return NodeSlots(self.nodes[step], self.order[step], self.pieces[step], self.bounds[step], self.slots // 3)

    def nodes_of_vectors(self, triplets: torch.Tensor) -> torch.Tensor:
        """Return the node of every vector, (steps, vectors): every step computes the vectors of all nodes."""
        return torch.arange(self.vectors, device=triplets.device).expand(len(triplets), -1)

    def segments_of(self, step: int) -> BothSegments:
        """Return, for each row of both tables, the nodes that pool it, which are the same at every step."""
        return super().segments_of(0)

    def _locate(self, nodes: torch.Tensor) -> None:
        steps = len(nodes)
        key, order = torch.sort(nodes, dim=1, stable=True)
        self.nodes[:steps], self.order[:steps] = nodes, order
        every = torch.arange(self.vectors + 1, dtype=torch.int32, device=key.device).repeat(steps, 1)
        firsts = torch.searchsorted(key, every, out_int32=True)
        for side, bag in enumerate(self.bags):
            self.sizes[:steps, side] = torch.where(firsts.diff() > 0, bag.indptr.diff(), 0)
        # Cut the sorted slots into pieces. One scan over all steps numbers the pieces.
        place = torch.arange(self.slots, dtype=torch.int32, device=key.device)
        opens = (place - firsts.gather(1, key.long())) % self.piece == 0
        number = opens.flatten().cumsum(0, dtype=torch.int32).view_as(opens)
        number -= number[:, :1].clone()
        self.pieces[:steps] = self.slots
        spare = self.most_pieces + 1  # unused entry, written by places that open no piece
        self.pieces[:steps].scatter_(1, torch.where(opens, number, spare).long(), place.expand(steps, -1))
        self.bounds[:steps] = torch.nn.functional.pad(number + 1, (1, 0)).gather(1, firsts.long())

    def _find_segments(self, steps: int) -> bool:
        """Find the segments of all nodes once; nodes outside a batch have no gradient in that step."""
        if self._has_segments:
            return False
        self._has_segments = True
        for segments, bag in zip(self.segments, self.bags, strict=True):
            segments.fill(bag.indptr[None, :-1], bag.indptr.diff()[None])
        return True


def most_shared(bags: Bags, vectors: int) -> float:
    """Return the average number of a step's vectors that pool the row found in most bags."""
    return int(torch.bincount(bags.indices).max()) * vectors / (len(bags.indptr) - 1) if len(bags.indices) else 0.0


def locate(bags: tuple[Bags, Bags], nodes: torch.Tensor, starts: torch.Tensor, sizes: torch.Tensor) -> None:
    """Write the starts and sizes, each (steps, 2, slots), of both bags of nodes (steps, slots) int32."""
    spans = Spans(starts, sizes, nodes.shape[1])
    _locate[triton.cdiv(nodes.numel(), BLOCK),](
        nodes, bags[0].indptr, bags[1].indptr, spans, nodes.numel(), BLOCK=BLOCK
    )


@triton.jit
def _locate(nodes, attribute_indptr, neighbour_indptr, spans, count, BLOCK: tl.constexpr):
    """Write spans (`Spans` with a leading dimension of steps) of nodes (count,) int32."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < count
    node = tl.load(nodes + at, mask=live, other=0).to(tl.int64)
    to = 2 * (at // spans.vectors) * spans.vectors + at % spans.vectors
    start = tl.load(attribute_indptr + node)
    tl.store(spans.starts + to, start, mask=live)
    tl.store(spans.sizes + to, tl.load(attribute_indptr + node + 1) - start, mask=live)
    start = tl.load(neighbour_indptr + node)
    tl.store(spans.starts + to + spans.vectors, start, mask=live)
    tl.store(spans.sizes + to + spans.vectors, tl.load(neighbour_indptr + node + 1) - start, mask=live)


# Hubs are nodes with such long bags that pooling one would take longer than all others. They are cut into pieces.
#
# A hub is a neighbour of many nodes, so it is in a batch many times. Its bag is pooled only once per step.

PROGRAMS = 1 if INTERPRETED else 2048  # programs that share the pieces


class Pieces(NamedTuple):
    """The pieces of all hubs' bags: piece p has the rows indices[starts[p]:ends[p]] of hub owners[p]."""

    owners: Array  # (pieces,) int64
    starts: Array  # (pieces,) int64
    ends: Array  # (pieces,) int64
    total: int
    first_neighbours: int  # first piece of neighbours; pieces of attributes come before it


def find_hubs(bags: tuple[Bags, Bags], shape: Shape, steps: int, vectors: int, limits: Limits) -> "Hubs | None":
    """Return the hubs among a graph's bags of attributes and of neighbours, or None if there are none."""
    rows = limits.hub_rows if vectors < 3 * limits.large_batch else limits.hub_rows_at_large_batches
    nodes = []
    for bag in bags:
        sizes = bag.indptr.diff()
        long = torch.nonzero(sizes > rows)[:, 0]
        nodes.append(long if len(long) <= limits.most_hubs else long[torch.topk(sizes[long], limits.most_hubs).indices])
    return Hubs(bags, nodes, shape, (steps, vectors), limits.hub_piece) if any(map(len, nodes)) else None


class Hubs:
    """The bags of hubs, attributes before neighbours, and the hubs in each step of a group."""

    def __init__(
        self, bags: tuple[Bags, Bags], nodes: list[torch.Tensor], shape: Shape, group: tuple[int, int], piece: int
    ):
        device, total = bags[0].indptr.device, sum(map(len, nodes))
        steps, vectors = group
        first, last = (
            torch.cat([bag.indptr[hubs + end] for bag, hubs in zip(bags, nodes, strict=True)]) for end in (0, 1)
        )
        counts = (last - first + piece - 1) // piece
        owners = torch.repeat_interleave(counts)
        number = torch.arange(len(owners), device=device) - (counts.cumsum(0) - counts)[owners]
        starts = first[owners] + piece * number
        ends = torch.minimum(starts + piece, last[owners])
        self.pieces = Pieces(owners, starts, ends, len(owners), int(counts[: len(nodes[0])].sum()))
        columns = shape.block()
        attributes, neighbours = (  # a program reads whole rows, one at a time
            PoolSide(number, 0, width, width, read=width, rows=1, columns=columns, strips=1, unroll=UNROLL)
            for number, width in enumerate((shape.d1_padded, shape.d2_padded))
        )
        self.work = PoolWork(attributes, neighbours, shape.width, types.MAX, zero_floor=False, ahead=False)
        # The hub number of every node, -1 for other nodes.
        self._numbers = [torch.full((len(bag.indptr) - 1,), -1, dtype=torch.int32, device=device) for bag in bags]
        self._numbers[0][nodes[0]] = torch.arange(len(nodes[0]), dtype=torch.int32, device=device)
        self._numbers[1][nodes[1]] = torch.arange(len(nodes[0]), total, dtype=torch.int32, device=device)
        self._hub_of_vector = torch.full((steps, 2, vectors), -1, dtype=torch.int32, device=device)
        self._present = torch.zeros((steps, total + 1), dtype=torch.uint8, device=device)  # column 0 means no hub
        self.keys = torch.zeros((total, shape.width), dtype=torch.int64, device=device)

    def fill(self, nodes: torch.Tensor) -> None:
        """Find the hubs among nodes (≤ steps, vectors)."""
        self._present.zero_()
        for side, numbers in enumerate(self._numbers):
            hubs = numbers[nodes]
            self._hub_of_vector[: len(nodes), side] = hubs
            self._present[: len(nodes)].scatter_(1, hubs.long() + 1, 1)

    def pool(self, step: int, tables: TablePair, spans: Spans) -> Spans:
        """Launch the pooling of a step's hubs; return its spans with the hubs and their maxima."""
        self.keys.fill_(NO_KEY.value)
        pool_pieces[min(PROGRAMS, self.pieces.total),](
            tables, self.pieces, self._present[step, 1:], self.keys, WORK=self.work, num_warps=1
        )
        return spans._replace(hubs=self._hub_of_vector[step], maxima=self.keys)


@triton.jit
def pool_pieces(tables, pieces, present_hubs, keys, WORK: tl.constexpr):
    """Max-pool the pieces (`Pieces`) of present hubs into keys (hubs, width) int64, which must start as NO_KEY."""
    ATTRIBUTES: tl.constexpr = WORK.attributes
    NEIGHBOURS: tl.constexpr = WORK.neighbours
    columns = tl.arange(0, ATTRIBUTES.columns)
    for piece in range(tl.program_id(0), pieces.total, tl.num_programs(0)):
        hub = tl.load(pieces.owners + piece)
        if tl.load(present_hubs + hub) > 0:
            start = tl.load(pieces.starts + piece)
            size = (tl.load(pieces.ends + piece) - start).to(tl.int32)
            if piece < pieces.first_neighbours:
                present = columns < ATTRIBUTES.read
                best, best_rows = read_rows(
                    tables.attributes, tables.attributes.indices + start, size, columns, WORK, ATTRIBUTES
                )
            else:
                present = columns < NEIGHBOURS.read
                best, best_rows = read_rows(
                    tables.neighbours, tables.neighbours.indices + start, size, columns, WORK, NEIGHBOURS
                )
            top, first = largest(best, best_rows)
            tl.atomic_max(keys + hub * WORK.width + columns, pack(top, first), mask=present, sem="relaxed")
