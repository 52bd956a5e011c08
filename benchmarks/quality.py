"""Compare Macro-F1 of Neural-Brane's recipes, or of every method, with the paper's scores, over several seeds.

    python benchmarks/quality.py [--seeds 10] [--recipes released default] [--json] [--output FILE]
    python benchmarks/quality.py --methods all|NAME… [--datasets …] [--seeds 3] [--untuned]
    python benchmarks/quality.py --published [--methods NAME…] [--seeds 3]      compare with published.toml
    python benchmarks/quality.py --show [--markdown] [--methods all]      print the stored scores and train nothing

Each training has one seed and is scored on ten random splits, as in the paper, at 30, 50 and 70 % training nodes, by
logistic regression (liblinear, C = 1) on the unscaled vectors. Trainings with the same seed have the same splits.
Methods use the parameters that experiments/tuned.toml lists for the dataset, if any; otherwise, or with --untuned,
their defaults. Trainings run in parallel, with one thread each; the number of threads changes no vector.

Finished trainings are kept in results/trainings/, so that a stopped run can resume. The scores are written to FILE
(quality.json, methods_quality.json or methods_defaults.json under results/), where they replace earlier ones of the
same dataset, name and seed.
"""

import argparse
import json
import os
from pathlib import Path
from statistics import fmean

import published
from rich.console import Console
from rich.table import Table

from neural_brane.cli.terminal import counting
from neural_brane.experiments.compute import compute_all
from neural_brane.experiments.reproduce.plan import macro_f1
from neural_brane.experiments.store import Store, Training, describe_machine
from neural_brane.experiments.tune import TUNING, tuned
from neural_brane.files.storage import atomic
from neural_brane.methods import METHODS

RESULTS = Path(__file__).parent / "results"
SHARES = (0.3, 0.5, 0.7)
CLASSES = {"train": list(SHARES), "splits": 10, "C": 1.0, "as_they_are": True}
# Methods may be tuned, so no label of the tuning part is predicted.
SCORING = {"recipe": {"classes": CLASSES}, "method": {"classes": CLASSES | {"tuning": TUNING}}}
DATASETS = ("citeseer", "caltech36", "reed98", "arnetminer")
# The value for arnetminer is None, because the paper used another version of this graph, with 15,753 nodes.
PAPER = {dataset: macro_f1("neural-brane", dataset) for dataset in DATASETS}
TOLERANCE = 0.03  # largest acceptable difference below the paper's score at 70 %


def plan(options: argparse.Namespace) -> list[Training]:
    """Return the trainings of recipes or of methods."""
    return [
        Training(
            "neural-brane" if options.kind == "recipe" else name,
            {"recipe": name} if options.kind == "recipe" else tuned_or_default(name, dataset, options.untuned),
            dataset,
            seed,
            SCORING[options.kind],
        )
        for seed in range(options.seeds)
        for dataset in options.datasets
        for name in options.names
    ]


def tuned_or_default(method: str, dataset: str, untuned: bool) -> dict:
    """Return the parameters tuned for the dataset, or none."""
    chosen = None if untuned else tuned().get(dataset, {}).get(method)
    return dict(chosen.parameters) if chosen else {}


def as_cell(training: Training, record: dict, kind: str) -> dict:
    """Return the scores of a finished training as the file stores them."""
    name, parameters = training.method, training.parameters
    scores = {"macro_f1": [fmean(record["macro_f1"][f"{share:g}"]) for share in SHARES]}
    if kind == "recipe":
        name = parameters["recipe"]
        scores["losses"] = [round(loss, 5) for loss in record["loss"]]
        parameters = {name: value for name, value in training.deciding_parameters().items() if value is not None}
    return {
        "dataset": training.dataset,
        kind: name,
        "seed": training.seed,
        **scores,
        "parameters": parameters,
        "seconds": round(record["seconds"], 1),
        "digest": record["data"]["digest"],
    }


def merge(cells: list[dict], new: list[dict], kind: str) -> list[dict]:
    """Return the cells; new ones replace those of the same dataset, name and seed."""
    found = {(cell["dataset"], cell[kind], cell["seed"]): cell for cell in [*cells, *new]}
    return list(found.values())


def read(path: Path) -> list[dict]:
    """Return the cells of a file of scores, or none if there is no file."""
    return json.loads(path.read_text())["cells"] if path.exists() else []


