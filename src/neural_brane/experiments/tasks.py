"""The tasks that methods are compared by: how each is scored, and which of its measures ranks."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neural_brane.errors import GraphError, ParameterError
from neural_brane.evaluate import classify, classify_several, hold_out_edges, regress
from neural_brane.evaluate.labelled import are_labelled
from neural_brane.experiments.store import Record
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.graph.labels import MultiLabels

# Labels that are not one class a node: several, or numbers, in the order of a graph's nodes.

Targets = np.ndarray | MultiLabels


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


# The tasks that methods are compared by: how each is scored, and which of its measures ranks.


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
F1 = {"macro_f1": "Macro-F1", "micro_f1": "Micro-F1"}
TASKS = {
    one.name: one
    for one in (
        Task(
            name="classify",
            about="classes",
            scoring={"classes": {"train": [SHARE], "splits": SPLITS, "C": 1.0}},
            measures=F1,
            ranked_by=("macro_f1",),
            judged=f"Logistic regression (C = 1, vectors as they are) learns the classes of {100 * SHARE:g} % of the "
            f"labelled nodes and predicts the others, in {SPLITS} random splits a run. Ranked by Macro-F1.",
        ),
        Task(
            name="multilabel",
            about="labels",
            scoring={"labels": {"train": [SHARE], "splits": SPLITS, "C": 1.0}},
            measures=F1,
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
    for name in names:
        if name not in TASKS:
            close = difflib.get_close_matches(name, TASKS, n=1)
            hint = f" (did you mean '{close[0]}'?)" if close else ""
            raise ParameterError(f"task '{name}' is unknown{hint}; choose from {', '.join(TASKS)}")
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
