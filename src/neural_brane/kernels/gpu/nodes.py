"""Large batches with clearly more slots than the graph has nodes: a step computes each node's vector once."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from neural_brane.kernels.gpu.bundles import store_split
from neural_brane.kernels.gpu.large import LargeLayer, load_hidden, score_triplets
from neural_brane.kernels.gpu.layer import Context
from neural_brane.kernels.gpu.plan import BothSegments, Plan
from neural_brane.kernels.model import Array, Bags

TOGETHER = 2  # slots, or pieces, that a program reads at a time
WARPS = 1


class NodeSlots(NamedTuple):
    """A step's slots sorted by node and cut into pieces of one node each: piece p is order[pieces[p]:pieces[p + 1]]."""

    nodes: Array  # (slots,) int32: the node of each slot
    order: Array  # (slots,) int32: slots
    pieces: Array  # (pieces + 1,) int32


class NodePlan(Plan):
    """A plan with one vector per node of the graph; a node that a step does not meet has empty bags there.

    nodes (steps, slots), order (steps, slots) and pieces (steps, pieces) int32 are those of `NodeSlots`; node v has the
    pieces bounds[v] to bounds[v + 1] of bounds (steps, nodes + 1) int32.
    """

    def __init__(
        self, bags: tuple[Bags, Bags], table_rows: tuple[int, int], steps: int, slots: int, piece: int
    ):  # fmt: skip
        super().__init__(bags, table_rows, steps, slots, vectors=len(bags[1].indptr) - 1)
        starts = torch.stack([bag.indptr[:-1] for bag in bags])
        self.starts = starts.expand(steps, -1, -1)  # the same at every step
        self.piece = piece  # most slots of a piece
        self.most_pieces = self.vectors + slots // piece
        self._has_segments = False
        shapes = slots, slots, self.most_pieces + 2, self.vectors + 1
        arrays = [torch.zeros((steps, width), dtype=torch.int32, device=starts.device) for width in shapes]
        self.nodes, self.order, self.pieces, self.bounds = arrays

    def slots_by_node(self, step: int) -> NodeSlots:
        """A step's slots by node."""
        return NodeSlots(self.nodes[step], self.order[step], self.pieces[step])

    def nodes_of_vectors(self, triplets: torch.Tensor) -> torch.Tensor:
        """The nodes whose vectors the steps of triplets compute: all."""
        return torch.arange(self.vectors, device=triplets.device).expand(len(triplets), -1)

    def segments_of(self, step: int) -> BothSegments:
        """Which nodes pool each row of both tables: the same at every step."""
        return super().segments_of(0)

    def _locate(self, nodes: torch.Tensor) -> None:
        steps = len(nodes)
        key, order = torch.sort(nodes, dim=1, stable=True)
        self.nodes[:steps], self.order[:steps] = nodes, order
        every = torch.arange(self.vectors + 1, dtype=torch.int32, device=key.device).repeat(steps, 1)
        firsts = torch.searchsorted(key, every, out_int32=True)
        self._cut(key, firsts)
        for side, bag in enumerate(self.bags):
            self.sizes[:steps, side] = torch.where(firsts.diff() > 0, bag.indptr.diff(), 0)

    def _find_segments(self, steps: int) -> bool:
        """Find the segments of all nodes, once: a node that a step does not meet has no gradient there."""
        if self._has_segments:
            return False
        self._has_segments = True
        for found, bag in zip(self.segments, self.bags, strict=True):
            found.fill(bag.indptr[None, :-1], bag.indptr.diff()[None])
        return True

    def _cut(self, key: torch.Tensor, firsts: torch.Tensor) -> None:
        """Cut the sorted nodes (steps, slots) into pieces; firsts (steps, nodes + 1) is where each node begins."""
        steps = len(key)
        place = torch.arange(self.slots, dtype=torch.int32, device=key.device)
        opens = (place - firsts.gather(1, key.long())) % self.piece == 0
        # The piece that each place is in; one scan over all steps is faster than one per step.
        number = opens.flatten().cumsum(0, dtype=torch.int32).view_as(opens)
        number -= number[:, :1].clone()
        self.pieces[:steps] = self.slots
        spare = self.most_pieces + 1  # an entry that no piece uses: places that open none are written there
        self.pieces[:steps].scatter_(1, torch.where(opens, number, spare).long(), place.expand(steps, -1))
        self.bounds[:steps] = torch.nn.functional.pad(number + 1, (1, 0)).gather(1, firsts.long())


class NodeLayer(LargeLayer):
    """The launches at large batches with one vector per node: the slopes of a node's slots are added up."""

    def __init__(self, context: Context, plan: NodePlan):
        super().__init__(context)
        self.plan = plan
        self.pulls = context.allocate(self.batch)
        self.sums = context.allocate(plan.most_pieces, context.shape.hidden)

    def _differentiate(self, step: int) -> None:
        """Launch the kernels from W f to dL/dz."""
        bias, slots = self.arrays.bias, self.plan.slots_by_node(step)
        tiles = self.tiles._replace(rows=TOGETHER)
        score[self.losses.shape[1],](
            self.product, bias, slots.nodes, self.pulls, self.losses[step], self.batch, self.slope, TILES=self.tiles
        )
        add_pulls[self.plan.most_pieces,](
            self.product, bias, slots, self.pulls, self.sums, TILES=tiles, num_warps=WARPS
        )  # fmt: skip
        slope_of_nodes[self.vectors,](
            self.product, bias, slots.pieces, self.plan.bounds[step], self.sums, self.dz, self.slope,
            TILES=tiles, num_warps=WARPS,
        )  # fmt: skip


