"""Batches with clearly more slots than the graph has nodes: a step computes every node's vector once."""

import torch

from neural_brane.kernels.gpu import split as gpu_split
from neural_brane.kernels.gpu.large import TRIPLETS, LargeLayer
from neural_brane.kernels.gpu.plan import Plan
from neural_brane.kernels.gpu.shapes import Frame, empty
from neural_brane.kernels.model import Bags, Model, Settings

PIECE = 64  # slots of a node that a program adds up
TOGETHER = 2  # slots, or pieces, that it reads at a time
WARPS = 1


class NodePlan(Plan):
    """A plan with a row for each node of the graph; nodes that a step does not meet have empty bags.

    nodes (steps, slots) int32 are the triplets', and order (steps, slots) int32 the slots sorted by them, cut into
    pieces of one node each: piece p is order[pieces[p]:pieces[p + 1]], and node v has the pieces bounds[v] to
    bounds[v + 1].
    """

    def __init__(self, bags: tuple[Bags, Bags], table_rows: tuple[int, int], steps: int, slots: int):
        super().__init__(bags, table_rows, steps, slots, rows=len(bags[1].indptr) - 1)
        starts = torch.stack([bag.indptr[:-1] for bag in bags])
        self.starts = starts.expand(steps, -1, -1)  # at every step the same
        self.turned = False
        self.most_pieces = self.rows + slots // PIECE
        self.nodes = torch.zeros((steps, slots), dtype=torch.int32, device=starts.device)
        self.order = torch.zeros((steps, slots), dtype=torch.int32, device=starts.device)
        self.pieces = torch.zeros((steps, self.most_pieces + 2), dtype=torch.int32, device=starts.device)
        self.bounds = torch.zeros((steps, self.rows + 1), dtype=torch.int32, device=starts.device)

    def nodes_of_rows(self, triplets: torch.Tensor) -> torch.Tensor:
        """The nodes whose vectors the steps of triplets compute: all."""
        return torch.arange(self.rows, device=triplets.device).expand(len(triplets), -1)

    def segments_of(self, step: int) -> list[tuple[torch.Tensor, ...]]:
        """Of both tables: where the segments lie, those of all nodes at every step, their rows, ends and entries."""
        return super().segments_of(0)

    def _locate(self, nodes: torch.Tensor) -> None:
        steps = len(nodes)
        key, order = torch.sort(nodes, dim=1, stable=True)
        self.nodes[:steps], self.order[:steps] = nodes, order
        every = torch.arange(self.rows + 1, dtype=torch.int32, device=key.device).repeat(steps, 1)
        firsts = torch.searchsorted(key, every, out_int32=True)
        self._cut(key, firsts)
        for side, bag in enumerate(self.bags):
            self.sizes[:steps, side] = torch.where(firsts.diff() > 0, bag.indptr.diff(), 0)

    def _turn_round(self, steps: int) -> bool:
        """Find the segments of all nodes, once: those that a step does not meet have no gradient there."""
        if self.turned:
            return False
        self.turned = True
        for found, bag in zip(self.segments, self.bags, strict=True):
            found.fill(bag.indptr[None, :-1], bag.indptr.diff()[None])
        return True

    def _cut(self, key: torch.Tensor, firsts: torch.Tensor) -> None:
        """Cut the sorted nodes (steps, slots) into pieces, given where each node starts among them."""
        steps = len(key)
        place = torch.arange(self.slots, dtype=torch.int32, device=key.device)
        opens = (place - firsts.gather(1, key.long())) % PIECE == 0
        # The number of the piece that a place is in; all steps in one scan, which is faster than some long rows.
        number = opens.flatten().cumsum(0, dtype=torch.int32).view_as(opens)
        number -= number[:, :1].clone()
        self.pieces[:steps] = self.slots
        last_entry = self.most_pieces + 1  # no piece's: what opens none is written there
        self.pieces[:steps].scatter_(1, torch.where(opens, number, last_entry).long(), place.expand(steps, -1))
        self.bounds[:steps] = torch.nn.functional.pad(number + 1, (1, 0)).gather(1, firsts.long())


class NodeLayer(LargeLayer):
    """The launches at large batches, with rows for nodes: slopes are added up over the slots of each."""

    def __init__(self, frame: Frame, settings: Settings, model: Model, plan: NodePlan, scatter: bool):
        super().__init__(frame, settings, model, plan, scatter)
        self.plan = plan
        self.pulls = empty(self.batch)
        self.sums = empty(plan.most_pieces, frame.hidden)

    def _differentiate(self, step: int) -> None:
        """Launch what finds the slopes of the layer's units."""
        s, plan, sizes = self.settings, self.plan, {"HIDDEN": self.frame.hidden, "UNITS": self.units}
        nodes, pieces = plan.nodes[step], plan.pieces[step]
        gpu_split.score[self.losses.shape[1],](
            self.product, self.bias, nodes, self.pulls, self.losses[step], self.batch, s.triplet_scale,
            TRIPLETS=TRIPLETS, **sizes,
        )  # fmt: skip
        gpu_split.add_pulls[plan.most_pieces,](
            self.product, self.bias, nodes, self.pulls, plan.order[step], pieces, self.sums,
            SLOTS=TOGETHER, num_warps=WARPS, **sizes,
        )  # fmt: skip
        gpu_split.slope_of_nodes[self.rows,](
            self.product, self.bias, self.sums, pieces, plan.bounds[step], self.slope, self.slope.stride(0),
            2 * s.hidden_l2, PIECES=TOGETHER, num_warps=WARPS, **sizes,
        )  # fmt: skip
