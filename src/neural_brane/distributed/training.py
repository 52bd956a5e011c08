"""Train both parts of the vectors that a rank owns, in step with the other ranks."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed

from neural_brane.distributed.batches import Batch, BatchMaker, Prefetch, Share, Triplets, bags_of_nodes
from neural_brane.distributed.checkpoints import Checkpoints
from neural_brane.distributed.exchange import Exchange, block_size, node_range
from neural_brane.distributed.metrics import Metrics, Sizes
from neural_brane.distributed.model import ShardedModel
from neural_brane.distributed.rows import AnyShards, GraphRows, MappedRows, sampling_tables
from neural_brane.distributed.spectral import OwnGraph, spectral_part
from neural_brane.distributed.step import CPUStep
from neural_brane.errors import ParameterError
from neural_brane.kernels.model import Model, Settings
from neural_brane.linalg.eigenvectors import REPORTS
from neural_brane.methods.neural_brane.model import Facts
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.methods.neural_brane.training import Epochs, start_numbers
from neural_brane.methods.spectral import Decomposition
from neural_brane.methods.training import require_finite
from neural_brane.progress import Meter

# Train the learned part by ranks: epochs of batches as in one process, with checkpoints and metrics on the way.


class Watchers(NamedTuple):
    """Followers of a training: the file or folder of metrics, checkpoints, and a function that prints a line."""

    target: str | Path | None = None
    checkpoints: Checkpoints | None = None
    tell: Callable[[str], None] = lambda line: None


class RankTraining(Epochs):
    """One run of stochastic gradient descent by all ranks; each calls it at once."""

    def __init__(self, settings: dict[str, Any], model: ShardedModel, metrics: Metrics, watchers: Watchers):
        super().__init__(settings, start_numbers())
        self.model, self.metrics, self.watchers = model, metrics, watchers
        self.total = settings["epochs"] * settings["batches_per_epoch"]

    def begin(self, seed: int) -> int:
        """Bring the model to its first values, or to where a checkpoint was left; returns the step that comes next."""
        checkpoints, metrics = self.watchers.checkpoints, self.metrics
        kept = checkpoints.find() if checkpoints else None
        if kept is None or checkpoints is None:
            self.model.start(self.settings, seed)
            metrics.begin()
            return 0
        checkpoints.read(self.model.tensors())
        self.numbers.update(kept.numbers)
        self.losses, self.model.scale = self.numbers["losses"], self.numbers["scale"]
        self.require_no_earlier_end()
        if line := metrics.begin(kept.step, was=kept.ranks):
            self.watchers.tell(line)
        return kept.step

    def run(
        self, first: int, batches: Callable[[int], Any], step: Callable[[Any], torch.Tensor], together: int
    ) -> None:
        """Train from step `first` to the last, or until the loss is flat.

        batches: a rank's share of a batch by its number. together: steps whose losses are looked at together, since
        to look at one waits for a GPU.
        """
        at, per_epoch = first, self.settings["batches_per_epoch"]
        losses: list[torch.Tensor] = []
        while at < self.total and not (at % per_epoch == 0 and self.is_flat()):
            with self.metrics.phase("sample"):
                batch = batches(at)
            losses.append(step(batch))
            at += 1
            due = self.watchers.checkpoints is not None and self.watchers.checkpoints.due(at)
            if due or len(losses) == together or at % per_epoch == 0:
                self._count(at, losses)
                losses.clear()
            if due:
                self.save(at)
        self.model.fold()
        require_finite(self.model.own(), f"epoch {len(self.losses)}", **self.remedies())

    def _count(self, at: int, losses: list[torch.Tensor]) -> None:
        """Count the losses of the steps up to `at`."""
        known = torch.stack(losses).double().cpu().numpy()
        per_epoch = self.settings["batches_per_epoch"]
        for number, loss in enumerate(known):
            step = at - len(known) + number
            mean = self.count(step % per_epoch + 1, np.array([loss]))
            self.metrics.advance(step + 1, epoch=step // per_epoch + 1, loss=float(loss), mean=mean)

    def save(self, at: int) -> None:
        """Keep the state before step `at`."""
        if self.watchers.checkpoints is not None:
            numbers = self.numbers | {"scale": self.model.scale}
            with self.metrics.phase("checkpoint"):
                self.watchers.checkpoints.save(at, self.model.tensors(), numbers)


# The learned part of the vectors of a rank's own nodes, some nodes at a time, all ranks in step.

VECTOR_NODES = 8_192  # of a rank that are embedded at a time


def own_vectors(
    model: ShardedModel, rows: GraphRows, kernel: Settings, output: str, block: int = VECTOR_NODES
) -> Iterator[np.ndarray]:
    """The vectors of the nodes that this rank owns, in the form that `output` asks for.

    All ranks go through as many blocks, the last of which may be empty for some: rows are looked up by all at once.
    """
    own, exchange = model.neighbours.own, model.exchange
    for first in range(0, block_size(rows.nodes, exchange.ranks), block):
        nodes = np.arange(min(own.start + first, own.stop), min(own.start + first + block, own.stop))
        batch = bags_of_nodes(rows, nodes)
        pooled = _embed(model, batch, kernel, len(nodes))
        if output == "hidden":
            yield _hide(model, pooled)
        elif output == "released":
            d1, dim = kernel.attribute_dim, model.weight.shape[1]
            yield np.hstack([_own_rows(model, nodes)[:, : dim - d1], np.maximum(pooled[:, :d1], 0)])
        else:
            yield pooled


def _embed(model: ShardedModel, batch: Batch, kernel: Settings, count: int) -> np.ndarray:
    from neural_brane.kernels import cpu

    ids = batch.attributes, batch.neighbours
    with torch.no_grad():
        attributes, neighbours = (_fetch(model, side, asked) for side, asked in enumerate(ids))
    small = Model(attributes, neighbours, model.weight.cpu().numpy(), model.bias.cpu().numpy())
    pooled: np.ndarray = cpu.embed(small, *batch.bags, np.arange(count, dtype=np.int32), kernel)
    return pooled


def _hide(model: ShardedModel, pooled: np.ndarray) -> np.ndarray:
    from neural_brane.kernels import cpu

    layer = Model(pooled, pooled, model.weight.cpu().numpy(), model.bias.cpu().numpy())
    hidden: np.ndarray = cpu.hide(layer, pooled)
    return hidden


def _own_rows(model: ShardedModel, nodes: np.ndarray) -> np.ndarray:
    """The rows of P' of successive nodes that this rank owns."""
    start = int(nodes[0]) - model.neighbours.own.start if len(nodes) else 0
    return (model.neighbours.local[start : start + len(nodes)] * model.scale).cpu().numpy()


