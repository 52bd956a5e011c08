"""Methods beside what others have published of them: the figures of published.toml, and ours in the same task.

    python benchmarks/quality.py --published [--methods NAME…] [--seeds 3] [--files FOLDER]
    python benchmarks/quality.py --published --show                  print what the file holds and train nothing

A figure of published.toml names the method, the graph, the parameters that its authors ran with where they are not our
defaults, and the task: `train` is a share of the labelled nodes or, as a whole number, how many nodes of each class the
regression learns from; all others are predicted. Run k has seed k and ten random splits, vectors as they are, C = 1 or
what the figure says ("cv": chosen by cross-validation inside the training part). Where the graph at hand is not quite
the one of the figure, `differs` says how.

With train = "planetoid" and C = "validation" the nodes are divided as in the files of kimiyoung/planetoid, by which
graph neural networks are compared: 20 nodes of each class to learn from, 500 that C is chosen by, and 1,000 that are
predicted. planetoid.json lists them by our ids: attributes are in the same order in both files, and a node is known by
its attributes and class. (Among 27 nodes of cora and 16 of citeseer two or more have both in common; which is which is
then not known.)

Graphs are those known by name, and those of FOLDER, each in two files: NAME.ungraph has an edge a line, the numbers of
two nodes; line k of NAME.cmty has the nodes with label k. These have several labels a node, and as many are predicted
as a node has. The program of ProNE's authors (lykeven/ProNE, folder data) has such files of ppi and wikipedia. That of
DeepWalk's (phanein/deepwalk, folder example_graphs) has blogcatalog as a file of MATLAB, which SciPy reads. A figure of
a graph that is not at hand is listed and not run. Written to results/published.json, run by run.
"""

import json
import time
import tomllib
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from neural_brane import METHODS, AttributedGraph, classify, load
from neural_brane.evaluate import classify_several
from neural_brane.evaluate.classify import Score
from neural_brane.evaluate.labelled import Splits
from neural_brane.experiments.store import describe_machine
from neural_brane.files.datasets import registry
from neural_brane.files.storage import atomic

FIGURES = Path(__file__).with_name("published.toml")
PATH = Path(__file__).parent / "results" / "published.json"
DIVISIONS = Path(__file__).with_name("planetoid.json")
FIXED = "planetoid"
PENALTIES = [10.0**power for power in range(-4, 4)]  # the values of C that the fixed division chooses from
SPLITS = 10
DECIDE = ("method", "dataset", "parameters", "train", "C")  # what of a figure decides our own score
NAMES = {"micro_f1": "Micro-F1", "macro_f1": "Macro-F1"}
TOLERANCE = 0.03  # how far below a published figure a method may stay


