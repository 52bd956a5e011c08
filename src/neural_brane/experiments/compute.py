"""Compute trainings in separate processes and score their vectors; define the tasks that compare methods."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.resource_tracker import ensure_running
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
from neural_brane.files.checkpoints import STOP_SIGNALS, DelayedStop
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.graph.labels import MultiLabels
from neural_brane.methods.training import gpu_name
from neural_brane.progress import Meter, Reporter

# Each call has its own process, so that its peak memory can be measured and its crash stops no other call.

T = TypeVar("T")
OUT_OF_TIME = "took longer than the time limit"


@dataclass(frozen=True, slots=True)
class FinishedCall(Generic[T]):
    """A finished call: its result, or why it failed."""

    task: T
    result: Any = None
    failure: str = ""


def run(
    function: Callable[[T], Any], tasks: Sequence[T], *, jobs: int, isolated: bool = True, timeout: float | None = None
) -> Iterator[FinishedCall[T]]:
    """Call `function` with each task, `jobs` at a time, and yield each call as it ends.

    Every call runs in a new process. A call that raises an error, or whose process is killed, is yielded with its
    failure; the other calls continue. If the caller stops, for example by Ctrl-C, the running processes are killed.
    If the caller is killed, they end by themselves.

    isolated: with False and one job, the function is called in this process, which saves starting a process.
    timeout: seconds that a process may take; a longer call fails with OUT_OF_TIME.
    """
    if jobs < 1:
        raise ParameterError(f"jobs={jobs}: must be at least 1")
    if jobs == 1 and not isolated:
        yield from (_call(function, task) for task in tasks)
        return
    waiting, running = list(reversed(tasks)), dict[Any, Process[T]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                with _no_signals():
                    process = Process(function, waiting.pop(), timeout)
                    running[process.answer] = process
            for answer in wait(list(running)):
                yield running.pop(answer).end()
    finally:
        with _no_signals():
            for process in running.values():
                process.kill()


@contextmanager
def _no_signals() -> Iterator[None]:
    """Delay signals that ask to stop, so that no process is left half started; processes started here ignore them."""
    ensure_running()  # when it starts, this process of `multiprocessing` lets signals through
    with DelayedStop() as delayed:
        delayed.busy = True
        before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _call(function: Callable[[T], Any], task: T) -> FinishedCall[T]:
    """Call the function in this process; a `BraneError` becomes the call's failure, others are raised."""
    try:
        return FinishedCall(task, function(task))
    except BraneError as error:
        return FinishedCall(task, failure=str(error))


class Process(Generic[T]):
    """A process that makes one call and sends back its result or its failure."""

    def __init__(self, function: Callable[[T], Any], task: T, timeout: float | None = None):
        # A forked process would inherit this one's memory, and the locks held by its threads.
        context = get_context("spawn")
        self.task = task
        self.answer, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(function, task, sender, timeout))
        self._process.start()
        sender.close()

    def end(self) -> FinishedCall[T]:
        """Wait for the call to end, and return its result or its failure."""
        try:
            result, failure = self.answer.recv()
        except EOFError:  # the process ended before it could send anything
            self._process.join()
            code, result = self._process.exitcode or 0, None
            killed = f"the process was killed by signal {-code} (not enough memory?)"
            failure = killed if code < 0 else f"the process ended with exit code {code}"
            if code == -signal.SIGALRM:
                failure = OUT_OF_TIME
        self._process.join()
        self.answer.close()
        return FinishedCall(self.task, result, failure)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.join()


def _work(function: Callable[[T], Any], task: T, answer: Connection, timeout: float | None) -> None:
    """Make the call in a new process, and send its result or its failure."""
    signal.setitimer(signal.ITIMER_REAL, timeout or 0)  # no handler is installed, so the signal ends the process
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        ended = _call(function, task)
    except Exception as error:
        answer.send((None, f"{type(error).__name__}: {error}"))
        raise
    answer.send((ended.result, ended.failure))


def _follow_parent() -> None:
    """End this process when its parent has ended, even by SIGKILL."""
    if (parent := parent_process()) is not None:
        wait([parent.sentinel])
        os._exit(1)


DIGITS = 6  # decimal places of a score in a record
F1 = {"macro_f1": "macro", "micro_f1": "micro"}


class Outcome(NamedTuple):
    """The result of a training, ready to be scored."""

    embedding: Embedding  # learned without labels
    learn: Callable[[np.ndarray], Embedding] | None = None  # learns from labels; "" means no label
    held_out: HeldOutEdges | None = None  # the edges to predict


