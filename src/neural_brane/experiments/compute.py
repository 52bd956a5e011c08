"""Compute trainings in processes of their own and score their vectors; the tasks that methods are compared by."""

from __future__ import annotations

import hashlib
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
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from scipy.sparse.csgraph import connected_components
from threadpoolctl import threadpool_limits

from neural_brane.embedding import Embedding
from neural_brane.errors import BraneError, GraphError, ParameterError
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
from neural_brane.evaluate.labelled import are_labelled
from neural_brane.evaluate.link import HeldOutEdges
from neural_brane.experiments.store import Record, Store, Training, check_names, describe_machine
from neural_brane.files import datasets
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.graph.labels import MultiLabels
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
            code, result = self._process.exitcode or 0, None
            killed = f"its process was killed by signal {-code} (too little memory?)"
            failure = killed if code < 0 else f"its process ended with {code}"
            if code == -signal.SIGALRM:
                failure = OUT_OF_TIME
        self._process.join()
        self.answer.close()
        return Ended(self.task, result, failure)

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()


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
    if (parent := parent_process()) is not None:
        wait([parent.sentinel])
        os._exit(1)


# Score the vectors of a training in the ways that its `scoring` names.

DIGITS = 6  # decimal places of a score in a record
F1 = {"macro_f1": "macro", "micro_f1": "micro"}


class Outcome(NamedTuple):
    """What a training has learned, to be scored."""

    embedding: Embedding  # learned without any label
    own: Callable[[np.ndarray], np.ndarray] | None = None  # the method's own score of pairs of ids
    learn: Callable[[np.ndarray], Embedding] | None = None  # gives vectors learned from labels, "" for other nodes
    held_out: HeldOutEdges | None = None  # the edges to predict


def score(made: Outcome, graph: AttributedGraph, scoring: Record, *, seed: int, labels: Any = None) -> Record:
    """The scores that `scoring` names, with their options:

    classes: Macro- and Micro-F1; options of `classify`. clusters: NMI, purity and ARI; options of `cluster`.
    labels: Macro- and Micro-F1 of several labels; options of `classify_several`. numbers: R² and rank correlation;
    options of `regress`. retrieval: precision, recall and MAP of lists of one length; options of `retrieve`. These take
    `labels` in the order of the nodes, or without them the graph's own.
    map: whether to lay the nodes out in the plane. links: AUC of `made.held_out`; options of `hold_out_edges`.

    Where a method learns from labels, classes are predicted split by split from vectors learned from the labels of the
    training part. Splits and starts are drawn with the training's seed, unless the options have one: so run k of every
    method has the same splits.
    """
    record, vectors = Record(), made.embedding.vectors
    labels = graph.labels if labels is None else labels
    options = {  # the digest of labels only tells records apart
        name: {"seed": seed} | {option: value for option, value in given.items() if option != "digest"}
        for name, given in scoring.items()
        if isinstance(given, dict)
    }
    if "classes" in options:
        record |= _by_share(classify(made.learn or vectors, graph.labels, **options["classes"]).scores, F1)
    if "clusters" in options:
        found = cluster(vectors, graph.labels, **options["clusters"])
        record |= {name: rounded(getattr(found, name).values) for name in ("nmi", "purity", "ari")}
    if "labels" in options:
        record |= _by_share(classify_several(vectors, labels, **options["labels"]).scores, F1)
    if "numbers" in options:
        several = regress(vectors, labels, **options["numbers"]).scores
        record |= _by_share(several, {"r2": "r2", "spearman": "spearman"})
    if "retrieval" in options:
        (lists,) = retrieve(vectors, labels, **options["retrieval"]).scores
        found_in = {"precision": lists.precision, "recall": lists.recall, "map": lists.average_precision}
        record |= {name: round(value, DIGITS) for name, value in found_in.items()}
    if scoring.get("map"):
        points = np.round(map_2d(vectors, seed=seed).astype(float), 2)
        record["map"] = {"points": points.tolist(), "labels": np.asarray(graph.labels).tolist()}
    if (held_out := made.held_out) is not None:
        pairs = held_out.graph.ids[np.concatenate([held_out.positives, held_out.negatives])]
        own = made.own(pairs) if made.own else None
        links = predict_links(made.embedding, held_out, similarity="cosine", seed=seed, own=own)
        aucs = {"auc": links.regression_auc, "auc_of_cosines": links.auc, "auc_own": links.own_auc}
        record |= {name: round(value, DIGITS) for name, value in aucs.items() if value is not None}
    return record


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
    labels: Any = None,
    jobs: int = 1,
    isolated: bool = True,
    timeout: float | None = None,
) -> Iterator[Ended[Training]]:
    """Compute the trainings that the store lacks, `jobs` at a time, keep each, and yield it as it ends.

    labels: what is predicted instead of the graph's classes, as `score` takes it. isolated, timeout: as in `run`; a
    training in a process of its own has one thread.
    """
    threads = 1 if isolated or jobs > 1 else None
    work = partial(compute, graph=store.graph, labels=labels, threads=threads)
    for ended in run(work, store.missing(trainings), jobs=jobs, isolated=isolated, timeout=timeout):
        if not ended.failure:
            store.put(ended.task, ended.result)
        yield ended