def read_figures(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The published figures, of some methods or of all."""
    found = tomllib.loads(FIGURES.read_text(encoding="utf-8"))["figure"]
    return [
        {"parameters": {}, "C": 1.0, "note": "", "differs": ""} | one
        for one in found
        if not names or one["method"] in names
    ]


def few_of_each(labels: np.ndarray, count: int, seed: int) -> tuple[Splits, float]:
    """Splits that train on `count` nodes of each class, and the share of the labelled nodes that this is."""
    known = labels[labels != ""]
    numbers = np.unique(known, return_inverse=True)[1]
    orders = []
    for split in range(SPLITS):
        order = np.random.default_rng((seed, split)).permutation(len(known))
        first = np.concatenate([order[numbers[order] == number][:count] for number in range(numbers.max() + 1)])
        orders.append(np.concatenate([first, order[~np.isin(order, first)]]))
    return Splits(np.arange(len(known)), np.array(orders, np.int32), seed), len(first) / len(known)


def find_graph(name: str, folder: Path | None) -> tuple[AttributedGraph, Any] | None:
    """A graph and the labels of its nodes, one or several each; None where it is not at hand."""
    if name in registry():
        graph = load(name)
        return graph, graph.labels
    if folder is None or not (folder / f"{name}.ungraph").exists():
        return None
    edges = np.loadtxt(folder / f"{name}.ungraph", dtype=np.int64)
    count = int(edges.max()) + 1
    ones = np.ones(len(edges), np.float32)
    links = sparse.coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(count, count)).tocsr()
    links = links.maximum(links.T)
    links.data[:] = 1
    members = [np.array(line.split(), np.int64) for line in (folder / f"{name}.cmty").read_text().splitlines()]
    labels = sparse.lil_array((count, len(members)), dtype=np.int8)
    for label, nodes in enumerate(members):
        labels[nodes, [label] * len(nodes)] = 1
    return AttributedGraph.from_sparse(links, sparse.csr_array((count, 0), dtype=np.float32), name=name), labels.tocsr()


def score(graph: AttributedGraph, labels: Any, figure: dict[str, Any], seed: int) -> dict[str, Any]:
    """One training, in the task of a figure; labels: one a node, or a sparse table (nodes, labels) of several."""
    method = METHODS[figure["method"]](**figure["parameters"], seed=seed)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nodes without links have the vector zero
        vectors = method.fit_transform(graph).vectors
    seconds = time.perf_counter() - begun
    options = {"seed": seed, "C": figure["C"]}
    if figure["train"] == FIXED:
        found = classify_divided(vectors, graph)
    elif sparse.issparse(labels):
        found = classify_several(vectors, labels, train=[figure["train"]], splits=SPLITS, **options).scores[0]
    else:
        splits, share = SPLITS, figure["train"]
        if isinstance(share, int):
            splits, share = few_of_each(labels, share, seed)
        learn = (lambda known: method.fit_transform(graph, labels=known).vectors) if method.uses_labels else vectors
        found = classify(learn, labels, train=[share], splits=splits, **options).scores[0]
    scores = {"micro_f1": round(found.micro.mean, 5), "macro_f1": round(found.macro.mean, 5)}
    return {name: figure[name] for name in DECIDE} | {"seed": seed, "seconds": round(seconds, 1)} | scores


def classify_divided(vectors: np.ndarray, graph: AttributedGraph) -> Score:
    """The score of the fixed division's test part, with the C that is best for its validation part, or the smallest."""
    validation, test = (learn_and_predict(graph, part) for part in ("validation", "test"))
    by_penalty = [validation(vectors, C).micro.mean for C in PENALTIES]
    return test(vectors, PENALTIES[int(np.argmax(by_penalty))])


def learn_and_predict(graph: AttributedGraph, part: str) -> Callable[[np.ndarray, float], Score]:
    """A function that scores vectors: it learns the fixed division's training part and predicts another part of it."""
    division = json.loads(DIVISIONS.read_text(encoding="utf-8"))[graph.name]
    learned, predicted = (np.isin(graph.ids, division[name]) for name in ("train", part))
    known = np.where(learned | predicted, graph.labels, "")
    order = np.argsort(predicted[known != ""], kind="stable").astype(np.int32)
    splits, share = Splits(np.arange(len(order)), order[None]), learned.sum() / len(order)
    return lambda vectors, C: classify(vectors, known, train=[share], splits=splits, C=C).scores[0]


def fill(runs: list[dict], figures: list[dict], seeds: int, folder: Path | None) -> list[dict]:
    """Train what is missing; every run is written as it ends."""
    for figure in figures:
        done = {run["seed"] for run in runs_of(runs, figure)}
        found = find_graph(figure["dataset"], folder)
        for seed in sorted(set(range(seeds)) - done) if found else ():
            run = score(*found, figure, seed)
            print(json.dumps(run), flush=True)
            runs.append(run)
            write(runs)
    write(runs)
    return runs


def write(runs: list[dict]) -> None:
    """Write our runs, and all figures beside them."""
    with atomic(PATH) as draft:
        record = {"machine": describe_machine(), "figures": summarise(runs, read_figures()), "runs": runs}
        draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def runs_of(runs: list[dict], figure: dict[str, Any]) -> list[dict]:
    """Our runs in the task of a figure."""
    return [run for run in runs if all(run[name] == figure[name] for name in DECIDE)]


def summarise(runs: list[dict], figures: list[dict]) -> list[dict]:
    """Every figure with our mean over the seeds and the difference; None where its graph is not at hand."""
    rows = []
    for figure in figures:
        own = [run[figure["measure"]] for run in runs_of(runs, figure)]
        ours = fmean(own) if own else None
        difference = None if ours is None else ours - figure["value"]
        told = {"trained_on": trained_on(figure["train"]), "seeds": len(own), "ours": ours, "difference": difference}
        rows.append(figure | told)
    return rows


def show(rows: list[dict]) -> None:
    """Print the table, and which methods stay below what was published."""
    heads = ("method", "graph", "train", "measure", "published", "ours", "difference", "source")
    table = Table(*heads, title="Published, and ours in the same task")
    for row in rows:
        table.add_row(*_task(row), f"{row['value']:.3f}", *_own(row), row["source"])
    Console(width=180).print(table)
    for differs in (False, True):
        some = [row for row in rows if short(row) and bool(row["differs"]) == differs]
        below = [f"{row['method']} on {row['dataset']} ({row['difference']:+.3f})" for row in some]
        where = "on a graph that differs" if differs else "on the same graph"
        print(f"below what was published by more than {TOLERANCE} {where}:", ", ".join(below) or "none")


def short(row: dict) -> bool:
    """Whether a method stays too far below a published figure."""
    return row["difference"] is not None and row["difference"] < -TOLERANCE


def _task(row: dict) -> list[str]:
    return [row["method"], row["dataset"], row["trained_on"], NAMES[row["measure"]]]


def trained_on(train: float | int | str) -> str:
    """What a regression learns from, in a few words."""
    if train == FIXED:
        return "fixed division"
    return f"{train} of a class" if isinstance(train, int) else f"{100 * train:.0f} %"


def _own(row: dict) -> tuple[str, str]:
    return ("not at hand", "") if row["ours"] is None else (f"{row['ours']:.3f}", f"{row['difference']:+.3f}")


def run(names: list[str] | None, seeds: int, *, folder: Path | None, only_show: bool) -> None:
    """Compute what is missing and print the table."""
    figures = read_figures(names)
    runs = json.loads(PATH.read_text(encoding="utf-8"))["runs"] if PATH.exists() else []
    if not only_show:
        runs = fill(runs, figures, seeds, folder)
    show(summarise(runs, figures))
