"""Compute one training in this process, or those that a store lacks, several at a time."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from neural_brane import datasets
from neural_brane.embedding import Embedding
from neural_brane.errors import BraneError
from neural_brane.evaluate import hold_out_edges
from neural_brane.graph import AttributedGraph
from neural_brane.machine import describe_machine
from neural_brane.methods.devices import gpu_name
from neural_brane.progress import Meter, Reporter
from neural_brane.trainings.pool import Ended, run
from neural_brane.trainings.score import rounded, score
from neural_brane.trainings.store import Store
from neural_brane.trainings.training import Record, Training


def compute_missing(
    trainings: Sequence[Training],
    store: Store,
    *,
    graph: AttributedGraph | None = None,
    labels: Any = None,
    jobs: int = 1,
    isolated: bool = True,
    timeout: float | None = None,
) -> Iterator[Ended[Training]]:
    """Compute the trainings that the store lacks, `jobs` at a time, keep each, and yield it as it ends.

    graph: the graph that all of them learn from; with None each loads its dataset. labels: what is predicted instead
    of the graph's classes, as `score` takes it. isolated, timeout: as in `pool.run`; a training in a process of its own
    has one thread.
    """
    threads = 1 if isolated or jobs > 1 else None
    work = partial(compute, graph=graph, labels=labels, threads=threads)
    for ended in run(work, store.missing(trainings), jobs=jobs, isolated=isolated, timeout=timeout):
        if not ended.failure:
            store.put(ended.task, ended.result)
        yield ended


def compute_all(
    trainings: Sequence[Training], store: Store, *, jobs: int = 1, progress: Reporter | None = None
) -> list[Record]:
    """The records of all trainings; those that the store lacks are computed first, and all of them must succeed.

    progress: told how many trainings are done.
    """
    missing, failures = store.missing(trainings), []
    meter = Meter(progress, len(missing), "trainings")
    for ended in compute_missing(missing, store, jobs=jobs):
        if ended.failure:
            failures.append(f"{ended.task.method} on {ended.task.dataset}, seed {ended.task.seed}: {ended.failure}")
        meter.advance()
    if failures:
        raise BraneError(f"{len(failures)} of {len(missing)} trainings failed; the first: {failures[0]}")
    return [record for training in trainings if (record := store.get(training)) is not None]


def compute(
    training: Training, graph: AttributedGraph | None = None, labels: Any = None, threads: int | None = 1
) -> Record:
    """Train and score the vectors; `peak_mb` is the most memory of this process up to the end of its first training.

    A method that learns from labels is trained anew for every split that predicts classes, with the labels of that
    split's training part alone; all other scores are of vectors that were learned without labels. `seconds`, of the
    clock, and `processor_seconds`, which other work on the machine hardly changes, are then means over these trainings.
    """
    graph = datasets.load(training.dataset) if graph is None else graph
    seed, scoring = training.seed, training.scoring
    held_out = hold_out_edges(graph, **{"seed": seed} | scoring["links"]) if "links" in scoring else None
    trainer = Trainer(training, graph if held_out is None else held_out.graph, threads)
    with threadpool_limits(threads):
        embedding = trainer.learn()
        own = getattr(trainer.model, "score", None)
        learn = trainer.learn if trainer.model.uses_labels else None
        scores = score(embedding, graph, scoring, seed=seed, labels=labels, held_out=held_out, own=own, learn=learn)
    return {
        "data": data_facts(graph),
        **scores,
        "loss": rounded(getattr(trainer.model, "loss_history_", None) or []),
        "seconds": round(float(np.mean(trainer.seconds)), 3),
        "processor_seconds": round(float(np.mean(trainer.processor_seconds)), 3),
        "peak_mb": trainer.peak,
        "machine": describe_machine() | _gpu(trainer.model),
    }


class Trainer:
    """A method that is trained on one graph, once or for every split, and what that took."""

    def __init__(self, training: Training, graph: AttributedGraph, threads: int | None):
        self.model, self.graph = training.model(threads), graph
        self.seconds: list[float] = []
        self.processor_seconds: list[float] = []
        self.peak = 0.0

    def learn(self, labels: np.ndarray | None = None) -> Embedding:
        """The vectors that are learned from the graph and from some labels, or from none."""
        start, busy = time.perf_counter(), time.process_time()
        embedding = self.model.fit_transform(self.graph, labels=labels)
        self.seconds.append(time.perf_counter() - start)
        self.processor_seconds.append(time.process_time() - busy)
        if len(self.seconds) == 1:  # later trainings come after scores, which take memory as well
            self.peak = peak_memory()
        return embedding


def peak_memory() -> float:
    """The most memory this process has had resident so far, in MB of 10⁶ bytes.

    On Linux getrusage starts from the memory of the process that started this one, so /proc is read there instead.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return round(int(line.split()[1]) * 1024 / 1e6, 1)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 1)  # bytes, on macOS


def data_facts(graph: AttributedGraph) -> Record:
    """The name, sizes and digest of a graph, and into how many components it falls."""
    classes = set() if graph.labels is None else set(graph.labels.tolist()) - {""}
    components, member_of = connected_components(graph.adjacency, directed=False)
    return {
        "name": graph.name,
        "nodes": len(graph),
        "edges": graph.edges,
        "attributes": graph.attributes.shape[1],
        "classes": len(classes),
        "components": int(components),
        "largest_component": int(np.bincount(member_of).max()),
        "digest": graph.digest(),
    }


def _gpu(model: Any) -> Record:
    """The GPU that a model was trained on, if it was."""
    return {"gpu": gpu_name()} if model.get_params().get("device") == "cuda" else {}
