"""What a group of steps reads that does not depend on the model, worked out ahead of the steps, in bulk."""

import torch
import triton
import triton.language as tl

from neural_brane.kernels.model import Bags

BLOCK = 1024  # slots that a program locates


class Plan:
    """Where the bags of a group of steps lie; the memory stays in place, so captured launches can read it.

    A step computes `rows` vectors, here one for each slot. starts (steps, 2, rows) int64 and sizes (steps, 2, rows)
    int32 are of the attributes' bags and the neighbours'.
    """

    def __init__(
        self, bags: tuple[Bags, Bags], table_rows: tuple[int, int], steps: int, slots: int, rows: int | None = None
    ):
        self.bags, self.steps, self.slots = bags, steps, slots
        self.rows = slots if rows is None else rows
        shape, device = (steps, 2, self.rows), bags[0].indptr.device
        self.starts = torch.zeros(shape, dtype=torch.int64, device=device)
        self.sizes = torch.zeros(shape, dtype=torch.int32, device=device)
        self.segments = [Segments(bag, size, steps, self.rows) for bag, size in zip(bags, table_rows, strict=True)]

    def fill(self, triplets: torch.Tensor, *, segments: bool) -> bool:
        """Plan the steps of triplets (≤ steps, batch, 3). Returns whether memory had to move."""
        self._locate(triplets.reshape(len(triplets), self.slots))
        return segments and self._turn_round(len(triplets))

    def segments_of(self, step: int) -> list[tuple[torch.Tensor, ...]]:
        """Of both tables: where the step's segments lie, and all segments' rows, ends and entries."""
        return [(found.bounds[step:], found.rows, found.ends, found.entries) for found in self.segments]

    def nodes_of_rows(self, triplets: torch.Tensor) -> torch.Tensor:
        """The nodes whose vectors the steps of triplets compute, (steps, rows)."""
        return triplets.reshape(len(triplets), self.rows)

    def _locate(self, nodes: torch.Tensor) -> None:
        """Write starts and sizes of the steps whose slots' nodes (≤ steps, slots) are given."""
        locate(self.bags, nodes, self.starts[: len(nodes)], self.sizes[: len(nodes)])

    def _turn_round(self, steps: int) -> bool:
        """Find the segments of so many steps. Returns whether memory had to move."""
        starts, sizes = self.starts[:steps], self.sizes[:steps]
        moved = [found.fill(starts[:, side], sizes[:, side]) for side, found in enumerate(self.segments)]
        return any(moved)


class Segments:
    """A group's bags turned round: for each step and row of a table, the slots that pool the row, in order.

    Segment s is row rows[s] and the slots entries[ends[s]:ends[s + 1]]; step t has segments bounds[t] to bounds[t + 1].
    """

    def __init__(self, bags: Bags, table_rows: int, steps: int, slots: int):
        self.bags, self.table_rows, self.slots = bags, max(table_rows, 1), slots
        self.bounds = torch.zeros(steps + 1, dtype=torch.int64, device=bags.indptr.device)
        self._make_room(0)

    def _make_room(self, entries: int) -> None:
        room = entries * 5 // 4
        self.rows = torch.zeros(room, dtype=torch.int64, device=self.bounds.device)
        self.ends = torch.zeros(room + 1, dtype=torch.int64, device=self.bounds.device)
        self.entries = torch.zeros(room, dtype=torch.int32, device=self.bounds.device)

    def fill(self, starts: torch.Tensor, sizes: torch.Tensor) -> bool:
        """Turn the bags of some steps round. Returns whether memory had to move."""
        counts = sizes.reshape(-1).long()
        total = int(counts.sum())
        moved = total > len(self.entries)
        if moved:
            self._make_room(total)
        owner = torch.repeat_interleave(counts, output_size=total)
        shift = starts.reshape(-1) - (counts.cumsum(0) - counts)
        row = self.bags.indices[torch.arange(total, device=owner.device) + shift[owner]]
        key, order = torch.sort(owner // self.slots * self.table_rows + row, stable=True)
        key, lengths = torch.unique_consecutive(key, return_counts=True)
        self.entries[:total] = owner[order] % self.slots
        self.rows[: len(key)] = key % self.table_rows
        torch.cumsum(lengths, 0, out=self.ends[1 : len(key) + 1])
        steps = torch.arange(len(starts) + 1, device=key.device)
        self.bounds[: len(steps)] = torch.searchsorted(key, steps * self.table_rows)
        return moved


def most_often(bags: Bags, rows: int) -> float:
    """How many of so many nodes' bags hold the table's row that is in most bags, on average."""
    return int(torch.bincount(bags.indices).max()) * rows / (len(bags.indptr) - 1) if len(bags.indices) else 0.0


def locate(bags: tuple[Bags, Bags], nodes: torch.Tensor, starts: torch.Tensor, sizes: torch.Tensor) -> None:
    """Write where both bags of nodes (steps, slots) int32 start and how many rows they have: each (steps, 2, slots)."""
    _locate[triton.cdiv(nodes.numel(), BLOCK),](
        nodes, bags[0].indptr, bags[1].indptr, starts, sizes, nodes.shape[1], nodes.numel(), BLOCK=BLOCK
    )


@triton.jit
def _locate(nodes, attribute_indptr, neighbour_indptr, starts, sizes, slots, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < count
    node = tl.load(nodes + at, mask=live, other=0).to(tl.int64)
    to = 2 * (at // slots) * slots + at % slots
    start = tl.load(attribute_indptr + node)
    tl.store(starts + to, start, mask=live)
    tl.store(sizes + to, tl.load(attribute_indptr + node + 1) - start, mask=live)
    start = tl.load(neighbour_indptr + node)
    tl.store(starts + to + slots, start, mask=live)
    tl.store(sizes + to + slots, tl.load(neighbour_indptr + node + 1) - start, mask=live)
