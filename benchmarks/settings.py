"""One parameter of Neural-Brane at several values: classes predicted, classes found again, links predicted.

    python benchmarks/settings.py attribute_dim 75 100 112 125 [--seeds 4] [--json] [--output FILE]

Everything else is the default recipe's. Seeds and splits start at 100: those that `quality.py` reports on stay unseen,
so that a value chosen here is judged there. Macro-F1 is of 30 and 70 % training nodes and ten splits, NMI of ten starts
of k-means, AUC of a tenth of the edges, held out before training, by logistic regression on products of vectors.
Finished trainings are kept in FILE (results/settings.json), and a run goes on from there while the recipe is the same.
"""

import argparse
import json
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from neural_brane.io.atomic import atomic
from neural_brane.machine import describe_machine

RESULTS = Path(__file__).parent / "results" / "settings.json"
FIRST_SEED = 100
CLASSES = ("citeseer", "caltech36", "reed98", "arnetminer", "cora")
LINKS = ("citeseer", "caltech36", "reed98", "cora")
MEASURES = ("F1 30 %", "F1 70 %", "NMI", "AUC")
Key = tuple[str, str, str, float, int]  # task, dataset, parameter, value, seed


def compute(task: str, dataset: str, name: str, value: float, seed: int) -> dict[str, float]:
    """Train once and score."""
    from neural_brane import NeuralBrane, load
    from neural_brane.evaluate import classify, cluster, hold_out_edges, predict_links

    graph = load(dataset)
    method = NeuralBrane(seed=seed, threads=1, **{name: value})
    if task == "links":
        held_out = hold_out_edges(graph, seed=seed)
        found = predict_links(method.fit_transform(held_out.graph), held_out, similarity="cosine", seed=seed)
        return {"AUC": found.regression_auc, "AUC of cosines": found.auc}
    vectors = method.fit_transform(graph).vectors
    low, high = classify(vectors, graph.labels, train=(0.3, 0.7), seed=seed).scores
    clusters = cluster(vectors, graph.labels, seed=seed)
    return {"F1 30 %": low.macro.mean, "F1 70 %": high.macro.mean, "NMI": clusters.nmi.mean}


def plan(name: str, values: list[float], seeds: int) -> Iterator[Key]:
    """Every training that is wanted, the values of a seed next to each other."""
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for task, datasets in (("classes", CLASSES), ("links", LINKS)):
            for dataset in datasets:
                yield from ((task, dataset, name, value, seed) for value in values)


def fill(cells: dict[Key, dict], wanted: list[Key], output: Path, jobs: int) -> dict[Key, dict]:
    """Compute what is missing, keeping every finished training and the recipe that all but the parameter is of."""
    missing = [key for key in wanted if key not in cells]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(compute, *key): key for key in missing}
        for future in track(as_completed(futures), "training", total=len(futures), console=Console(stderr=True)):
            cells[futures[future]] = future.result()
            kept = [{"key": key, "scores": scores} for key, scores in sorted(cells.items())]
            record = {"machine": describe_machine(), "recipe": recipe(), "cells": kept}
            with atomic(output) as draft:
                draft.write_text(json.dumps(record, indent=1) + "\n")
    return cells


def recipe() -> dict:
    """What the default recipe stands for."""
    from neural_brane import NeuralBrane

    return {name: value for name, value in NeuralBrane().parameters_in_force().items() if value is not None}


def load_kept(output: Path) -> dict[Key, dict]:
    """The trainings kept in a file, if they are of the recipe as it is."""
    record = json.loads(output.read_text()) if output.exists() else {}
    cells = record.get("cells", []) if record.get("recipe") == recipe() else []
    return {tuple(cell["key"]): cell["scores"] for cell in cells}


def summarise(cells: dict[Key, dict], wanted: list[Key]) -> list[dict]:
    """The mean over seeds of every measure, by dataset and value."""
    rows: dict[tuple[str, float], dict] = {}
    for task, dataset, name, value, seed in wanted:
        row = rows.setdefault((dataset, value), {"dataset": dataset, name: value})
        for measure, score in cells[task, dataset, name, value, seed].items():
            row.setdefault(measure, []).append(score)
    return [
        {key: sum(value) / len(value) if isinstance(value, list) else value for key, value in row.items()}
        for row in rows.values()
    ]


def show(rows: list[dict], name: str, seeds: int) -> None:
    """Print a line per dataset and value."""
    table = Table("dataset", name, *MEASURES, title=f"Neural-Brane by {name}: means of {seeds} seeds")
    for row in rows:
        scores = [f"{row[measure]:.4f}" if measure in row else "" for measure in MEASURES]
        table.add_row(row["dataset"], f"{row[name]:g}", *scores)
    Console().print(table)


def main() -> None:
    """Fill the cells and print their means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parameter", help="a numeric parameter of NeuralBrane")
    parser.add_argument("values", nargs="+", type=lambda text: int(text) if text.isdigit() else float(text))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--json", action="store_true", help="print the means as JSON")
    options = parser.parse_args()
    wanted = list(plan(options.parameter, options.values, options.seeds))
    cells = fill(load_kept(options.output), wanted, options.output, options.jobs)
    rows = summarise(cells, wanted)
    print(json.dumps(rows, indent=1)) if options.json else show(rows, options.parameter, options.seeds)


if __name__ == "__main__":
    main()