def score(made: Outcome, graph: AttributedGraph, scoring: Record, *, seed: int, labels: Any = None) -> Record:
    """Return the scores that `scoring` names; it maps each name to options.

    classes: Macro- and Micro-F1; options of `classify`. clusters: NMI, purity and ARI; options of `cluster`.
    labels: Macro- and Micro-F1 of several labels; options of `classify_several`. numbers: R² and rank correlation;
    options of `regress`. retrieval: precision, recall and MAP of lists of one length; options of `retrieve`. These use
    `labels`, in the order of the nodes, or the graph's own labels if None.
    map: True adds a 2-D map of the nodes. links: AUC on `made.held_out`; options of `hold_out_edges`.

    If the method learns from labels, it is trained for every split with the labels of that split's training nodes, and
    predicts classes from these vectors. The training's seed draws splits and starts, unless the options have a seed, so
    run k of every method has the same splits.
    """
    record, vectors = Record(), made.embedding.vectors
    labels = graph.labels if labels is None else labels
    options = {  # the digest of labels only distinguishes records
        name: {"seed": seed} | {option: value for option, value in given.items() if option != "digest"}
        for name, given in scoring.items()
        if isinstance(given, dict)
    }
    if "classes" in options:
        record |= _by_share(classify(made.learn or vectors, graph.labels, **options["classes"]).scores, F1)
    if "clusters" in options:
        found = cluster(vectors, graph.labels, **options["clusters"])
        record |= {name: round(getattr(found, name), DIGITS) for name in ("nmi", "purity", "ari")}
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
        links = predict_links(made.embedding, held_out, similarity="cosine", seed=seed)
        aucs = {"auc_of_cosines": links.auc, "scorer_auc": links.scorer_auc}
        record |= {name: round(value, DIGITS) for name, value in aucs.items() if value is not None}
    return record


def _by_share(scores: Sequence[Any], measures: dict[str, str]) -> Record:
    """Return the values of measures at each share of training nodes; measures map record names to score fields."""
    return {
        name: {f"{one.train:g}": rounded(getattr(one, field).values) for one in scores}
        for name, field in measures.items()
    }


def rounded(values: Iterable[float]) -> list[float]:
    """Return numbers rounded to the digits of a record."""
    return [round(float(value), DIGITS) for value in values]


def compute_missing(
    trainings: Sequence[Training],
    store: Store,
    *,
    labels: Any = None,
    jobs: int = 1,
    isolated: bool = True,
    timeout: float | None = None,
) -> Iterator[FinishedCall[Training]]:
    """Compute the trainings that the store does not contain, `jobs` at a time; store and yield each as it ends.

    labels: predicted instead of the graph's classes; see `score`. isolated, timeout: see `run`. A training in a
    separate process uses one thread.
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
    """Call `compute_missing`, and return why trainings failed, by the files that would have stored them.

    advance: called when a training ends.
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
    """Compute the trainings that the store does not contain, and return all records; raise an error if one failed.

    progress: receives the number of finished trainings.
    """
    missing = store.missing(trainings)
    meter = Meter(progress, len(missing), "trainings")
    failures = failures_of(missing, store, meter.advance, jobs=jobs)
    for one in missing:
        if why := failures.get(store.path(one)):
            first = f"{one.method} on {one.dataset}, seed {one.seed}: {why}"
            raise BraneError(f"{len(failures)} of {len(missing)} trainings failed; the first error: {first}")
    return [record for training in trainings if (record := store.get(training)) is not None]


def compute(
    training: Training, graph: AttributedGraph | None = None, labels: Any = None, threads: int | None = 1
) -> Record:
    """Train a method, score its vectors, and return the record.

    A method that learns from labels is trained again for every split of the class prediction, with the labels of that
    split's training nodes only; all other scores use vectors learned without labels. `seconds` (wall clock) and
    `processor_seconds` are means over these trainings; `peak_mb` is the peak memory until the first training ended.
    """
    graph = datasets.load(training.dataset) if graph is None else graph
    seed, scoring = training.seed, training.scoring
    held_out = hold_out_edges(graph, **{"seed": seed} | scoring["links"]) if "links" in scoring else None
    trainer = MethodTrainer(training, graph if held_out is None else held_out.graph, threads)
    with threadpool_limits(threads):
        embedding = trainer.learn()
        learn = trainer.learn if trainer.model.uses_labels else None
        made = Outcome(embedding, learn, held_out)
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