def failures_of(
    trainings: Sequence[Training], store: Store, advance: Callable[[], object], **options: Any
) -> dict[Path, str]:
    """Compute what the store lacks, as `compute_missing` does; why trainings failed, by the file each would have had.

    advance: called as each training ends.
    """
    failures = {}
    for ended in compute_missing(trainings, store, **options):
        if ended.failure:
            failures[store.path(ended.task)] = ended.failure
        advance()
    return failures


def compute_all(
    trainings: Sequence[Training], store: Store, *, jobs: int = 1, progress: Reporter | None = None
) -> list[Record]:
    """The records of all trainings; those that the store lacks are computed first, and all of them must succeed.

    progress: told how many trainings are done.
    """
    missing = store.missing(trainings)
    meter = Meter(progress, len(missing), "trainings")
    failures = failures_of(missing, store, meter.advance, jobs=jobs)
    for one in missing:
        if why := failures.get(store.path(one)):
            first = f"{one.method} on {one.dataset}, seed {one.seed}: {why}"
            raise BraneError(f"{len(failures)} of {len(missing)} trainings failed; the first: {first}")
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
        learn = trainer.learn if trainer.model.uses_labels else None
        made = Outcome(embedding, getattr(trainer.model, "score", None), learn, held_out)
        scores = score(made, graph, scoring, seed=seed, labels=labels)
    on_gpu = trainer.model.get_params().get("device") == "cuda"
    return {
        "data": data_facts(graph),
        **scores,
        "loss": rounded(getattr(trainer.model, "loss_history_", None) or []),
        "seconds": round(float(np.mean(trainer.seconds)), 3),
        "processor_seconds": round(float(np.mean(trainer.processor_seconds)), 3),
        "peak_mb": trainer.peak,
        "machine": describe_machine() | ({"gpu": gpu_name()} if on_gpu else {}),
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
    components, member_of = connected_components(graph.adjacency, directed=False)
    return {
        "name": graph.name,
        "nodes": len(graph),
        "edges": graph.edges,
        "attributes": graph.attributes.shape[1],
        "classes": len(graph.classes),
        "components": int(components),
        "largest_component": int(np.bincount(member_of).max()),
        "digest": graph.digest(),
    }


Targets = np.ndarray | MultiLabels  # labels that are not one class a node: several, or numbers, in the nodes' order


def as_targets(labels: Any) -> Targets | None:
    """An array of numbers as floats, anything else as several labels a node."""
    if labels is None or isinstance(labels, MultiLabels):
        return labels
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "fiu":
        return labels.astype(np.float64)
    return MultiLabels.of(labels)


def in_order_of(graph: AttributedGraph, ids: np.ndarray, targets: Targets) -> Targets:
    """Labels by id as labels of all nodes of the graph; those that `ids` lack have none."""
    rows = locate(graph.ids, ids)
    if (rows < 0).any():
        stranger = ids[np.argmax(rows < 0)].item()
        raise GraphError(f"labels name node {stranger!r}, which the graph lacks; drop it, or give labels of this graph")
    if isinstance(targets, MultiLabels):
        pairs = targets.members.tocoo()
        return MultiLabels.of_pairs(rows[pairs.row], np.array(targets.names)[pairs.col], len(graph))
    numbers = np.full(len(graph), np.nan)
    numbers[rows] = targets
    return numbers


def targets_digest(targets: Targets) -> str:
    """A short hash."""
    if isinstance(targets, MultiLabels):
        return targets.digest()
    return hashlib.sha256(np.ascontiguousarray(targets).tobytes()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Task:
    """Something that vectors are good for."""

    name: str
    about: str  # what is told apart, in the plural: classes, clusters, links
    scoring: Record  # of its trainings, as `trainings.score` takes it
    measures: dict[str, str]  # by their names in a record: what people call them, in the order shown
    ranked_by: tuple[str, ...]  # the measure that ranks; of several, the one that is best for the method
    judged: str  # how, in a sentence or two
    least: float = 0.0  # a score that takes no skill, where bars begin

    def value(self, record: Record, measure: str) -> float | None:
        """A measure of one training, the mean over its splits or starts; None where the method has none."""
        found = record.get(measure)
        if isinstance(found, dict):  # by share of nodes trained on; there is one share here
            (found,) = found.values()
        return None if found is None else round(float(np.mean(found)), 6)

    def share(self, score: float) -> float:
        """How far a score lies on the way from no skill, 0, to perfection, 1."""
        return min(max((score - self.least) / (1 - self.least), 0.0), 1.0)


SHARE, SPLITS, STARTS, HELD_OUT = 0.5, 10, 10, 0.1
LENGTH, QUERIES = 10, 1000
TASKS = {
    one.name: one
    for one in (
        Task(
            name="classify",
            about="classes",
            scoring={"classes": {"train": [SHARE], "splits": SPLITS, "C": 1.0}},
            measures={"macro_f1": "Macro-F1", "micro_f1": "Micro-F1"},
            ranked_by=("macro_f1",),
            judged=f"Logistic regression (C = 1, vectors as they are) learns the classes of {100 * SHARE:g} % of the "
            f"labelled nodes and predicts the others, in {SPLITS} random splits a run. Ranked by Macro-F1.",
        ),
        Task(
            name="multilabel",
            about="labels",
            scoring={"labels": {"train": [SHARE], "splits": SPLITS, "C": 1.0}},
            measures={"macro_f1": "Macro-F1", "micro_f1": "Micro-F1"},
            ranked_by=("macro_f1",),
            judged=f"Logistic regression (C = 1, vectors as they are) learns each label against the rest on "
            f"{100 * SHARE:g} % of the labelled nodes, in {SPLITS} random splits a run; of each other node as many "
            "labels are predicted as it has, the likeliest ones. Ranked by Macro-F1.",
        ),
        Task(
            name="regress",
            about="numbers",
            scoring={"numbers": {"train": [SHARE], "splits": SPLITS}},
            measures={"r2": "R²", "spearman": "Spearman"},
            ranked_by=("r2",),
            judged=f"Ridge regression learns the numbers of {100 * SHARE:g} % of the nodes, its penalty chosen among "
            f"them, and predicts the others, in {SPLITS} random splits a run. Ranked by R²; Spearman is the "
            "correlation of ranks.",
        ),
        Task(
            name="cluster",
            about="clusters",
            scoring={"clusters": {"starts": STARTS}},
            measures={"nmi": "NMI", "purity": "purity", "ari": "ARI"},
            ranked_by=("nmi",),
            judged=f"k-means with as many clusters as there are classes, {STARTS} starts a run, none of them picked "
            "out. Ranked by NMI.",
        ),
        Task(
            name="retrieve",
            about="retrieval",
            scoring={"retrieval": {"k": LENGTH, "queries": QUERIES}},
            measures={"precision": f"precision@{LENGTH}", "recall": f"recall@{LENGTH}", "map": f"MAP@{LENGTH}"},
            ranked_by=("precision",),
            judged=f"The {LENGTH} nodes nearest by cosine to each of {QUERIES:,} labelled nodes, or to all if there "
            "are fewer: the share of them that have the same class, or share one of several labels. Nothing is "
            "learned. Ranked by precision.",
        ),
        Task(
            name="link",
            about="links",
            scoring={"links": {"share": HELD_OUT}},
            measures={"auc_of_cosines": "AUC by cosine", "auc_own": "AUC by own score", "auc": "AUC by regression"},
            ranked_by=("auc_of_cosines", "auc_own"),
            least=0.5,
            judged=f"A training of its own, on the graph without {100 * HELD_OUT:g} % of its edges, which are then "
            "told from as many pairs without an edge. Ranked by the better of two measures that learn nothing more: "
            "the cosine of two vectors and, where a method has one, its own score of a pair. The regression on "
            "products of two vectors is shown beside them.",
        ),
    )
}


BY_LABELS = {  # the tasks that serve what the labels are
    "class": ("classify", "cluster", "retrieve"),
    "several": ("multilabel", "retrieve"),
    "number": ("regress",),
}
WHAT = {"class": "one class a node", "several": "several a node", "number": "numbers"}


def choose_tasks(
    names: str | Sequence[str] | None, graph: AttributedGraph, labels: Targets | None = None
) -> tuple[list[Task], list[str]]:
    """The tasks named, or all that the graph has enough for; and a note on those it lacks labels for.

    labels: several a node (`MultiLabels`) or numbers, in the order of the nodes, instead of the graph's classes.
    """
    names = [names] if isinstance(names, str) else list(names or ())
    check_names(names, list(TASKS), "task")
    kind = "class" if labels is None else "several" if isinstance(labels, MultiLabels) else "number"
    labelled = labels is not None or len(graph.classes) > 1
    if not labelled and (lacking := [name for name in names if name != "link"]):
        raise GraphError(
            f"task '{lacking[0]}' needs labels of two classes or more, and graph '{graph.name}' has "
            f"{len(graph.classes)}; give labels, or compare by link alone"
        )
    served = (*BY_LABELS[kind], "link")
    if unserved := [name for name in names if name not in served]:
        raise ParameterError(
            f"task '{unserved[0]}' does not go with these labels, which are {WHAT[kind]}; "
            f"choose from {', '.join(served)}"
        )
    wanted = names or ["link"]
    if not names and labelled:  # lists of the nearest need enough nodes
        wanted = [name for name in served if name != "retrieve" or _labelled(graph, labels) > LENGTH]
    chosen = [task for name, task in TASKS.items() if name in wanted]
    for task in chosen:
        _check(task, graph, labels)
    note = f"graph '{graph.name}' has no labels to compare by: by links alone"
    return chosen, [] if labelled or names else [note]


def _labelled(graph: AttributedGraph, labels: Targets | None) -> int:
    """How many nodes have a label."""
    known = graph.labels if labels is None else labels
    return 0 if known is None else int(are_labelled(known).sum())


def _check(task: Task, graph: AttributedGraph, labels: Targets | None) -> None:
    """Refuse a graph that a task cannot score, before anything is trained on it."""
    blank = np.zeros((len(graph), 1))
    if task.name == "classify":
        classify(blank, graph.labels, train=[SHARE], splits=1)
    if task.name == "multilabel":
        classify_several(blank, labels, train=[SHARE], splits=1)
    if task.name == "regress":
        regress(blank, labels, train=[SHARE], splits=1)
    if task.name == "retrieve" and (count := _labelled(graph, labels)) <= LENGTH:
        raise GraphError(f"task 'retrieve' needs more than {LENGTH} labelled nodes, and there are {count}")
    if task.name == "link":
        hold_out_edges(graph, share=HELD_OUT)