def summarise(cells: list[dict], datasets: list[str], names: list[str], kind: str = "recipe") -> list[dict]:
    """Return the means over seeds and splits of every recipe or method that was trained on a dataset."""
    rows = []
    for dataset in datasets:
        for name in names:
            chosen = [cell for cell in cells if (cell["dataset"], cell[kind]) == (dataset, name)]
            if not chosen:
                continue
            means = [fmean(cell["macro_f1"][k] for cell in chosen) for k in range(len(SHARES))]
            row = {"dataset": dataset, kind: name, "seeds": len(chosen), "macro_f1": means}
            row["paper"] = PAPER[dataset] if kind == "recipe" else macro_f1(name, dataset)
            row["seconds"] = fmean(cell["seconds"] for cell in chosen)
            if kind == "method":
                row["parameters"] = chosen[-1]["parameters"]
                row["difference"] = row["paper"] and [a - b for a, b in zip(means, row["paper"], strict=True)]
            rows.append(row)
    return rows


def show(rows: list[dict], kind: str) -> None:
    """Print the table, and the methods that score lower than in the paper."""
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
        print(f"more than {TOLERANCE} below the paper's score at 70 %:", ", ".join(below) or "none")


def short(row: dict) -> bool:
    """Return True if a score is too far below the paper's."""
    return row["difference"] is not None and row["difference"][-1] < -TOLERANCE


def _numbers(values: list[float] | None, form: str) -> str:
    return " ".join(f"{value:{form}}" for value in values) if values else ""


def markdown(rows: list[dict]) -> str:
    """Return the table of docs/reproduce.md: the paper's scores and ours at 30 / 50 / 70 %, random splits."""
    by_recipe = {(row["dataset"], row["recipe"]): row["macro_f1"] for row in rows}
    seeds = {row["dataset"]: row["seeds"] for row in rows}
    lines = ["| | paper | released recipe | default | seeds |", "| --- | --- | --- | --- | --- |"]
    for dataset, paper in PAPER.items():
        scores = (paper, by_recipe[dataset, "released"], by_recipe[dataset, "default"])
        lines.append(f"| {dataset} | {' | '.join(map(_brief, scores))} | {seeds[dataset]} |")
    return "\n".join(lines)


def methods_markdown(rows: list[dict]) -> str:
    """Return a table of methods at 70 %: our scores and, in brackets, the paper's."""
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
    """Return the options, completed by the choices that follow from --methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, help="trainings of each (default: 10 per recipe, 3 per method)")
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--recipes", nargs="+", default=["released", "default"])
    parser.add_argument("--methods", nargs="+", help="'all' or names, instead of recipes")
    parser.add_argument("--untuned", action="store_true", help="train methods with their defaults")
    parser.add_argument("--published", action="store_true", help="compare methods with the scores of published.toml")
    parser.add_argument("--files", type=Path, metavar="FOLDER", help="with --published: folder of more graphs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, help="file of the scores")
    parser.add_argument("--show", action="store_true", help="print the stored scores and train nothing")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    options = parser.parse_args()
    options.kind, options.names = "recipe", options.recipes
    if options.methods:
        options.kind = "method"
        options.names = list(METHODS) if options.methods == ["all"] else options.methods
        if unknown := [name for name in options.names if name not in METHODS]:
            parser.error(f"there is no method '{unknown[0]}'; choose 'all' or names from {', '.join(METHODS)}")
    options.seeds = options.seeds or (3 if options.methods or options.published else 10)
    if options.output is None:
        which = "methods_defaults" if options.untuned else "methods_quality"
        options.output = RESULTS / f"{which if options.methods else 'quality'}.json"
    return options


def main() -> None:
    """Compute missing scores, write all of them, and print a summary."""
    options = parse()
    if options.published:
        names = options.names if options.methods else None
        published.run(names, options.seeds, folder=options.files, only_show=options.show)
        return
    cells = read(options.output)
    if not options.show:
        trainings = plan(options)
        with counting("benchmark") as progress:
            records = compute_all(trainings, Store(RESULTS / "trainings"), jobs=options.jobs, progress=progress)
        new = [as_cell(training, record, options.kind) for training, record in zip(trainings, records, strict=True)]
        cells = merge(cells, new, options.kind)
        with atomic(options.output) as draft:
            draft.write_text(json.dumps({"machine": describe_machine(), "cells": cells}, indent=1) + "\n")
    rows = summarise(cells, options.datasets, options.names, options.kind)
    if options.json:
        print(json.dumps(rows, indent=1))
    elif options.markdown:
        print(markdown(rows) if options.kind == "recipe" else methods_markdown(rows))
    else:
        show(rows, options.kind)


if __name__ == "__main__":
    main()
