"""Macro-F1 of Neural-Brane's recipes, or of every method, beside the paper's figures, over many seeds.

    python benchmarks/quality.py [--seeds 10] [--recipes released default] [--json] [--output FILE]
    python benchmarks/quality.py --methods all|NAME… [--datasets …] [--seeds 3] [--untuned]

A cell is one training with one seed, scored on ten random splits of its own (as the paper), the same for all that
are compared, at 30, 50 and 70 % training nodes: logistic regression (liblinear), C = 1, vectors as they are. Methods
run with the parameters tuned for the dataset where methods/tuned.toml has some, and with their defaults where not or
with --untuned. Cells are kept in FILE as they are finished (quality.json, methods_quality.json or methods_defaults.json
under results/), so a run that was stopped goes on where it was; a cell whose parameters have changed is computed again.
Trainings run side by side, one thread each; the number of threads changes no vector.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from neural_brane.io.atomic import atomic
from neural_brane.machine import describe_machine
from neural_brane.reproduce.paper import macro_f1

RESULTS = Path(__file__).parent / "results"
SHARES = (0.3, 0.5, 0.7)
DATASETS = ("citeseer", "caltech36", "reed98", "arnetminer")
# None for arnetminer: the paper's figures are of another version of this graph, with 15,753 nodes.
PAPER = {dataset: macro_f1("neural-brane", dataset) for dataset in DATASETS}
TOLERANCE = 0.03  # how far below the paper's cell at 70 % a method may stay


def compute(kind: str, dataset: str, name: str, seed: int, parameters: dict) -> dict[str, object]:
    """Train once and score: one cell, of a recipe or of a method."""
    from neural_brane import METHODS, classify, load

    graph = load(dataset)
    method = METHODS["neural-brane" if kind == "recipe" else name](seed=seed, **parameters)
    if "threads" in method.get_params():
        method.set_params(threads=1)
    start = time.perf_counter()
    vectors = method.fit_transform(graph).vectors
    seconds = time.perf_counter() - start
    cell = {"dataset": dataset, kind: name, "seed": seed}
    scores = classify(vectors, graph.labels, train=SHARES, seed=seed).scores
    cell["macro_f1"] = [score.macro_mean for score in scores]
    if kind == "recipe":
        cell["losses"] = [round(loss, 5) for loss in method.loss_history_]
    return cell | {"parameters": parameters, "seconds": round(seconds, 1), "digest": graph.digest()}


def settings(kind: str, name: str, dataset: str, untuned: bool) -> dict:
    """The parameters a cell is computed with, besides the seed: of a recipe all that it stands for."""
    from neural_brane import NeuralBrane
    from neural_brane.tune.tuned import tuned

    if kind == "recipe":
        values = NeuralBrane(recipe=name).parameters_in_force()
        return {parameter: value for parameter, value in values.items() if value is not None}
    chosen = None if untuned else tuned().get(dataset, {}).get(name)
    return dict(chosen.parameters) if chosen else {}


def fill(cells: list[dict], kind: str, wanted: dict[tuple[str, str, int], dict], output: Path, jobs: int) -> list[dict]:
    """Compute what is missing or was computed with other parameters, keeping every finished cell."""
    cells = [cell for cell in cells if not stale(cell, wanted.get(identity(cell, kind)))]
    done = {identity(cell, kind) for cell in cells}
    missing = {key: parameters for key, parameters in wanted.items() if key not in done}
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = [pool.submit(compute, kind, *key, parameters) for key, parameters in missing.items()]
        for future in track(as_completed(futures), "training", total=len(futures), console=Console(stderr=True)):
            cells.append(future.result())
            with atomic(output) as draft:
                draft.write_text(json.dumps({"machine": describe_machine(), "cells": cells}, indent=1) + "\n")
    return cells


def identity(cell: dict, kind: str) -> tuple[str, str, int]:
    """What a cell is of."""
    return cell["dataset"], cell[kind], cell["seed"]


def stale(cell: dict, parameters: dict | None) -> bool:
    """Whether a cell is wanted, but with other parameters than it was computed with."""
    as_kept = json.loads(json.dumps(parameters))
    return parameters is not None and cell.get("parameters", as_kept) != as_kept


def summarise(cells: list[dict], datasets: list[str], names: list[str], kind: str = "recipe") -> list[dict]:
    """The mean over seeds and splits of every dataset and recipe or method."""
    rows = []
    for dataset in datasets:
        for name in names:
            chosen = [cell for cell in cells if (cell["dataset"], cell[kind]) == (dataset, name)]
            means = [sum(cell["macro_f1"][k] for cell in chosen) / len(chosen) for k in range(len(SHARES))]
            row = {"dataset": dataset, kind: name, "seeds": len(chosen), "macro_f1": means}
            row["paper"] = PAPER[dataset] if kind == "recipe" else macro_f1(name, dataset)
            row["seconds"] = sum(cell["seconds"] for cell in chosen) / len(chosen)
            if kind == "method":
                row["parameters"] = chosen[-1]["parameters"]
                row["difference"] = row["paper"] and [a - b for a, b in zip(means, row["paper"], strict=True)]
            rows.append(row)
    return rows


def show(rows: list[dict], kind: str) -> None:
    """Print the table, and which methods stay below the paper."""
    last = ("difference", "seconds", "tuned") if kind == "method" else ()
    table = Table(title="Macro-F1 at 30 / 50 / 70 %: mean over seeds and 10 splits")
    for name in ("dataset", kind, "seeds", "paper", "here", *last):
        table.add_column(name)
    for row in rows:
        texts = [_numbers(row["paper"], ".4f"), _numbers(row["macro_f1"], ".4f")]
        if kind == "method":
            tuned = " ".join(f"{name}={value}" for name, value in row["parameters"].items())
            texts += [_numbers(row["difference"], "+.4f"), f"{row['seconds']:.1f}", tuned or "defaults"]
        table.add_row(row["dataset"], row[kind], str(row["seeds"]), *texts)
    Console(width=180).print(table)
    if kind == "method":
        below = [f"{row['method']} on {row['dataset']} ({row['difference'][-1]:+.4f})" for row in rows if short(row)]
        print(f"below the paper by more than {TOLERANCE} at 70 %:", ", ".join(below) or "none")


def short(row: dict) -> bool:
    """Whether a method stays too far below the paper's cell."""
    return row["difference"] is not None and row["difference"][-1] < -TOLERANCE


