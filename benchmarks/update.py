"""Compare `update` of a fitted model with a fresh fit, when a graph grows by some nodes.

    python benchmarks/update.py [--graphs citeseer …] [--methods neural-brane …] [--share 0.01] [--runs 3]

A share of the nodes is hidden with all their links, and the method is fitted to the rest. Then `update` and a fresh fit
get the whole graph. Both are timed one after the other in one process, after a run on a small graph that compiles the
kernels. `cpu s` is the processor time of all threads, which other work on the machine hardly changes. A logistic
regression (liblinear, C = 1) learns classes from the vectors of half the labelled nodes, at most TRAINED, and is tested
on the others by Macro-F1. `new` is the share of the hidden test nodes whose class is predicted correctly. `cosine` is
the mean cosine between the vectors of known nodes before and after the update. Every method has its defaults and 150
dimensions. Run k has seed k, which also chooses the hidden nodes. Rows are kept in results/update.json; a new row
replaces that of the same graph, method and share.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from neural_brane import AttributedGraph, load
from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic
from neural_brane.linalg.weights import unit_rows
from neural_brane.methods import METHODS

PATH = Path(__file__).parent / "results" / "update.json"
GRAPHS = ("citeseer", "cora", "debian-packages")
TRAINED = 5_000  # most nodes that the regression learns from; with 58 classes it is slow
TIMES = ("fresh s", "update s", "faster", "fresh cpu s", "update cpu s", "faster by cpu")
COLUMNS = (*TIMES, "cosine", "F1 fresh", "F1 update", "new fresh", "new update")


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return the seconds and processor seconds of `work`, and its result."""
    begun, used = time.perf_counter(), time.process_time()
    found = work()
    return time.perf_counter() - begun, time.process_time() - used, found


def scores(vectors: np.ndarray, graph: AttributedGraph, hidden: np.ndarray, seed: int) -> tuple[float, float]:
    """Return Macro-F1 on the test nodes, and the share of the hidden test nodes that are predicted correctly."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier

    labelled = np.random.default_rng((seed, 1)).permutation(np.flatnonzero(graph.labels != ""))
    count = min(len(labelled) // 2, TRAINED)
    seen = labelled[~hidden[labelled]][:count]
    tested = np.setdiff1d(labelled, seen)
    regression = OneVsRestClassifier(LogisticRegression(C=1.0, solver="liblinear", max_iter=10_000))
    regression.fit(vectors[seen], graph.labels[seen])
    found, true = regression.predict(vectors[tested]), graph.labels[tested]
    right = (found == true)[hidden[tested]]
    return float(f1_score(true, found, average="macro")), float(right.mean())


def run(name: str, graph: AttributedGraph, share: float, seed: int) -> dict[str, float]:
    """Return the times and scores of `update` and of a fresh fit in one run, and the cosine of known nodes."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros(len(graph), bool)
    hidden[rng.choice(len(graph), max(int(share * len(graph)), 1), replace=False)] = True
    method = METHODS[name](dim=150, seed=seed)
    before = method.fit_transform(graph.subgraph(~hidden)).vectors
    fresh_s, fresh_cpu, fresh = timed(lambda: METHODS[name](dim=150, seed=seed).fit_transform(graph).vectors)
    update_s, update_cpu, after = timed(lambda: method.update(graph).embedding_.vectors)
    cosines = (unit_rows(before) * unit_rows(after[~hidden])).sum(axis=1)
    fresh_f1, fresh_new = scores(fresh, graph, hidden, seed)
    update_f1, update_new = scores(after, graph, hidden, seed)
    times = (fresh_s, update_s, fresh_s / update_s, fresh_cpu, update_cpu, fresh_cpu / update_cpu)
    values = (*times, cosines.mean(), fresh_f1, update_f1, fresh_new, update_new)
    return {name: round(float(value), 4) for name, value in zip(COLUMNS, values, strict=True)}


def keep(row: dict[str, Any], path: Path = PATH) -> list[dict[str, Any]]:
    """Write a row to the file, where it replaces an earlier one of the same kind, and return all rows."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    key = ("graph", "method", "share")
    rows = [one for one in rows if any(one[name] != row[name] for name in key)] + [row]
    with atomic(path) as draft:
        draft.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")
    return rows


def means(runs: list[dict[str, float]]) -> list[str]:
    """Return the mean of every column over the runs; a dash if an earlier version did not measure it."""
    return [f"{fmean(one[name] for one in runs):.3f}" if name in runs[0] else "—" for name in COLUMNS]


def main() -> None:
    """Run all measurements, write every row as it ends, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    able = [name for name in METHODS if METHODS[name].updates]
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS))
    parser.add_argument("--methods", nargs="+", default=["neural-brane"], choices=able)
    parser.add_argument("--share", type=float, default=0.01, help="share of the nodes that are new")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # warnings about graphs without attributes and nodes without links
    rows: list[dict[str, Any]] = []
    for name in options.methods:
        run(name, load("stdlib"), 0.05, seed=0)  # compiles the kernels
    for graph in map(load, options.graphs):
        for name in options.methods:
            runs = [run(name, graph, options.share, seed) for seed in range(options.runs)]
            row = {"graph": graph.name, "method": name, "share": options.share, "machine": describe_machine()}
            rows = keep(row | {"runs": runs})
            print(graph.name, name, runs, flush=True)
    table = Table("graph", "method", "new", *COLUMNS, box=None)
    for row in rows:
        table.add_row(row["graph"], row["method"], f"{row['share']:.0%}", *means(row["runs"]))
    Console(width=180).print(table)


if __name__ == "__main__":
    main()
