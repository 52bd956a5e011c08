"""One parameter of Neural-Brane at several values: classes predicted, classes found again, links predicted.

    python benchmarks/settings.py attribute_dim 75 100 112 125 [--seeds 4] [--json] [--output FILE]
    python benchmarks/settings.py attribute_dim 75 112 --show         print what FILE holds and train nothing

Everything else is the default recipe's. Seeds and splits start at 100: those that `quality.py` reports on stay unseen,
so that a value chosen here is judged there. Macro-F1 is of 30 and 70 % training nodes and ten splits, NMI of ten starts
of k-means, AUC of a tenth of the edges, held out before training, by logistic regression on products of vectors.
Finished trainings are kept in results/trainings/, so that a stopped run goes on. The scores are written to FILE
(results/settings.json), beside the earlier ones of the same recipe.
"""

import argparse
import json
import os
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from neural_brane.cli.progress import counting
from neural_brane.io.atomic import atomic
from neural_brane.machine import describe_machine
from neural_brane.trainings.compute import compute_all
from neural_brane.trainings.store import Store
from neural_brane.trainings.training import Training

RESULTS = Path(__file__).parent / "results"
FIRST_SEED = 100
CLASSES = ("citeseer", "caltech36", "reed98", "arnetminer", "cora")
LINKS = ("citeseer", "caltech36", "reed98", "cora")
MEASURES = ("F1 30 %", "F1 70 %", "NMI", "AUC")
SCORING = {
    "classes": {"classes": {"train": [0.3, 0.7], "splits": 10, "C": 1.0}, "clusters": {"starts": 10}},
    "links": {"links": {"share": 0.1}},
}
Key = tuple[str, str, str, float, int]  # task, dataset, parameter, value, seed


def plan(name: str, values: list[float], seeds: int) -> dict[Key, Training]:
    """Every training that is wanted, the values of a seed next to each other."""
    return {
        (task, dataset, name, value, seed): Training("neural-brane", {name: value}, dataset, seed, SCORING[task])
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        for task, datasets in (("classes", CLASSES), ("links", LINKS))
        for dataset in datasets
        for value in values
    }


def scores(task: str, record: dict) -> dict[str, float]:
    """The scores of a finished training as FILE holds them."""
    if task == "links":
        return {"AUC": record["auc"], "AUC of cosines": record["auc_of_cosines"]}
    low, high = (fmean(values) for values in record["macro_f1"].values())
    return {"F1 30 %": low, "F1 70 %": high, "NMI": fmean(record["nmi"])}


def recipe() -> dict:
    """The parameters that the default recipe stands for."""
    values = Training("neural-brane", {}, "", 0, {}).deciding_parameters()
    return {name: value for name, value in values.items() if value is not None}


def read(output: Path) -> dict[Key, dict]:
    """The scores in a file, if they are of the recipe as it is."""
    record = json.loads(output.read_text()) if output.exists() else {}
    cells = record.get("cells", []) if record.get("recipe") == recipe() else []
    return {tuple(cell["key"]): cell["scores"] for cell in cells}


def write(cells: dict[Key, dict], output: Path) -> None:
    """Write the scores, and the recipe that all parameters but one are of."""
    kept = [{"key": key, "scores": found} for key, found in sorted(cells.items())]
    content = {"machine": describe_machine(), "recipe": recipe(), "cells": kept}
    with atomic(output) as draft:
        draft.write_text(json.dumps(content, indent=1) + "\n")


def summarise(cells: dict[Key, dict], wanted: list[Key]) -> list[dict]:
    """The mean over seeds of every measure, by dataset and value."""
    rows: dict[tuple[str, float], dict] = {}
    for key in wanted:
        _, dataset, name, value, _ = key
        row = rows.setdefault((dataset, value), {"dataset": dataset, name: value})
        for measure, score in cells.get(key, {}).items():
            row.setdefault(measure, []).append(score)
    return [
        {key: fmean(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows.values()
    ]


def show(rows: list[dict], name: str, seeds: int) -> None:
    """Print a line per dataset and value."""
    table = Table("dataset", name, *MEASURES, title=f"Neural-Brane by {name}: means of {seeds} seeds")
    for row in rows:
        scores = [f"{row[measure]:.4f}" if measure in row else "" for measure in MEASURES]
        table.add_row(row["dataset"], f"{row[name]:g}", *scores)
    Console().print(table)


def main() -> None:
    """Compute the scores that are missing, write all of them, and print their means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parameter", help="a numeric parameter of NeuralBrane")
    parser.add_argument("values", nargs="+", type=lambda text: int(text) if text.isdigit() else float(text))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, default=RESULTS / "settings.json")
    parser.add_argument("--show", action="store_true", help="print what the file holds and train nothing")
    parser.add_argument("--json", action="store_true", help="print the means as JSON")
    options = parser.parse_args()
    wanted, cells = plan(options.parameter, options.values, options.seeds), read(options.output)
    if not options.show:
        with counting("benchmark") as progress:
            store = Store(RESULTS / "trainings")
            records = compute_all(list(wanted.values()), store, jobs=options.jobs, progress=progress)
        cells |= {key: scores(key[0], record) for key, record in zip(wanted, records, strict=True)}
        write(cells, options.output)
    rows = summarise(cells, list(wanted))
    print(json.dumps(rows, indent=1)) if options.json else show(rows, options.parameter, options.seeds)


if __name__ == "__main__":
    main()
