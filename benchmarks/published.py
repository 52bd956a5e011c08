"""Methods beside what others have published of them: the figures of published.toml, and ours in the same task.

    python benchmarks/quality.py --published [--methods NAME…] [--seeds 3]
    python benchmarks/quality.py --published --show [--markdown]      print what the file holds and train nothing

A figure of published.toml names the method, the graph, the parameters that its authors ran with where they are not our
defaults, and the task: `train` is a share of the labelled nodes or, as a whole number, how many nodes of each class the
regression learns from; all others are predicted. Run k has seed k and ten random splits, vectors as they are, C = 1 or
what the figure says ("cv": chosen by cross-validation inside the training part). A figure of a graph that is not at
hand is listed and not run. Written to results/published.json, run by run.
"""

import json
import os
import time
import tomllib
import warnings
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from neural_brane import METHODS, AttributedGraph, classify, load
from neural_brane.datasets.registry import registry
from neural_brane.evaluate.splits import Splits
from neural_brane.io.atomic import atomic
from neural_brane.machine import describe_machine

FIGURES = Path(__file__).with_name("published.toml")
PATH = Path(__file__).parent / "results" / "published.json"
SPLITS = 10
DECIDE = ("method", "dataset", "parameters", "train", "C")  # what of a figure decides our own score
NAMES = {"micro_f1": "Micro-F1", "macro_f1": "Macro-F1"}
TOLERANCE = 0.03  # how far below a published figure a method may stay


def read_figures(names: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The published figures, of some methods or of all."""
    found = tomllib.loads(FIGURES.read_text(encoding="utf-8"))["figure"]
    return [{"parameters": {}, "C": 1.0, "note": ""} | one for one in found if not names or one["method"] in names]


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


def score(graph: AttributedGraph, figure: dict[str, Any], seed: int) -> dict[str, Any]:
    """One training, in the task of a figure."""
    method = METHODS[figure["method"]](**figure["parameters"], seed=seed)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nodes without links have the vector zero
        vectors = method.fit_transform(graph).vectors
    seconds = time.perf_counter() - begun
    splits, share = SPLITS, figure["train"]
    if isinstance(share, int):
        splits, share = few_of_each(graph.labels, share, seed)
    learn = (lambda known: method.fit_transform(graph, labels=known).vectors) if method.uses_labels else vectors
    found = classify(learn, graph.labels, train=[share], splits=splits, seed=seed, C=figure["C"]).scores[0]
    scores = {"micro_f1": round(found.micro.mean, 5), "macro_f1": round(found.macro.mean, 5)}
    return {name: figure[name] for name in DECIDE} | {"seed": seed, "seconds": round(seconds, 1)} | scores


def fill(runs: list[dict], figures: list[dict], seeds: int) -> list[dict]:
    """Train what is missing; every run is written as it ends."""
    for figure in figures:
        if figure["dataset"] not in registry():
            continue
        done = {run["seed"] for run in runs_of(runs, figure)}
        for seed in sorted(set(range(seeds)) - done):
            run = score(load(figure["dataset"]), figure, seed)
            print(json.dumps(run), flush=True)
            runs.append(run)
            with atomic(PATH) as draft:
                draft.write_text(json.dumps({"machine": describe_machine(), "runs": runs}, indent=1) + "\n")
    return runs


def runs_of(runs: list[dict], figure: dict[str, Any]) -> list[dict]:
    """Our runs in the task of a figure."""
    return [run for run in runs if all(run[name] == figure[name] for name in DECIDE)]


def summarise(runs: list[dict], figures: list[dict]) -> list[dict]:
    """Every figure with our mean over the seeds and the difference; None where its graph is not at hand."""
    rows = []
    for figure in figures:
        own = [run[figure["measure"]] for run in runs_of(runs, figure)]
        ours = fmean(own) if own else None
        rows.append(figure | {"seeds": len(own), "ours": ours, "difference": ours and ours - figure["value"]})
    return rows


def show(rows: list[dict], markdown: bool) -> None:
    """Print the table, and which methods stay below what was published."""
    heads = ("method", "graph", "train", "measure", "published", "ours", "difference", "source")
    lines = [[*_task(row), f"{row['value']:.3f}", *_own(row), row["source"]] for row in rows]
    if markdown:
        print("\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *lines]))
    else:
        table = Table(*heads, title="Published, and ours in the same task")
        for line in lines:
            table.add_row(*line)
        Console(width=180).print(table)
    below = [f"{row['method']} on {row['dataset']} ({row['difference']:+.3f})" for row in rows if short(row)]
    print(f"below what was published by more than {TOLERANCE}:", ", ".join(below) or "none")


def short(row: dict) -> bool:
    """Whether a method stays too far below a published figure."""
    return row["difference"] is not None and row["difference"] < -TOLERANCE


def _task(row: dict) -> list[str]:
    train = f"{row['train']} a class" if isinstance(row["train"], int) else f"{100 * row['train']:.0f} %"
    return [row["method"], row["dataset"], train, NAMES[row["measure"]]]


def _own(row: dict) -> tuple[str, str]:
    return ("not at hand", "") if row["ours"] is None else (f"{row['ours']:.3f}", f"{row['difference']:+.3f}")


def run(names: list[str] | None, seeds: int, *, only_show: bool, markdown: bool) -> None:
    """Compute what is missing and print the table."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    figures = read_figures(names)
    runs = json.loads(PATH.read_text(encoding="utf-8"))["runs"] if PATH.exists() else []
    if not only_show:
        runs = fill(runs, figures, seeds)
    show(summarise(runs, figures), markdown)
