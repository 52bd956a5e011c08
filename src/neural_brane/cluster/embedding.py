"""A graph in parts becomes vectors in parts: each rank holds and writes those of its own nodes; nothing is gathered."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neural_brane import __version__
from neural_brane.cluster.checkpoints import EVERY, Checkpoints
from neural_brane.cluster.exchange import Exchange
from neural_brane.cluster.identity import FREE, identify_run
from neural_brane.cluster.joining import join_own
from neural_brane.cluster.launch import Job
from neural_brane.cluster.learning import Ranks, ShardFacts, own_spectral, train
from neural_brane.cluster.ranges import node_range
from neural_brane.cluster.vectors import own_vectors
from neural_brane.errors import ParameterError
from neural_brane.io.vector_parts import PartWriter, finish
from neural_brane.kernels import cpu
from neural_brane.methods.neural_brane import NeuralBrane
from neural_brane.progress import Reporter
from neural_brane.shards import Shards, open_shards

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
    `neural_brane.cluster.launch.join`. checkpoint: a folder that all hosts see; where it has one of the same run,
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
            found = train(shards, ranks, settings, seed, metrics=metrics, checkpoints=kept, tell=tell)
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
    """What it takes to make the vectors again."""
    parameters = NeuralBrane(**settings).deciding_parameters() | {"seed": seed}
    data = {name: getattr(shards.manifest, name) for name in ("name", "nodes", "edges", "attributes")}
    made = {"method": NeuralBrane.title, "parameters": parameters, "data": data, "version": __version__}
    if not losses:
        return made
    triplets = len(losses) * settings["batches_per_epoch"] * settings["batch_size"]
    return made | {"training": {"triplets": triplets, "loss": losses[-1]}}