def _fetch(model: ShardedModel, side: int, ids: np.ndarray) -> Any:
    """Rows of a table as an array, true to scale."""
    table = model.tables[side]
    found = table.lookup(torch.from_numpy(ids).to(model.device))
    return np.ascontiguousarray((found * model.scale if model.scale != 1 else found).cpu().numpy())


# Both parts of the vectors that a rank owns, from a graph in parts: the work of one rank, in step with the others.

BLOCK_NODES = 1 << 20  # whose numbers of neighbours are looked at together


class ShardFacts(Facts):
    """The facts of a graph in parts that the parameters follow from; all ranks ask for them at once."""

    def __init__(self, shards: AnyShards, exchange: Exchange):
        self._shards, self._exchange, self.nodes = shards, exchange, shards.nodes

    @cached_property
    def tell_apart(self) -> bool:
        """Whether some attribute tells nodes apart."""
        return OwnGraph(self._shards, self._exchange).tell_apart

    @cached_property
    def can_rank(self) -> bool:
        """Whether a node has both a neighbour and a linked node that is not its neighbour."""
        own = node_range(self.nodes, self._exchange.rank, self._exchange.ranks)
        rows = MappedRows(self._shards, own)
        linked, least = 0, self.nodes  # linked nodes, and the fewest that one of them may not be ranked against
        for first in range(own.start, own.stop, BLOCK_NODES):
            degree, loops = rows.degrees(first, min(first + BLOCK_NODES, own.stop))
            known = degree > 0
            linked += int(np.count_nonzero(known))
            least = min(least, int((degree + ~loops)[known].min(initial=least)))
        total = self._exchange.total(np.array([linked], np.int64))[0]
        return bool(-self._exchange.largest(np.array([-least]))[0] < total)