def _numbers(values: list[float] | None, form: str) -> str:
    return " ".join(f"{value:{form}}" for value in values) if values else ""


def markdown(rows: list[dict]) -> str:
    """The README's table: the paper's figures beside ours at 30 / 50 / 70 %, random splits."""
    by_recipe = {(row["dataset"], row["recipe"]): row["macro_f1"] for row in rows}
    seeds = {row["dataset"]: row["seeds"] for row in rows}
    lines = ["| | paper | released recipe | default | seeds |", "| --- | --- | --- | --- | --- |"]
    for dataset, paper in PAPER.items():
        scores = (paper, by_recipe[dataset, "released"], by_recipe[dataset, "default"])
        lines.append(f"| {dataset} | {' | '.join(map(_brief, scores))} | {seeds[dataset]} |")
    return "\n".join(lines)


def methods_markdown(rows: list[dict]) -> str:
    """A table of methods at 70 %: ours and, in brackets, the paper's."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    lines = [f"| | {' | '.join(datasets)} |", "| --- " * (len(datasets) + 1) + "|"]
    cells = {(row["method"], row["dataset"]): row for row in rows}
    for method in dict.fromkeys(row["method"] for row in rows):
        found = [cells[method, dataset] for dataset in datasets]
        texts = [
            _brief(row["macro_f1"][-1:]) + (f" ({_brief(row['paper'][-1:])})" if row["paper"] else "") for row in found
        ]
        lines.append(f"| {method} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _brief(values: list[float] | None) -> str:
    return " ".join(f"{value:.3f}".lstrip("0") for value in values) if values else "-"


def parse() -> argparse.Namespace:
    """The options, with what follows from --methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, help="trainings per cell (default 10 for recipes, 3 for methods)")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--recipes", nargs="+", default=["released", "default"])
    parser.add_argument("--methods", nargs="+", help="'all' or names, instead of recipes")
    parser.add_argument("--untuned", action="store_true", help="methods with their defaults")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, help="where cells are kept")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the README's table")
    options = parser.parse_args()
    options.kind, options.names = "recipe", options.recipes
    if options.methods:
        from neural_brane.methods import METHODS

        options.kind = "method"
        options.names = list(METHODS) if options.methods == ["all"] else options.methods
        if unknown := [name for name in options.names if name not in METHODS]:
            parser.error(f"no method '{unknown[0]}'; choose 'all' or some of {', '.join(METHODS)}")
    options.seeds = options.seeds or (3 if options.methods else 10)
    if options.output is None:
        which = "methods_defaults" if options.untuned else "methods_quality"
        options.output = RESULTS / f"{which if options.methods else 'quality'}.json"
    return options


def main() -> None:
    """Fill the cells and print their summary."""
    options = parse()
    cells = json.loads(options.output.read_text())["cells"] if options.output.exists() else []
    wanted = {
        (dataset, name, seed): settings(options.kind, name, dataset, options.untuned)
        for seed in range(options.seeds)
        for dataset in options.datasets
        for name in options.names
    }
    cells = fill(cells, options.kind, wanted, options.output, options.jobs)
    rows = summarise(cells, options.datasets, options.names, options.kind)
    if options.json:
        print(json.dumps(rows, indent=1))
    elif options.markdown:
        print(markdown(rows) if options.kind == "recipe" else methods_markdown(rows))
    else:
        show(rows, options.kind)


if __name__ == "__main__":
    main()
