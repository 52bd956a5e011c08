"""`NeuralBrane(device="cluster").fit(graph)`: every rank has the graph, and every rank gets all that was learned."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch import distributed

from neural_brane.cluster.launch import is_launched, join, own_threads
from neural_brane.cluster.learning import Ranks, host_ranks, own_spectral, train
from neural_brane.cluster.packages import require_packages
from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.kernels import cpu
from neural_brane.kernels.model import bags_of
from neural_brane.methods._spectral import Decomposition
from neural_brane.methods.neural_brane.parts import LearnedPart
from neural_brane.shards import parts_of


def learn_graph(
    graph: AttributedGraph, settings: dict[str, Any], seed: int
) -> tuple[Decomposition, LearnedPart | None]:
    """Both parts of a graph, whole on every rank; the learned one is None where there is none. All ranks call it."""
    settings = settings | {"threads": settings["threads"] or own_threads()}
    with joined() as ranks, cpu.threads(settings["threads"]):
        ranks_seed = int(ranks.host.from_first(np.array([seed], np.int64))[0])  # one that was drawn differs by rank
        shards = parts_of(graph)
        own = own_spectral(shards, ranks, settings, ranks_seed)
        spectral = Decomposition(ranks.host.gather(own.vectors), own.values)
        if settings["spectral_dim"] == settings["dim"]:
            return spectral, None
        found = train(shards, ranks, settings, ranks_seed)
        bags = bags_of(graph.attributes), bags_of(graph.adjacency)
        return spectral, LearnedPart(found.model.whole(), bags, found.kernel, found.losses)


@contextmanager
def joined() -> Iterator[Ranks]:
    """The ranks of the process group that there is, or of the job that this process was started for."""
    require_packages()
    if distributed.is_initialized():
        yield host_ranks()
        return
    if not is_launched():
        raise ParameterError(
            "device='cluster' makes no sense here: this process is not one of several ranks; start the program with "
            "'torchrun --nproc-per-node 2 PROGRAM', or train with 'brane embed SOURCE --cluster --ranks 2'"
        )
    with join() as job:
        yield host_ranks(group=job.group)
