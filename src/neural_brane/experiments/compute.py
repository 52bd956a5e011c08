"""Compute the trainings that a store lacks, several processes at a time, and score their vectors."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from neural_brane.embedding import Embedding
from neural_brane.errors import BraneError, ParameterError
from neural_brane.evaluate import (
    classify,
    classify_several,
    cluster,
    hold_out_edges,
    map_2d,
    predict_links,
    regress,
    retrieve,
)
from neural_brane.evaluate.link import HeldOutEdges
from neural_brane.experiments.store import Record, Store, Training, describe_machine
from neural_brane.files import datasets
from neural_brane.graph import AttributedGraph
from neural_brane.methods.training import gpu_name
from neural_brane.progress import Meter, Reporter

# A pool of processes, one for each call: so its peak memory can be measured, and its crash leaves the others alone.

T = TypeVar("T")
OUT_OF_TIME = "took longer than the time it had"


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """A call that has ended: what it returned, or why it failed."""

    task: T
    result: Any = None
    failure: str = ""


def run(
    function: Callable[[T], Any], tasks: Sequence[T], *, jobs: int, isolated: bool = True, timeout: float | None = None
) -> Iterator[Ended[T]]:
    """Call `function` with each task, `jobs` at a time, and yield each call as it ends.

    A process is started for every call. A call that raises an error, or whose process is killed, is yielded with its
    failure, and the others go on. When the caller stops, by Ctrl-C for instance, processes that still run are killed;
    when the caller itself is killed, they end by themselves.

    isolated: False calls the function in this process if jobs is 1, which saves the time that a process takes to start.
    timeout: seconds that a process may take; one that takes longer fails with OUT_OF_TIME.
    """
    if jobs < 1:
        raise ParameterError(f"jobs={jobs}: at least one is needed")
    if jobs == 1 and not isolated:
        yield from (_call(function, task) for task in tasks)
        return
    waiting, running = list(reversed(tasks)), dict[Any, Process[T]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                process = Process(function, waiting.pop(), timeout)
                running[process.answer] = process
            for answer in wait(list(running)):
                yield running.pop(answer).end()
    finally:
        for process in running.values():
            process.kill()


def _call(function: Callable[[T], Any], task: T) -> Ended[T]:
    """Call the function in this process; an error that this package raises on purpose becomes its failure."""
    try:
        return Ended(task, function(task))
    except BraneError as error:
        return Ended(task, failure=str(error))


class Process(Generic[T]):
    """A process that makes one call and sends back its result or its failure."""

    def __init__(self, function: Callable[[T], Any], task: T, timeout: float | None = None):
        # Processes start afresh: a forked one would inherit this one's memory, and locks that its threads hold.
        context = get_context("spawn")
        self.task = task
        self.answer, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(function, task, sender, timeout))
        self._process.start()
        sender.close()

    def end(self) -> Ended[T]:
        """Wait for the call to end; its result or its failure."""
        try:
            result, failure = self.answer.recv()
        except EOFError:  # the process ended before it could send anything
            self._process.join()
            result, failure = None, _why(self._process.exitcode or 0)
        self._process.join()
        self.answer.close()
        return Ended(self.task, result, failure)

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()


def _why(code: int) -> str:
    """Why a process ended before it could send anything, by its exit code."""
    if code == -signal.SIGALRM:
        return OUT_OF_TIME
    return "its process " + (
        f"was killed by signal {-code} (too little memory?)" if code < 0 else f"ended with code {code}"
    )


def _work(function: Callable[[T], Any], task: T, answer: Connection, timeout: float | None) -> None:
    """Make the call, in the process that was started for it, and send its result or its failure."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then ends this process
    signal.setitimer(signal.ITIMER_REAL, timeout or 0)  # nobody handles this signal, so it ends the process
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        ended = _call(function, task)
    except Exception as error:
        answer.send((None, f"{type(error).__name__}: {error}"))
        raise
    answer.send((ended.result, ended.failure))


