"""Compare our methods with scores that others published: published.toml lists them, we train in the same task.

    python benchmarks/quality.py --published [--methods NAME…] [--seeds 3] [--files FOLDER]
    python benchmarks/quality.py --published --show                  print the stored scores and train nothing

An entry ("figure") of published.toml names the method, the graph, the authors' parameters if they differ from our
defaults, and the task. `train` is a share of the labelled nodes or, if it is a whole number, the number of training
nodes per class; all other nodes are predicted. Run k has seed k and ten random splits of the unscaled vectors. C is 1
or the value of the entry; "cv" means cross-validation on the training nodes. If our graph differs from the authors'
graph, `differs` says how.

With train = "planetoid" and C = "validation" the nodes are divided as in the files of kimiyoung/planetoid, which are
used to compare graph neural networks: 20 training nodes per class, 500 nodes to choose C, and 1,000 nodes to predict.
planetoid.json lists them by our ids. Attributes have the same order in both files, and a node is recognised by its
attributes and class. (27 nodes of cora and 16 of citeseer share both with another node, so their ids are ambiguous.)

Graphs are named datasets, or graphs of FOLDER in two files: each line of NAME.ungraph has the numbers of the two nodes
of an edge, and line k of NAME.cmty has the nodes with label k. Nodes of such graphs may have several labels, and as
many are predicted as a node has. The program of ProNE's authors (lykeven/ProNE, folder data) has such files for ppi and
wikipedia. The program of DeepWalk's authors (phanein/deepwalk, folder example_graphs) has blogcatalog as a MATLAB file,
which SciPy reads. If a graph is not available, the score is listed and nothing is trained. Every run is written to
results/published.json as it ends.
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
PENALTIES = [10.0**power for power in range(-4, 4)]  # values of C to choose from with the fixed division
SPLITS = 10
DECIDE = ("method", "dataset", "parameters", "train", "C")  # fields of an entry that affect our score
NAMES = {"micro_f1": "Micro-F1", "macro_f1": "Macro-F1"}
TOLERANCE = 0.03  # largest acceptable difference below a published score


def read_figures(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """Return the published scores of some methods, or of all."""
    found = tomllib.loads(FIGURES.read_text(encoding="utf-8"))["figure"]
    return [
        {"parameters": {}, "C": 1.0, "note": "", "differs": ""} | one
        for one in found
        if not names or one["method"] in names
    ]


def few_of_each(labels: np.ndarray, count: int, seed: int) -> tuple[Splits, float]:
    """Return splits with `count` training nodes per class, and their share of the labelled nodes."""
    known = labels[labels != ""]
    numbers = np.unique(known, return_inverse=True)[1]
    orders = []
    for split in range(SPLITS):
        order = np.random.default_rng((seed, split)).permutation(len(known))
        first = np.concatenate([order[numbers[order] == number][:count] for number in range(numbers.max() + 1)])
        orders.append(np.concatenate([first, order[~np.isin(order, first)]]))
    return Splits(np.arange(len(known)), np.array(orders, np.int32), seed), len(first) / len(known)


def find_graph(name: str, folder: Path | None) -> tuple[AttributedGraph, Any] | None:
    """Return a graph and the labels of its nodes, one or several per node, or None if it is not available."""
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
    """Train once in the task of an entry, and return the scores; labels: one per node, or sparse (nodes, labels)."""
    method = METHODS[figure["method"]](**figure["parameters"], seed=seed)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nodes without links have the vector zero
        vectors = method.fit_transform(graph).vectors
    seconds = time.perf_counter() - begun
    options = {"seed": seed, "C": figure["C"], "as_they_are": True}
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
    """Return the score of the fixed division's test nodes, with the smallest C that is best on its validation nodes."""
    validation, test = (learn_and_predict(graph, part) for part in ("validation", "test"))
    by_penalty = [validation(vectors, C).micro.mean for C in PENALTIES]
    return test(vectors, PENALTIES[int(np.argmax(by_penalty))])


def learn_and_predict(graph: AttributedGraph, part: str) -> Callable[[np.ndarray, float], Score]:
    """Return a function that scores vectors: it learns the fixed division's training nodes and predicts `part`."""
    division = json.loads(DIVISIONS.read_text(encoding="utf-8"))[graph.name]
    learned, predicted = (np.isin(graph.ids, division[name]) for name in ("train", part))
    known = np.where(learned | predicted, graph.labels, "")
    order = np.argsort(predicted[known != ""], kind="stable").astype(np.int32)
    splits, share = Splits(np.arange(len(order)), order[None]), learned.sum() / len(order)
    options: dict[str, Any] = {"train": [share], "splits": splits, "as_they_are": True}
    return lambda vectors, C: classify(vectors, known, C=C, **options).scores[0]


def fill(runs: list[dict], figures: list[dict], seeds: int, folder: Path | None) -> list[dict]:
    """Compute missing runs, and write every run as it ends."""
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
    """Write our runs beside all published scores."""
    with atomic(PATH) as draft:
        record = {"machine": describe_machine(), "figures": summarise(runs, read_figures()), "runs": runs}
        draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def runs_of(runs: list[dict], figure: dict[str, Any]) -> list[dict]:
    """Return our runs in the task of an entry."""
    return [run for run in runs if all(run[name] == figure[name] for name in DECIDE)]


def summarise(runs: list[dict], figures: list[dict]) -> list[dict]:
    """Return every published score with our mean over seeds and the difference, or None without our runs."""
    rows = []
    for figure in figures:
        own = [run[figure["measure"]] for run in runs_of(runs, figure)]
        ours = fmean(own) if own else None
        difference = None if ours is None else ours - figure["value"]
        added = {"trained_on": trained_on(figure["train"]), "seeds": len(own), "ours": ours, "difference": difference}
        rows.append(figure | added)
    return rows


def show(rows: list[dict]) -> None:
    """Print the table, and the methods that score lower than published."""
    heads = ("method", "graph", "train", "measure", "published", "ours", "difference", "source")
    table = Table(*heads, title="Published scores, and ours in the same task")
    for row in rows:
        table.add_row(*_task(row), f"{row['value']:.3f}", *_own(row), row["source"])
    Console(width=180).print(table)
    for differs in (False, True):
        lower = [row for row in rows if short(row) and bool(row["differs"]) == differs]
        below = [f"{row['method']} on {row['dataset']} ({row['difference']:+.3f})" for row in lower]
        where = "on a graph that differs" if differs else "on the same graph"
        print(f"more than {TOLERANCE} below the published score {where}:", ", ".join(below) or "none")


def short(row: dict) -> bool:
    """Return True if our score is too far below the published one."""
    return row["difference"] is not None and row["difference"] < -TOLERANCE


def _task(row: dict) -> list[str]:
    return [row["method"], row["dataset"], row["trained_on"], NAMES[row["measure"]]]


def trained_on(train: float | int | str) -> str:
    """Return the training nodes of a task in a few words."""
    if train == FIXED:
        return "fixed division"
    return f"{train} of a class" if isinstance(train, int) else f"{100 * train:.0f} %"


def _own(row: dict) -> tuple[str, str]:
    return ("no graph", "") if row["ours"] is None else (f"{row['ours']:.3f}", f"{row['difference']:+.3f}")


def run(names: list[str] | None, seeds: int, *, folder: Path | None, only_show: bool) -> None:
    """Compute missing runs and print the table."""
    figures = read_figures(names)
    runs = json.loads(PATH.read_text(encoding="utf-8"))["runs"] if PATH.exists() else []
    if not only_show:
        runs = fill(runs, figures, seeds, folder)
    show(summarise(runs, figures))
