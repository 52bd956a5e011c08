"""Turn a graph in parts into vectors in parts, or fit a graph that every rank has."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed

from neural_brane import __version__
from neural_brane.distributed.checkpoints import EVERY, Checkpoints
from neural_brane.distributed.exchange import Exchange, node_range
from neural_brane.distributed.launch import Job, is_launched, join, own_threads, require_packages
from neural_brane.distributed.spectral import join_own
from neural_brane.distributed.training import Ranks, ShardFacts, Watchers, host_ranks, own_spectral, own_vectors, train
from neural_brane.errors import ParameterError
from neural_brane.files.checkpoints import identify
from neural_brane.files.graphs.parts import GraphManifest, Shards, open_shards, parts_of
from neural_brane.files.vectors.parts import PartWriter, finish
from neural_brane.graph import AttributedGraph
from neural_brane.kernels import cpu
from neural_brane.kernels.model import bags_of
from neural_brane.methods.identity import identify_code
from neural_brane.methods.neural_brane import NeuralBrane
from neural_brane.methods.neural_brane.parts import LearnedPart
from neural_brane.methods.spectral import Decomposition
from neural_brane.progress import Reporter

# Which run the checkpoints of a job belong to: the settings, the seed, and the graph by its manifest.

FREE = ("epochs", "tolerance", "threads", "device")  # may change where a run goes on


def identify_run(manifest: GraphManifest, parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Identify a run on a graph in parts; the number of ranks does not matter."""
    graph = {name: getattr(manifest, name) for name in ("name", "nodes", "edges", "attributes")}
    code = identify_code(NeuralBrane, parameters, on_cpu=False)
    return identify("neural-brane", parameters, seed, graph | {"digest": digest(manifest)}, code)


def digest(manifest: GraphManifest) -> str:
    """Sixteen hexadecimal digits of the checksums of a graph's files."""
    files = json.dumps(manifest.files, sort_keys=True)
    return hashlib.sha256(files.encode()).hexdigest()[:16]


# A graph in parts becomes vectors in parts: each rank holds and writes those of its own nodes; nothing is gathered.

WRITTEN_ROWS = 8_192  # vectors of a part that are written at once


def embed_shards(
    folder: str | Path,
    output: str | Path,
    *,
    job: Job,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    metrics: str | Path | None = None,
    parts_format: str = "npy",
    by_range: bool = False,
    progress: Reporter | None = None,
    tell: Callable[[str], None] = lambda line: None,
    **parameters: Any,
) -> None:
    """Embed the graph of a folder that `brane shard` has made; all ranks of a job call it at once.

    output: a folder, in which every rank writes the vectors of its own nodes as one part. job: of
    `neural_brane.distributed.launch.join`. checkpoint: a folder that all hosts see; where it has one of the same run,
    training goes on from it, on any number of ranks. metrics: a .jsonl file or a folder. parts_format: npy or parquet.
    by_range: each rank maps the parts of its own nodes alone, for graphs that do not fit a host's disk or memory.
    parameters: of `NeuralBrane`; a seed that is not given is drawn, or 0 where there is a checkpoint.
    """
    shards, host = open_shards(folder), Exchange(job.group)
    if job.device != "cpu" and by_range:
        raise ParameterError("a GPU holds the whole graph beside its share of the tables; leave --by-range out")
    ranks = Ranks(host, host if job.device == "cpu" else _by_gpus(job), by_range)
    settings, seed = _settings(shards, host, parameters, checkpoint is not None)
    settings |= {"progress": progress, "threads": settings["threads"] or job.threads}
    kept = _checkpoints(checkpoint, checkpoint_every, shards, settings, seed, job)
    with cpu.threads(settings["threads"]):
        spectral = own_spectral(shards, ranks, settings, seed)
        learned: Iterator[np.ndarray] = iter(())
        losses: list[float] = []
        if settings["spectral_dim"] < settings["dim"]:
            found = train(shards, ranks, settings, seed, Watchers(metrics, kept, tell))
            learned, losses = own_vectors(found.model, found.rows, found.kernel, settings["output"]), found.losses
        joint = join_own(spectral.vectors, learned, settings, host)
    _write(Path(output), shards, host, joint.vectors, parts_format)
    host.largest(np.zeros(1, np.int64))  # until all parts are there
    if host.rank == 0:
        finish(output, parts=host.ranks, provenance=_provenance(shards, settings, seed, losses))
    host.largest(np.zeros(1, np.int64))


def _by_gpus(job: Job) -> Exchange:
    """The ranks' exchange by their GPUs."""
    exchange = Exchange()
    exchange.device = torch.device(job.device)  # the group has gloo too, by which it would be taken for the CPU's
    return exchange


def _settings(
    shards: Shards, host: Exchange, parameters: dict[str, Any], kept: bool
) -> tuple[dict[str, Any], int]:  # fmt: skip
    """The parameters in force, and the seed, which is the same on all ranks."""
    settings = NeuralBrane(**parameters).settings_by(ShardFacts(shards, host))
    drawn = settings["seed"] if settings["seed"] is not None else 0 if kept else secrets.randbits(62)
    return settings, int(host.from_first(np.array([drawn], np.int64))[0])


def _checkpoints(
    folder: str | Path | None, every: int | None, shards: Shards, settings: dict[str, Any], seed: int, job: Job
) -> Checkpoints | None:
    if folder is None:
        return None
    deciding = {name: value for name, value in settings.items() if name not in ("seed", "progress", "checkpoint")}
    identity = identify_run(shards.manifest, deciding, seed)
    return Checkpoints(folder, identity, every=every or EVERY, free=FREE, group=job.group)


def _write(output: Path, shards: Shards, host: Exchange, vectors: np.ndarray, kind: Any) -> None:
    """Write the vectors of this rank's nodes as its part."""
    own, width = node_range(shards.nodes, host.rank, host.ranks), vectors.shape[1]
    with PartWriter(output, host.rank, first=own.start, rows=len(own), dim=width, kind=kind) as part:
        for number in range(len(shards)):
            low, high = max(int(shards.bounds[number]), own.start), min(int(shards.bounds[number + 1]), own.stop)
            if low >= high:
                continue
            ids = shards.ids(number)[low - int(shards.bounds[number]) :]
            for first in range(low, high, WRITTEN_ROWS):
                last = min(first + WRITTEN_ROWS, high)
                part.write(ids[first - low : last - low], vectors[first - own.start : last - own.start])


def _provenance(shards: Shards, settings: dict[str, Any], seed: int, losses: list[float]) -> dict[str, Any]:
    """Return what is needed to make the vectors again."""
    parameters = NeuralBrane(**settings).deciding_parameters() | {"seed": seed}
    data = {name: getattr(shards.manifest, name) for name in ("name", "nodes", "edges", "attributes")}
    made = {"method": NeuralBrane.title, "parameters": parameters, "data": data, "version": __version__}
    if not losses:
        return made
    triplets = len(losses) * settings["batches_per_epoch"] * settings["batch_size"]
    return made | {"training": {"triplets": triplets, "loss": losses[-1]}}


# `NeuralBrane(device="distributed").fit(graph)`: every rank has the graph, and every rank gets all that was learned.


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
            "device='distributed' makes no sense here: this process is not one of several ranks; start the program "
            "with 'torchrun --nproc-per-node 2 PROGRAM', or train with 'brane distributed embed SOURCE --ranks 2'"
        )
    with join() as job:
        yield host_ranks(group=job.group)