@triton.jit
def score(product, bias, nodes, pulls, losses, batch, slope, TILES: tl.constexpr):
    """Write each triplet's slope of the loss by its margin to pulls (batch,), and sums of −ln σ to losses.

    product (nodes, hidden) is W f, nodes (slots,) int32 are the triplets'; a program has TILES.rows triplets.
    """
    HIDDEN: tl.constexpr = TILES.hidden
    triplet = tl.program_id(0) * TILES.rows + tl.arange(0, TILES.rows)
    unit = tl.arange(0, TILES.units)[None, :]
    known = triplet < batch
    inside = known[:, None] & (unit < HIDDEN)
    b = tl.load(bias + unit, mask=unit < HIDDEN, other=0.0)
    u = load_hidden(product, tl.load(nodes + 3 * triplet, mask=known, other=0), unit, b, inside, HIDDEN)
    i = load_hidden(product, tl.load(nodes + 3 * triplet + 1, mask=known, other=0), unit, b, inside, HIDDEN)
    j = load_hidden(product, tl.load(nodes + 3 * triplet + 2, mask=known, other=0), unit, b, inside, HIDDEN)
    tl.store(pulls + triplet, score_triplets(u, i, j, known, slope.triplet_scale, losses), mask=known)


@triton.jit
def add_pulls(product, bias, slots, pulls, sums, TILES: tl.constexpr):
    """Add up the gradients by a node's hidden vector over one piece of its slots: sums (pieces, hidden).

    A program has one piece and reads TILES.rows slots at a time. The gradient by h_u is pull · (h_i − h_j), by h_i it
    is pull · h_u, and by h_j −pull · h_u.
    """
    HIDDEN: tl.constexpr = TILES.hidden
    SLOTS: tl.constexpr = TILES.rows
    UNITS: tl.constexpr = TILES.units
    piece = tl.program_id(0)
    start, last = tl.load(slots.pieces + piece), tl.load(slots.pieces + piece + 1)
    if start == last:
        return
    unit = tl.arange(0, UNITS)[None, :]
    b = tl.load(bias + unit, mask=unit < HIDDEN, other=0.0)
    total = tl.zeros([SLOTS, UNITS], tl.float32)
    for first in range(start, last, SLOTS):
        place = first + tl.arange(0, SLOTS)
        live = place < last
        slot = tl.load(slots.order + place, mask=live, other=0)
        triplet, is_u = slot // 3, slot % 3 == 0
        pull = tl.load(pulls + triplet, mask=live, other=0.0)
        pull = tl.where(slot % 3 == 2, -pull, pull)[:, None]
        other = tl.load(slots.nodes + 3 * triplet + tl.where(is_u, 1, 0), mask=live, other=0)
        j = tl.load(slots.nodes + 3 * triplet + 2, mask=live & is_u, other=0)
        h = load_hidden(product, other, unit, b, live[:, None] & (unit < HIDDEN), HIDDEN)
        h_j = load_hidden(product, j, unit, b, (live & is_u)[:, None] & (unit < HIDDEN), HIDDEN)
        total += pull * tl.where(is_u[:, None], h - h_j, h)
    tl.store(sums + piece.to(tl.int64) * HIDDEN + unit, tl.sum(total, 0)[None, :], mask=unit < HIDDEN)


@triton.jit
def slope_of_nodes(product, bias, pieces, bounds, sums, dz, slope, TILES: tl.constexpr):
    """dz (Split; nodes, hidden) = dL/dz of each node, from the sums of its pieces: one program per node.

    Node v has the pieces bounds[v] to bounds[v + 1].
    """
    HIDDEN: tl.constexpr = TILES.hidden
    PIECES: tl.constexpr = TILES.rows
    UNITS: tl.constexpr = TILES.units
    node = tl.program_id(0)
    start, last = tl.load(bounds + node), tl.load(bounds + node + 1)
    unit = tl.arange(0, UNITS)[None, :]
    inside = unit < HIDDEN
    total = tl.zeros([PIECES, UNITS], tl.float32)
    for first in range(start, last, PIECES):
        piece = first + tl.arange(0, PIECES)[:, None]
        total += tl.load(sums + piece.to(tl.int64) * HIDDEN + unit, mask=(piece < last) & inside, other=0.0)
    count = tl.load(pieces + last) - tl.load(pieces + start)
    at = node.to(tl.int64) * HIDDEN + unit
    b = tl.load(bias + unit, mask=inside, other=0.0)
    h = tl.maximum(tl.load(product + at, mask=inside, other=0.0) + b, 0.0)
    gradient = tl.sum(total, 0)[None, :] + slope.shrink * count * h
    store_split(dz.data + at, dz.plane, tl.where(h > 0, gradient, 0.0), inside)
