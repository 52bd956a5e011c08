"""Make a rank's share of each batch and train on it, on the rank's GPU."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from scipy import sparse

from neural_brane.distributed.batches import share_of
from neural_brane.distributed.model import Phase, ShardedModel, Step
from neural_brane.kernels.gpu import DEVICE, INTERPRETED, Limits, Trainer, place
from neural_brane.kernels.model import Bags, Model, Settings, bags_of
from neural_brane.sampling.triplets_gpu import TripletSampler

# The GPU has the whole graph in memory and makes the batches. The kernels read a copy of the bags, in which the entries
# of a batch's nodes are renumbered from rows of the whole table to the rows that were looked up.

BLOCK = 32  # entries of a bag that one program reads at a time
SPARE = 1.25  # memory for looked-up rows, as a multiple of the first batch's need


class DeviceBatch(NamedTuple):
    """Triplets of node numbers, and the rows of each table that they need."""

    step: int
    triplets: torch.Tensor  # (1, count, 3) int32
    owners: torch.Tensor  # (nodes,) int32: one slot of each node in the batch; other entries are undefined
    ids: tuple[torch.Tensor, torch.Tensor]  # distinct rows of P and of P', int64, in order
    places: tuple[torch.Tensor, torch.Tensor]  # for each row of the whole tables, its place among the ids if it is one


class DeviceBatches:
    """Make batches on a separate stream, so that the next batch is made during the current step."""

    def __init__(
        self, attributes: sparse.csr_array, adjacency: sparse.csr_array, share: range, batch: int, **options: Any
    ):  # fmt: skip
        self.bags = place(bags_of(attributes)), place(bags_of(adjacency))
        self.local = [Bags(bag.indptr, bag.indices.clone()) for bag in self.bags]  # the copy that kernels read
        self._sampler = TripletSampler(adjacency, placed=self.bags[1], device=DEVICE, **options)
        self._rows = attributes.shape[1], adjacency.shape[0]
        self._share, self._batch = share, batch
        self._slots = torch.arange(3 * len(share), dtype=torch.int32, device=DEVICE)
        self._stream = None if INTERPRETED else torch.cuda.Stream()
        self._next: tuple[int, DeviceBatch] | None = None

    def __call__(self, step: int) -> DeviceBatch:
        """Return batch number `step`, its bags renumbered for the kernels."""
        ahead, self._next = self._next, None
        batch = ahead[1] if ahead and ahead[0] == step else self._make(step)
        if self._stream is not None:
            torch.cuda.current_stream().wait_stream(self._stream)
            for tensor in (batch.triplets, batch.owners, *batch.ids, *batch.places):
                tensor.record_stream(torch.cuda.current_stream())
        nodes = batch.triplets.view(-1)
        for bag, local, places in zip(self.bags, self.local, batch.places, strict=True):
            _renumber[len(nodes),](nodes, batch.owners, bag, local.indices, places, BLOCK=BLOCK)
        return batch

    def prepare(self, step: int) -> None:
        """Begin to make batch number `step`; call this once the step before it is launched."""
        self._next = step, self._make(step)

    def _make(self, step: int) -> DeviceBatch:
        """Draw the triplets of a batch and find the rows they need."""
        with nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
            triplets = self._sampler.draw(step * self._batch + self._share.start, len(self._share))
            nodes = triplets.view(-1)
            owners = torch.empty(self._rows[1], dtype=torch.int32, device=DEVICE)
            owners[nodes.long()] = self._slots  # any slot of a node works as its owner
            ids, places = [], []
            for bag, rows in zip(self.bags, self._rows, strict=True):
                marks = torch.zeros(rows, dtype=torch.uint8, device=DEVICE)
                if rows:
                    _mark[len(nodes),](nodes, owners, bag, marks, BLOCK=BLOCK)
                places.append(torch.cumsum(marks, 0, dtype=torch.int32) - 1)
                ids.append(torch.nonzero(marks)[:, 0])
            return DeviceBatch(step, triplets[None], owners, (ids[0], ids[1]), (places[0], places[1]))


@triton.jit
def _mark(nodes, owners, bags, marks, BLOCK: tl.constexpr):
    """Set `marks` to 1 for the rows in the bags of nodes (slots,); slots that do not own their node do nothing."""
    slot = tl.program_id(0)
    node = tl.load(nodes + slot).to(tl.int64)
    if tl.load(owners + node) == slot:
        last = tl.load(bags.indptr + node + 1)
        for first in range(tl.load(bags.indptr + node), last, BLOCK):
            at = first + tl.arange(0, BLOCK)
            row = tl.load(bags.indices + at, mask=at < last, other=0)
            tl.store(marks + row, tl.full([BLOCK], 1, tl.uint8), mask=at < last)


@triton.jit
def _renumber(nodes, owners, bags, local, places, BLOCK: tl.constexpr):
    """Write the places of the rows in the bags of nodes (slots,) to `local`, at the entries of the bags."""
    slot = tl.program_id(0)
    node = tl.load(nodes + slot).to(tl.int64)
    if tl.load(owners + node) == slot:
        last = tl.load(bags.indptr + node + 1)
        for first in range(tl.load(bags.indptr + node), last, BLOCK):
            at = first + tl.arange(0, BLOCK)
            row = tl.load(bags.indices + at, mask=at < last, other=0)
            tl.store(local + at, tl.load(places + row, mask=at < last, other=0), mask=at < last)


class GPUStep(Step):
    """A training step on a GPU. Looked-up rows are copied to fixed memory, because captured launches read it."""

    together = 16  # steps whose losses are read at once

    def __init__(
        self, model: ShardedModel, settings: Settings, batch: int, count: int, phase: Phase, bags: list[Bags]
    ):  # fmt: skip
        super().__init__(model, settings, batch, count, phase)
        self._bags = bags
        self._trainer: Trainer | None = None

    def __call__(self, batch: DeviceBatch) -> torch.Tensor:
        """Train on all ranks' shares of a batch; return the mean of −ln σ over the whole batch before the step."""
        model = self.model
        with self.phase("lookup"):
            rows = [table.lookup(ids) for table, ids in zip(model.tables, batch.ids, strict=True)]
        with self.phase("kernel"):
            trainer = self._trainer_for([len(arrived) for arrived in rows])
            small = trainer.model
            tables = small.attribute_table, small.neighbour_table
            trained = [table[: len(arrived)] for table, arrived in zip(tables, rows, strict=True)]
            for own, arrived in zip(trained, rows, strict=True):
                torch.mul(arrived.detach(), model.scale, out=own)
            small.weight.copy_(model.weight)
            small.bias.copy_(model.bias)
            trainer.layer.load()
            loss = trainer.launch(batch.triplets)[0]
        with self.phase("exchange"):
            self.send_changes(rows, trained)
            return self.add_up(small.weight, small.bias, loss)

    def _trainer_for(self, rows: list[int]) -> Trainer:
        """Return a trainer with memory for so many rows of each table: the present one, or a new one."""
        if self._trainer is not None:
            small = self._trainer.model
            if rows[0] <= len(small.attribute_table) and rows[1] <= len(small.neighbour_table):
                return self._trainer
        model = self.model
        tables = [
            torch.zeros((min(int(SPARE * count) + 1, max(table.rows, 1)), table.width), device=DEVICE)
            for table, count in zip(model.tables, rows, strict=True)
        ]
        small = Model(tables[0], tables[1], model.weight.clone(), model.bias.clone())
        limits = Limits(nodes_per_slot=0.0)  # a vector per node would read rows that were not looked up
        self._trainer = Trainer(small, self._bags[0], self._bags[1], self.rates, self.count, steps=1, limits=limits)
        return self._trainer


def prepare_gpu(
    shards: Any, model: ShardedModel, kernel: Settings, settings: dict[str, Any], seed: int, phase: Phase
) -> tuple[DeviceBatches, Callable[[DeviceBatch], torch.Tensor], int]:
    """Return a maker of batches, the training step on GPUs, and the number of losses to read at once."""
    parts = [shards.shard(number) for number in range(len(shards))]
    attributes = sparse.vstack([part.attributes.matrix(shards.attributes) for part in parts], format="csr")
    adjacency = sparse.vstack([part.adjacency.matrix(shards.nodes) for part in parts], format="csr")
    options = {name: settings[name] for name in ("negative_power", "allow_self_negative")}
    batch, steps = settings["batch_size"], settings["epochs"] * settings["batches_per_epoch"]
    share = share_of(batch, model.exchange.rank, model.exchange.ranks)
    batches = DeviceBatches(attributes, adjacency, share, batch, seed=seed, **options)
    step = GPUStep(model, kernel, batch, len(share), phase, batches.local)

    def step_and_prepare(made: DeviceBatch) -> torch.Tensor:
        loss = step(made)
        if made.step + 1 < steps:
            batches.prepare(made.step + 1)
        return loss

    return batches, step_and_prepare, step.together