class MethodTrainer:
    """Train one method on one graph, once or for every split, and measure time and memory."""

    def __init__(self, training: Training, graph: AttributedGraph, threads: int | None):
        self.model, self.graph = training.model(threads), graph
        self.seconds: list[float] = []
        self.processor_seconds: list[float] = []
        self.peak = 0.0

    def learn(self, labels: np.ndarray | None = None) -> Embedding:
        """Learn vectors from the graph, and from labels if given."""
        start, busy = time.perf_counter(), time.process_time()
        embedding = self.model.fit_transform(self.graph, labels=labels)
        self.seconds.append(time.perf_counter() - start)
        self.processor_seconds.append(time.process_time() - busy)
        if len(self.seconds) == 1:  # later the memory of scoring would be included
            self.peak = peak_memory()
        return embedding


def peak_memory() -> float:
    """Return the peak resident memory of this process so far, in MB of 10⁶ bytes.

    Linux is read through /proc, because getrusage there includes the memory of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return round(int(line.split()[1]) * 1024 / 1e6, 1)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 1)  # bytes, on macOS


def data_facts(graph: AttributedGraph) -> Record:
    """Return the name, sizes, number of connected components and digest of a graph."""
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


Targets = np.ndarray | MultiLabels  # numbers, or several labels per node, in the order of the nodes


def as_targets(labels: Any) -> Targets | None:
    """Return an array of numbers as float64, and anything else as several labels per node."""
    if labels is None or isinstance(labels, MultiLabels):
        return labels
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "fiu":
        return labels.astype(np.float64)
    return MultiLabels.from_labels(labels)


def align_labels(graph: AttributedGraph, ids: np.ndarray, targets: Targets) -> Targets:
    """Return labels by id as labels of all nodes of the graph; nodes that are not in `ids` have none."""
    rows = locate(graph.ids, ids)
    if (rows < 0).any():
        unknown = ids[np.argmax(rows < 0)].item()
        raise GraphError(f"labels name node {unknown!r}, which is not in the graph; drop it, or use matching labels")
    if isinstance(targets, MultiLabels):
        pairs = targets.members.tocoo()
        return MultiLabels.from_pairs(rows[pairs.row], np.array(targets.names)[pairs.col], len(graph))
    numbers = np.full(len(graph), np.nan)
    numbers[rows] = targets
    return numbers


def targets_digest(targets: Targets) -> str:
    """Return a short hash of labels."""
    if isinstance(targets, MultiLabels):
        return targets.digest()
    return hashlib.sha256(np.ascontiguousarray(targets).tobytes()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Task:
    """A use of vectors that can be scored."""

    name: str
    about: str  # plural noun for sentences: classes, clusters, links
    scoring: Record  # scores of its trainings; see `score`
    measures: dict[str, str]  # name in a record: title, in the order shown
    ranked_by: tuple[str, ...]  # the measure that ranks; if several, the method's best
    judged: str  # how the task is scored, in one to three sentences
    least: float = 0.0  # score of random guessing; bars begin here

    def value(self, record: Record, measure: str) -> float | None:
        """Return a measure of one training, the mean over splits, or None if the record has none."""
        found = record.get(measure)
        if isinstance(found, dict):  # maps the only share of training nodes to its values
            (found,) = found.values()
        return None if found is None else round(float(np.mean(found)), 6)

    def share(self, score: float) -> float:
        """Scale a score to 0 for random guessing and 1 for a perfect result."""
        return min(max((score - self.least) / (1 - self.least), 0.0), 1.0)


SHARE, SPLITS, STARTS, HELD_OUT = 0.5, 10, 10, 0.1
LENGTH, QUERIES = 10, 1000
CLASSIFIER = "Logistic regression (C = 1, the vectors of every method scaled to one root-mean-square length)"
TASKS = {
    one.name: one
    for one in (
        Task(
            name="classify",
            about="classes",
            scoring={"classes": {"train": [SHARE], "splits": SPLITS, "C": 1.0}},
            measures={"macro_f1": "Macro-F1", "micro_f1": "Micro-F1"},
            ranked_by=("macro_f1",),
            judged=f"{CLASSIFIER} learns the classes of {100 * SHARE:g} % of the "
            f"labelled nodes and predicts the others, in {SPLITS} random splits per run. Ranked by Macro-F1.",
        ),
        Task(
            name="multilabel",
            about="labels",
            scoring={"labels": {"train": [SHARE], "splits": SPLITS, "C": 1.0}},
            measures={"macro_f1": "Macro-F1", "micro_f1": "Micro-F1"},
            ranked_by=("macro_f1",),
            judged=f"{CLASSIFIER} learns each label against the rest on "
            f"{100 * SHARE:g} % of the labelled nodes, in {SPLITS} random splits per run. For each other node it "
            "predicts the most likely labels, as many as the node has. Ranked by Macro-F1.",
        ),
        Task(
            name="regress",
            about="numbers",
            scoring={"numbers": {"train": [SHARE], "splits": SPLITS}},
            measures={"r2": "R²", "spearman": "Spearman"},
            ranked_by=("r2",),
            judged=f"Ridge regression learns the numbers of {100 * SHARE:g} % of the nodes, which also select its "
            f"penalty, and predicts the others, in {SPLITS} random splits per run. Ranked by R²; Spearman is the "
            "rank correlation.",
        ),
        Task(
            name="cluster",
            about="clusters",
            scoring={"clusters": {"starts": STARTS}},
            measures={"nmi": "NMI", "purity": "purity", "ari": "ARI"},
            ranked_by=("nmi",),
            judged=f"k-means with as many clusters as classes; of {STARTS} starts per run, the one with the smallest "
            "inertia counts. Ranked by NMI.",
        ),
        Task(
            name="retrieve",
            about="retrieval",
            scoring={"retrieval": {"k": LENGTH, "queries": QUERIES}},
            measures={"precision": f"precision@{LENGTH}", "recall": f"recall@{LENGTH}", "map": f"MAP@{LENGTH}"},
            ranked_by=("precision",),
            judged=f"For each of {QUERIES:,} labelled nodes, or all if there are fewer, the {LENGTH} nearest nodes by "
            "cosine are found; those with the same class, or with a common label, count as correct. No classifier is "
            "trained. Ranked by precision.",
        ),
        Task(
            name="link",
            about="links",
            scoring={"links": {"share": HELD_OUT}},
            measures={"auc_of_cosines": "AUC by cosine", "scorer_auc": "AUC by link scorer"},
            ranked_by=("auc_of_cosines", "scorer_auc"),
            least=0.5,
            judged=f"The method is trained again on the graph without {100 * HELD_OUT:g} % of its edges. The test is "
            "to tell these edges from as many pairs without an edge. Ranked by the better of two scores, which are "
            "the same for every method: the cosine of the two vectors, and a regression over vectors and links.",
        ),
    )
}


BY_LABELS = {  # tasks by kind of labels
    "class": ("classify", "cluster", "retrieve"),
    "several": ("multilabel", "retrieve"),
    "number": ("regress",),
}
KINDS = {"class": "one class per node", "several": "several labels per node", "number": "numbers"}


def choose_tasks(
    names: str | Sequence[str] | None, graph: AttributedGraph, labels: Targets | None = None
) -> tuple[list[Task], list[str]]:
    """Return the named tasks, or all that the graph allows, and a note if labels are missing.

    labels: several per node (`MultiLabels`) or numbers, in the order of the nodes, instead of the graph's classes.
    """
    names = [names] if isinstance(names, str) else list(names or ())
    check_names(names, list(TASKS), "task")
    kind = "class" if labels is None else "several" if isinstance(labels, MultiLabels) else "number"
    labelled = labels is not None or len(graph.classes) > 1
    if not labelled and (lacking := [name for name in names if name != "link"]):
        raise GraphError(
            f"task '{lacking[0]}' needs labels of at least two classes, but graph '{graph.name}' has "
            f"{len(graph.classes)}; give labels, or compare by task 'link' only"
        )
    served = (*BY_LABELS[kind], "link")
    if unserved := [name for name in names if name not in served]:
        raise ParameterError(
            f"task '{unserved[0]}' does not match these labels, which are {KINDS[kind]}; "
            f"choose from {', '.join(served)}"
        )
    chosen_names = names or ["link"]
    if not names and labelled:  # retrieval needs more labelled nodes than its lists are long
        chosen_names = [name for name in served if name != "retrieve" or _count_labelled(graph, labels) > LENGTH]
    chosen = [task for name, task in TASKS.items() if name in chosen_names]
    for task in chosen:
        _check(task, graph, labels)
    note = f"graph '{graph.name}' has no labels; methods are compared by links only"
    return chosen, [] if labelled or names else [note]


def _count_labelled(graph: AttributedGraph, labels: Targets | None) -> int:
    known = graph.labels if labels is None else labels
    return 0 if known is None else int(are_labelled(known).sum())


def _check(task: Task, graph: AttributedGraph, labels: Targets | None) -> None:
    """Raise an error if a task cannot score a graph, before anything is trained."""
    blank = np.zeros((len(graph), 1))
    if task.name == "classify":
        classify(blank, graph.labels, train=[SHARE], splits=1)
    if task.name == "multilabel":
        classify_several(blank, labels, train=[SHARE], splits=1)
    if task.name == "regress":
        regress(blank, labels, train=[SHARE], splits=1)
    if task.name == "retrieve" and (count := _count_labelled(graph, labels)) <= LENGTH:
        raise GraphError(f"task 'retrieve' needs more than {LENGTH} labelled nodes; there are {count}")
    if task.name == "link":
        hold_out_edges(graph, share=HELD_OUT)