def _follow_parent() -> None:
    """End this process when the one that started it has ended, even by SIGKILL."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


# Score the vectors of a training in the ways that its `scoring` names.

DIGITS = 6  # decimal places of a score in a record


def score(
    embedding: Embedding,
    graph: AttributedGraph,
    scoring: Record,
    *,
    seed: int,
    labels: Any = None,
    held_out: HeldOutEdges | None = None,
    own: Callable[[np.ndarray], np.ndarray] | None = None,
    learn: Callable[[np.ndarray], Embedding] | None = None,
) -> Record:
    """The scores that `scoring` names, with their options:

    classes: Macro- and Micro-F1; options of `classify`. clusters: NMI, purity and ARI; options of `cluster`.
    labels: Macro- and Micro-F1 of several labels; options of `classify_several`. numbers: R² and rank correlation;
    options of `regress`. retrieval: precision, recall and MAP of lists of one length; options of `retrieve`. These take
    `labels` in the order of the nodes, or without them the graph's own.
    map: whether to lay the nodes out in the plane. links: AUC; options of `hold_out_edges`, whose result is `held_out`.
    own: the method's own score of pairs of ids, where it has one.
    learn: for a method that learns from labels: gives vectors learned from the labels of a training part, "" for other
    nodes. Classes are then predicted from these, split by split; all else is scored by `embedding`, which no label has
    had a part in.
    Splits and starts are drawn with the training's seed, unless the options have one: so run k of every method has the
    same splits.
    """
    record, vectors = Record(), embedding.vectors
    if "classes" in scoring:
        classes = classify(learn or vectors, graph.labels, **{"seed": seed} | scoring["classes"])
        record |= _by_share(classes.scores, {"macro_f1": "macro", "micro_f1": "micro"})
    if "clusters" in scoring:
        found = cluster(vectors, graph.labels, **{"seed": seed} | scoring["clusters"])
        record |= {name: rounded(getattr(found, name).values) for name in ("nmi", "purity", "ari")}
    labels = graph.labels if labels is None else labels
    if "labels" in scoring:
        several = classify_several(vectors, labels, **_with_seed(scoring["labels"], seed))
        record |= _by_share(several.scores, {"macro_f1": "macro", "micro_f1": "micro"})
    if "numbers" in scoring:
        numbers = regress(vectors, labels, **_with_seed(scoring["numbers"], seed))
        record |= _by_share(numbers.scores, {"r2": "r2", "spearman": "spearman"})
    if "retrieval" in scoring:
        (lists,) = retrieve(vectors, labels, **_with_seed(scoring["retrieval"], seed)).scores
        found_in = {"precision": lists.precision, "recall": lists.recall, "map": lists.average_precision}
        record |= {name: round(value, DIGITS) for name, value in found_in.items()}
    if scoring.get("map"):
        points = map_2d(vectors, seed=seed)
        names = np.asarray(graph.labels).tolist()
        record["map"] = {"points": np.round(points.astype(float), 2).tolist(), "labels": names}
    if held_out is not None:
        pairs = held_out.graph.ids[np.concatenate([held_out.positives, held_out.negatives])]
        scores = own(pairs) if own else None
        links = predict_links(embedding, held_out, similarity="cosine", seed=seed, own=scores)
        record |= {"auc": round(links.regression_auc, DIGITS), "auc_of_cosines": round(links.auc, DIGITS)}
        if links.own_auc is not None:
            record["auc_own"] = round(links.own_auc, DIGITS)
    return record


def _with_seed(options: Record, seed: int) -> Record:
    """Options without the digest of labels, which only tells records apart; splits are drawn with the seed."""
    return {"seed": seed} | {name: value for name, value in options.items() if name != "digest"}


def _by_share(scores: Sequence[Any], measures: dict[str, str]) -> Record:
    """Measures, by their names in a record and in a score: their values at each share of nodes trained on."""
    return {
        name: {f"{one.train:g}": rounded(getattr(one, field).values) for one in scores}
        for name, field in measures.items()
    }


def rounded(values: Iterable[float]) -> list[float]:
    """Numbers with the digits that a record keeps."""
    return [round(float(value), DIGITS) for value in values]


# Compute one training in this process, or those that a store lacks, several at a time.


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
