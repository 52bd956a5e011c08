"""Bags so long that one program would be at them when all others are done: cut into pieces, and pooled once a step."""

import torch

from neural_brane.kernels.gpu import pool as gpu_pool
from neural_brane.kernels.gpu import shapes as gpu_frame
from neural_brane.kernels.gpu.shapes import INTERPRETED, Frame
from neural_brane.kernels.model import Bags, Model

LONG = 1024  # rows from which on a bag is cut up
LONG_AT_LARGE_BATCHES = 256  # which meet a hub again and again
MOST = 16_384  # bags of a kind, the longest, that are cut up: each takes memory
PIECE = 128  # rows that a program reads in a row
PROGRAMS = 1 if INTERPRETED else 2048  # that share the pieces
UNROLL = 8


def find_long_bags(bags: tuple[Bags, Bags], frame: Frame, steps: int, rows: int) -> "LongBags | None":
    """The long bags among a graph's of attributes and of neighbours, for steps of so many rows; None without any."""
    long = LONG if rows < 3 * gpu_frame.LARGE_BATCH else LONG_AT_LARGE_BATCHES
    nodes = [_longest(bag.indptr.diff(), long) for bag in bags]
    return LongBags(bags, nodes, frame, steps, rows) if any(map(len, nodes)) else None


def _longest(sizes: torch.Tensor, long: int) -> torch.Tensor:
    """The nodes with bags longer than that, or MOST of them."""
    nodes = torch.nonzero(sizes > long)[:, 0]
    return nodes if len(nodes) <= MOST else nodes[torch.topk(sizes[nodes], MOST).indices]


class LongBags:
    """The bags of some nodes, those of attributes first, for groups of steps.

    A hub is a neighbour of many, and so in a batch many times: its rows are read once for all of them. Piece p is the
    rows starts[p] to ends[p], of bag owners[p]. Of every step, which (2, rows) is the long bag of each row of the plan,
    -1 for none, and wanted (bags,) whether a bag is any of theirs.
    """

    def __init__(self, bags: tuple[Bags, Bags], nodes: list[torch.Tensor], frame: Frame, steps: int, rows: int):
        self.bags, self.frame = bags, frame
        device, total, both = bags[0].indptr.device, sum(map(len, nodes)), list(zip(bags, nodes, strict=True))
        first = torch.cat([bag.indptr[some] for bag, some in both])
        last = torch.cat([bag.indptr[some + 1] for bag, some in both])
        counts = (last - first + PIECE - 1) // PIECE
        self.owners = torch.repeat_interleave(counts)
        number = torch.arange(len(self.owners), device=device) - (counts.cumsum(0) - counts)[self.owners]
        self.starts = first[self.owners] + PIECE * number
        self.ends = torch.minimum(self.starts + PIECE, last[self.owners])
        self.first_neighbours = int(counts[: len(nodes[0])].sum())
        self._numbers = [_numbers(bag, some) for bag, some in both]
        self._numbers[1][nodes[1]] += len(nodes[0])
        self.which = torch.full((steps, 2, rows), -1, dtype=torch.int32, device=device)
        self._wanted = torch.zeros((steps, total + 1), dtype=torch.uint8, device=device)  # the first is for no bag
        self.keys = torch.zeros((total, frame.width), dtype=torch.int64, device=device)

    def fill(self, nodes: torch.Tensor) -> None:
        """Look up the long bags among those of nodes (≤ steps, rows)."""
        self._wanted.zero_()
        for side, numbers in enumerate(self._numbers):
            which = numbers[nodes]
            self.which[: len(nodes), side] = which
            self._wanted[: len(nodes)].scatter_(1, which.long() + 1, 1)

    def pool(self, step: int, model: Model) -> tuple[torch.Tensor, torch.Tensor]:
        """Launch the pooling of a step's long bags; returns what the pooling of all slots wants to know of it."""
        frame, tables = self.frame, (model.attribute_table, model.neighbour_table)
        self.keys.fill_(gpu_pool.NO_KEY.value)
        places = [(table, table.stride(0), bag.indices) for table, bag in zip(tables, self.bags, strict=True)]
        gpu_pool.pool_pieces[min(PROGRAMS, len(self.owners)),](
            *places[0], *places[1], self.owners, self.starts, self.ends, self._wanted[step, 1:], self.keys,
            self.first_neighbours, len(self.owners), frame.second, frame.padded,
            WIDTH=frame.width, UNROLL=UNROLL, COLUMNS=frame.block(), num_warps=1,
        )  # fmt: skip
        return self.which[step], self.keys


def _numbers(bags: Bags, nodes: torch.Tensor) -> torch.Tensor:
    """The place among `nodes` of every node of a graph, -1 for none."""
    numbers = torch.full((len(bags.indptr) - 1,), -1, dtype=torch.int32, device=nodes.device)
    numbers[nodes] = torch.arange(len(nodes), dtype=torch.int32, device=nodes.device)
    return numbers
