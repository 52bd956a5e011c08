"""Both parts of the vectors that a rank owns, from a graph in parts: the work of one rank, in step with the others."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed

from neural_brane.cluster.batches import BatchMaker, prefetch
from neural_brane.cluster.exchange import Exchange
from neural_brane.cluster.metrics import Metrics
from neural_brane.cluster.model import ShardedModel
from neural_brane.cluster.ranges import node_range
from neural_brane.cluster.rows import AnyShards, LocalRows, MappedRows, RangedRows
from neural_brane.cluster.sampling_tables import sampling_tables
from neural_brane.cluster.spectral import OwnGraph, spectral_part
from neural_brane.cluster.step import CPUStep
from neural_brane.cluster.training import RankTraining, Watchers
from neural_brane.cluster.triplets import Triplets
from neural_brane.errors import ParameterError
from neural_brane.kernels.model import Settings
from neural_brane.linalg import REPORTS
from neural_brane.methods._spectral import Decomposition
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.progress import Meter

BLOCK_NODES = 1 << 20  # whose numbers of neighbours are looked at together


class ShardFacts:
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
    rows: LocalRows | RangedRows
    kernel: Settings
    losses: list[float]


class Ranks(NamedTuple):
    """How ranks work together: by the memory of their hosts, and by that of their devices."""

    host: Exchange
    device: Exchange
    by_range: bool = False  # whether a rank maps the parts of its own nodes alone

    def rows(self, shards: AnyShards) -> LocalRows | RangedRows:
        """The graph's rows; where ranks ask each other, by a group of their own, since batches are made ahead."""
        if not self.by_range:
            return LocalRows(shards)
        return RangedRows(shards, Exchange(distributed.new_group(backend="gloo")))


def own_spectral(shards: AnyShards, ranks: Ranks, settings: dict[str, Any], seed: int) -> Decomposition:
    """The spectral part of the nodes that this rank owns."""
    if not settings["spectral_dim"]:
        return Decomposition.empty(len(node_range(shards.nodes, ranks.host.rank, ranks.host.ranks)))
    progress = settings["progress"] if ranks.host.rank == 0 else None
    meter = Meter(progress, REPORTS, "steps", part="spectral part")
    return spectral_part(shards, ranks.host, settings, seed, report=meter.advance)


def train(
    shards: AnyShards,
    ranks: Ranks,
    settings: dict[str, Any],
    seed: int,
    *,
    metrics: str | Path | None = None,
    checkpoints: Any = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train the learned part, from its start or from where its checkpoint was left."""
    own = settings | {"dim": settings["dim"] - settings["spectral_dim"]}
    batch, kernel = own["batch_size"], kernel_settings(own)
    if batch < ranks.host.ranks:
        raise ParameterError(f"batch_size={batch} is less than one triplet for each of {ranks.host.ranks} ranks")
    rows = ranks.rows(shards)
    options = {name: own[name] for name in ("negative_power", "allow_self_negative")}
    model = ShardedModel(shards.attributes, shards.nodes, own, ranks.device, ranks.device.device)
    counter = Metrics(
        metrics, batch=batch, steps=own["epochs"] * own["batches_per_epoch"], epochs=own["epochs"], nodes=shards.nodes,
        rank=ranks.host.rank, ranks=ranks.host.ranks, report=own["progress"],
    )  # fmt: skip
    training = RankTraining(own, model, Watchers(counter, checkpoints, tell))
    with ExitStack() as stack:
        stack.callback(counter.close)
        first = training.begin(seed)
        if model.device.type == "cuda":
            from neural_brane.cluster.gpu_step import prepare_gpu

            training.run(first, *prepare_gpu(shards, model, kernel, own, seed, counter.phase))
        else:
            triplets = Triplets(
                rows, sampling_tables(rows, ranks.host, **options),
                allow_self_negative=own["allow_self_negative"], seed=seed,
            )  # fmt: skip
            make = BatchMaker(rows, triplets, batch, ranks.host.rank, ranks.host.ranks)
            step = CPUStep(model, kernel, batch, make.count, counter.phase)
            training.run(first, stack.enter_context(prefetch(make, training.total)), step, step.together)
    if ranks.host.rank == 0:
        training.warn_if_untrained()
    return Trained(model, rows, kernel, training.losses)


def host_ranks(by_range: bool = False, group: Any = None) -> Ranks:
    """Ranks that work on the CPUs of their hosts."""
    exchange = Exchange(group)
    if exchange.device != torch.device("cpu"):
        raise ParameterError("this group of ranks talks by GPUs; give one of backend gloo")
    return Ranks(exchange, exchange, by_range)