class Trained(NamedTuple):
    """A model that ranks have trained, and what it takes to make vectors of it."""

    model: ShardedModel
    rows: GraphRows
    kernel: Settings
    losses: list[float]


class Ranks(NamedTuple):
    """Exchanges between ranks: through the memory of their hosts, and through that of their devices."""

    host: Exchange
    device: Exchange
    by_range: bool = False  # whether a rank maps the parts of its own nodes alone

    def rows(self, shards: AnyShards) -> GraphRows:
        """The graph's rows; where ranks ask each other, by a group of their own, since batches are made ahead."""
        return GraphRows(shards, Exchange(distributed.new_group(backend="gloo")) if self.by_range else None)


def own_spectral(shards: AnyShards, ranks: Ranks, settings: dict[str, Any], seed: int) -> Decomposition:
    """The spectral part of the nodes that this rank owns."""
    if not settings["spectral_dim"]:
        return Decomposition.empty(len(node_range(shards.nodes, ranks.host.rank, ranks.host.ranks)))
    progress = settings["progress"] if ranks.host.rank == 0 else None
    meter = Meter(progress, REPORTS, "steps", part="spectral part")
    return spectral_part(shards, ranks.host, settings, seed, report=meter.advance)


def train(
    shards: AnyShards, ranks: Ranks, settings: dict[str, Any], seed: int, watchers: Watchers | None = None
) -> Trained:
    """Train the learned part, from its start or from where its checkpoint was left."""
    own, watchers = settings | {"dim": settings["dim"] - settings["spectral_dim"]}, watchers or Watchers()
    batch, kernel, host = own["batch_size"], kernel_settings(own), ranks.host
    if batch < host.ranks:
        raise ParameterError(f"batch_size={batch} is less than one triplet for each of {host.ranks} ranks")
    rows = ranks.rows(shards)
    options = {name: own[name] for name in ("negative_power", "allow_self_negative")}
    model = ShardedModel(shards.attributes, shards.nodes, own, ranks.device, ranks.device.device)
    sizes = Sizes(batch, own["epochs"] * own["batches_per_epoch"], own["epochs"], shards.nodes, host.ranks)
    counter = Metrics(watchers.target, sizes, rank=host.rank, report=own["progress"])
    training = RankTraining(own, model, counter, watchers)
    with ExitStack() as stack:
        stack.callback(counter.close)
        first = training.begin(seed)
        if model.device.type == "cuda":
            from neural_brane.distributed.gpu import prepare_gpu

            training.run(first, *prepare_gpu(shards, model, kernel, own, seed, counter.phase))
        else:
            tables = sampling_tables(rows, host, **options)
            triplets = Triplets(rows, tables, allow_self_negative=own["allow_self_negative"], seed=seed)
            make = BatchMaker(rows, triplets, Share(batch, host.rank, host.ranks))
            step = CPUStep(model, kernel, batch, make.share.count, counter.phase)
            training.run(first, stack.enter_context(Prefetch(make, training.total)), step, step.together)
    if host.rank == 0:
        training.warn_if_untrained()
    return Trained(model, rows, kernel, training.losses)


def host_ranks(by_range: bool = False, group: Any = None) -> Ranks:
    """Ranks that work on the CPUs of their hosts."""
    exchange = Exchange(group)
    if exchange.device != torch.device("cpu"):
        raise ParameterError("this group of ranks talks by GPUs; give one of backend gloo")
    return Ranks(exchange, exchange, by_range)
