"""Hubs: bags so long that pooling one would outlast all others. They are cut into pieces and pooled once per step.

A hub is a neighbour of many nodes, so it is in a batch many times: its rows are read once for all of these.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from neural_brane.kernels.gpu.bundles import HubMaxima, Tables
from neural_brane.kernels.gpu.device import INTERPRETED
from neural_brane.kernels.gpu.limits import Limits
from neural_brane.kernels.gpu.pool import NO_KEY, PoolSide, PoolWork, largest, pack, read_rows
from neural_brane.kernels.gpu.shapes import Shape
from neural_brane.kernels.model import MAX, Array, Bags

PROGRAMS = 1 if INTERPRETED else 2048  # that share the pieces
UNROLL = 8


class Pieces(NamedTuple):
    """The pieces of all hubs' bags: piece p is the rows indices[starts[p]:ends[p]] of hub owners[p]."""

    owners: Array  # (pieces,) int64
    starts: Array  # (pieces,) int64
    ends: Array  # (pieces,) int64
    total: int
    first_neighbours: int  # pieces of attributes come before this one, pieces of neighbours from it on


def find_hubs(bags: tuple[Bags, Bags], shape: Shape, steps: int, vectors: int, limits: Limits) -> "Hubs | None":
    """The hubs among a graph's bags of attributes and of neighbours, or None where there is none."""
    rows = limits.hub_rows if vectors < 3 * limits.large_batch else limits.hub_rows_at_large_batches
    nodes = [_longest(bag.indptr.diff(), rows, limits.most_hubs) for bag in bags]
    return Hubs(bags, nodes, shape, (steps, vectors), limits.hub_piece) if any(map(len, nodes)) else None


def _longest(sizes: torch.Tensor, rows: int, most: int) -> torch.Tensor:
    """The nodes whose bags have more than `rows` rows; only the longest `most` of them."""
    nodes = torch.nonzero(sizes > rows)[:, 0]
    return nodes if len(nodes) <= most else nodes[torch.topk(sizes[nodes], most).indices]


class Hubs:
    """The hubs' bags, attributes' first, and which of them each step of a group meets."""

    def __init__(
        self, bags: tuple[Bags, Bags], nodes: list[torch.Tensor], shape: Shape, group: tuple[int, int], piece: int
    ):
        device, total = bags[0].indptr.device, sum(map(len, nodes))
        steps, vectors = group
        self.pieces = _cut(bags, nodes, piece)
        self.work = _piece_work(shape)
        self._numbers = [_number(bag, hubs) for bag, hubs in zip(bags, nodes, strict=True)]
        self._numbers[1][nodes[1]] += len(nodes[0])
        self._of_vectors = torch.full((steps, 2, vectors), -1, dtype=torch.int32, device=device)
        self._met = torch.zeros((steps, total + 1), dtype=torch.uint8, device=device)  # column 0 stands for no hub
        self.keys = torch.zeros((total, shape.width), dtype=torch.int64, device=device)

    def fill(self, nodes: torch.Tensor) -> None:
        """Look up the hubs among nodes (≤ steps, vectors)."""
        self._met.zero_()
        for side, numbers in enumerate(self._numbers):
            found = numbers[nodes]
            self._of_vectors[: len(nodes), side] = found
            self._met[: len(nodes)].scatter_(1, found.long() + 1, 1)

    def pool(self, step: int, tables: Tables) -> HubMaxima:
        """Launch the pooling of the hubs that a step meets; returns what the pooling of all vectors reads of it."""
        self.keys.fill_(NO_KEY.value)
        pool_pieces[min(PROGRAMS, self.pieces.total),](
            tables, self.pieces, self._met[step, 1:], self.keys, WORK=self.work, num_warps=1
        )
        return HubMaxima(self._of_vectors[step], self.keys)


def _cut(bags: tuple[Bags, Bags], nodes: list[torch.Tensor], piece: int) -> Pieces:
    """Cut the bags of hubs, given for both tables as nodes, into pieces of at most `piece` rows."""
    both = list(zip(bags, nodes, strict=True))
    first = torch.cat([bag.indptr[hubs] for bag, hubs in both])
    last = torch.cat([bag.indptr[hubs + 1] for bag, hubs in both])
    counts = (last - first + piece - 1) // piece
    owners = torch.repeat_interleave(counts)
    number = torch.arange(len(owners), device=owners.device) - (counts.cumsum(0) - counts)[owners]
    starts = first[owners] + piece * number
    ends = torch.minimum(starts + piece, last[owners])
    return Pieces(owners, starts, ends, len(owners), int(counts[: len(nodes[0])].sum()))


def _number(bags: Bags, hubs: torch.Tensor) -> torch.Tensor:
    """Every node's position among hubs, -1 where it is none."""
    numbers = torch.full((len(bags.indptr) - 1,), -1, dtype=torch.int32, device=hubs.device)
    numbers[hubs] = torch.arange(len(hubs), dtype=torch.int32, device=hubs.device)
    return numbers


def _piece_work(shape: Shape) -> PoolWork:
    """Pieces are read whole, one row at a time."""
    columns = shape.block()
    attributes, neighbours = (
        PoolSide(number, 0, width, width, read=width, rows=1, columns=columns, strips=1, unroll=UNROLL)
        for number, width in enumerate((shape.d1_padded, shape.d2_padded))
    )
    return PoolWork(attributes, neighbours, shape.width, MAX, zero_floor=False, ahead=False)


@triton.jit
def pool_pieces(tables, pieces, met, keys, WORK: tl.constexpr):
    """Max-pool pieces (Pieces) of the hubs' bags into keys (hubs, width) int64, which start as NO_KEY.

    Hubs that are not met (hubs,) are left out. Programs take turns at the pieces.
    """
    ATTRIBUTES: tl.constexpr = WORK.attributes
    NEIGHBOURS: tl.constexpr = WORK.neighbours
    columns = tl.arange(0, ATTRIBUTES.columns)
    for piece in range(tl.program_id(0), pieces.total, tl.num_programs(0)):
        hub = tl.load(pieces.owners + piece)
        if tl.load(met + hub) > 0:
            start = tl.load(pieces.starts + piece)
            size = (tl.load(pieces.ends + piece) - start).to(tl.int32)
            if piece < pieces.first_neighbours:
                present = columns < ATTRIBUTES.read
                best, who = read_rows(
                    tables.attributes, tables.attributes.indices + start, size, columns, WORK, ATTRIBUTES
                )
            else:
                present = columns < NEIGHBOURS.read
                best, who = read_rows(
                    tables.neighbours, tables.neighbours.indices + start, size, columns, WORK, NEIGHBOURS
                )
            top, first = largest(best, who)
            tl.atomic_max(keys + hub * WORK.width + columns, pack(top, first), mask=present, sem="relaxed")
