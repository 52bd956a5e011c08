"""Measure every method on ten graphs: Macro-F1, NMI, AUC of links, and seconds and memory of a training.

    python benchmarks/shelf.py [--graphs citeseer …] [--methods tadw …] [--runs 1] [--jobs 1] [--time-limit 600]
    python benchmarks/shelf.py --kept [--graphs …]                   write the finished trainings, train nothing
    python benchmarks/shelf.py --show                                print the stored results

The script does the same as `brane compare --methods all --task classify,cluster,link` on each graph. Methods have their
defaults and 150 dimensions. Run k has seed k and the same splits for every method. Every training runs in a new process
on one core. Methods that learn from labels are trained again for every split, with the labels of its training nodes
only. On debian-packages the regression learns from a tenth of the nodes, in one split, because its 58 classes would
take many minutes per method. Trainings on all edges come first, then those for links. If a training and its scores take
longer than --time-limit, this is reported and its measures are missing. Seconds are processor seconds, which other work
on the machine hardly changes.

Finished trainings are kept in results/trainings/. Results are written to results/shelf.json after each graph, and
replace earlier results of the same graph and method. scripts/ten_graphs.py makes tables of the site from this file.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean

from defaults import FOLDER, GRAPHS, MEASURES, trainings, values_of
from rich.console import Console
from rich.table import Table

from neural_brane.cli.terminal import counting
from neural_brane.experiments.compute import TASKS, compute_missing
from neural_brane.experiments.store import Store, Training, describe_machine
from neural_brane.files.storage import atomic
from neural_brane.methods import METHODS
from neural_brane.progress import Meter

PATH = FOLDER / "shelf.json"
LARGE = {"debian-packages": {"classes": {"train": [0.1], "splits": 1, "C": 1.0}}}
COSTS = {"processor_seconds": "seconds", "peak_mb": "MB"}


def plan(graph: str, methods: list[str], runs: int) -> dict[str, list[Training]]:
    """Return the trainings of each method on a graph."""
    predicted = LARGE.get(graph, TASKS["classify"].scoring)
    return {name: trainings(graph, name, {"device": "cpu"}, range(runs), predicted) for name in methods}


def compute(graph: str, options: argparse.Namespace, store: Store) -> dict[str, dict]:
    """Compute missing trainings on a graph, and return the results of every method."""
    planned = plan(graph, options.methods, options.runs)
    missing = [] if options.kept else store.missing([training for own in planned.values() for training in own])
    missing.sort(key=lambda training: "links" in training.scoring)
    failures: dict[str, str] = {}
    with counting(graph, steady=False) as progress:
        meter = Meter(progress, len(missing), "trainings")
        for ended in compute_missing(missing, store, jobs=options.jobs, timeout=options.time_limit):
            if ended.failure:
                failures[ended.task.method] = ended.failure
                print(f"{ended.task.method} on {graph}: {ended.failure}", flush=True)
            meter.advance()
    return {name: figures(store, own, failures.get(name, "")) for name, own in planned.items()}


def figures(store: Store, own: list[Training], failure: str) -> dict:
    """Return the scores and costs of a method on one graph, one number per run, or why there are none."""
    records = [record for training in own if (record := store.get(training)) is not None]
    if not records:
        return {"failure": failure or "not trained"}
    whole = [record for record in records if "nmi" in record]
    return values_of(records) | {cost: [record[cost] for record in whole] for cost in COSTS if whole}


def show(cells: dict[str, dict[str, dict]]) -> None:
    """Print one table per measure, with one row per method."""
    names = [name for name in METHODS if any(name in row for row in cells.values())]
    for measure, heading in (MEASURES | COSTS).items():
        table = Table(heading, *cells, box=None)
        for name in names:
            table.add_row(name, *(brief(row.get(name), measure) for row in cells.values()))
        Console(width=200).print(table)


def brief(cell: dict | None, measure: str) -> str:
    """Return a measure of a method on a graph as text; a dash if there is none."""
    if cell is None or measure not in cell:
        return "-"
    return f"{fmean(cell[measure]):,.0f}" if measure in COSTS else f"{fmean(cell[measure]):.3f}".removeprefix("0")


def main() -> None:
    """Compute missing trainings, graph by graph, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=GRAPHS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds for one training and its scores")
    parser.add_argument("--trainings", type=Path, default=FOLDER / "trainings")
    parser.add_argument("--kept", action="store_true", help="train nothing; write the finished trainings")
    parser.add_argument("--show", action="store_true", help="train nothing; print the stored results")
    options = parser.parse_args()
    kept = json.loads(PATH.read_text(encoding="utf-8"))["cells"] if PATH.exists() else {}
    for graph in [] if options.show else options.graphs:
        kept[graph] = kept.get(graph, {}) | compute(graph, options, Store(options.trainings))
        with atomic(PATH) as draft:
            about = {"machine": describe_machine(), "time_limit": options.time_limit, "cells": kept}
            draft.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    show({graph: kept[graph] for graph in GRAPHS if graph in kept})


if __name__ == "__main__":
    main()
