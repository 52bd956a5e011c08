"""Macro-F1 of Neural-Brane's recipes beside the paper's figures, over many seeds.

    python benchmarks/quality.py [--seeds 10] [--recipes released default] [--json] [--output FILE]

A cell is one training with one seed, scored on ten random splits of its own (as the paper) and on ten stratified
ones, the same for every recipe, at 30, 50 and 70 % training nodes: logistic regression, C = 1, vectors as they are.
Cells are kept in FILE as they are finished, so a run that was stopped goes on where it was. Trainings run side by
side, one thread each; the number of threads changes no vector.
"""

import argparse
import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from machine import describe_machine
from rich.console import Console
from rich.progress import track
from rich.table import Table

from neural_brane.io.atomic import atomic

SHARES = (0.3, 0.5, 0.7)
PAPER = {
    "citeseer": (0.6375, 0.6450, 0.6508),
    "caltech36": (0.9219, 0.9285, 0.9456),
    "reed98": (0.8788, 0.8916, 0.9033),
    "arnetminer": None,  # the paper's figures are of another version of this graph, with 15,753 nodes
}


def compute(dataset: str, recipe: str, seed: int) -> dict[str, object]:
    """Train once and score: one cell."""
    import time

    from neural_brane import NeuralBrane, classify, load

    graph = load(dataset)
    start = time.perf_counter()
    method = NeuralBrane(recipe=recipe, seed=seed, threads=1).fit(graph)
    seconds = time.perf_counter() - start
    vectors = method.embedding_.vectors
    plain, stratified = (
        classify(vectors, graph.labels, train=SHARES, seed=seed, stratify=choice) for choice in (False, True)
    )
    return {
        "dataset": dataset,
        "recipe": recipe,
        "seed": seed,
        "random": [score.macro_mean for score in plain.scores],
        "stratified": [score.macro_mean for score in stratified.scores],
        "loss": method.loss_history_[-1],
        "seconds": round(seconds, 1),
        "digest": graph.digest(),
    }


def fill(cells: list[dict], wanted: list[tuple[str, str, int]], output: Path, jobs: int) -> list[dict]:
    """Compute what is missing, keeping every finished cell."""
    done = {(cell["dataset"], cell["recipe"], cell["seed"]) for cell in cells}
    missing = [key for key in wanted if key not in done]
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(compute, *key) for key in missing]
        for future in track(as_completed(futures), "training", total=len(futures), console=Console(stderr=True)):
            cells.append(future.result())
            with atomic(output) as draft:
                draft.write_text(json.dumps({"machine": describe_machine(), "cells": cells}, indent=1) + "\n")
    return cells


def summarise(cells: list[dict], datasets: list[str], recipes: list[str]) -> list[dict]:
    """The mean over seeds and splits of every dataset and recipe."""
    rows = []
    for dataset in datasets:
        for recipe in recipes:
            chosen = [cell for cell in cells if (cell["dataset"], cell["recipe"]) == (dataset, recipe)]
            means = {
                kind: [sum(cell[kind][k] for cell in chosen) / len(chosen) for k in range(len(SHARES))]
                for kind in ("random", "stratified")
            }
            rows.append({"dataset": dataset, "recipe": recipe, "seeds": len(chosen), "paper": PAPER[dataset]} | means)
    return rows


def show(rows: list[dict]) -> None:
    """Print the table."""
    table = Table(title="Macro-F1 at 30 / 50 / 70 %: mean over seeds and 10 splits")
    for name in ("dataset", "recipe", "seeds", "paper", "random splits", "stratified splits"):
        table.add_column(name)
    for row in rows:
        scores = (row["paper"], row["random"], row["stratified"])
        texts = (" ".join(f"{value:.4f}" for value in score) if score else "" for score in scores)
        table.add_row(row["dataset"], row["recipe"], str(row["seeds"]), *texts)
    Console(width=140).print(table)


def markdown(rows: list[dict]) -> str:
    """The README's table: the paper's figures beside ours at 30 / 50 / 70 %, random splits."""
    by_recipe = {(row["dataset"], row["recipe"]): row["random"] for row in rows}
    seeds = {row["dataset"]: row["seeds"] for row in rows}
    lines = ["| | paper | released recipe | default | seeds |", "| --- | --- | --- | --- | --- |"]
    for dataset, paper in PAPER.items():
        scores = (paper, by_recipe[dataset, "released"], by_recipe[dataset, "default"])
        texts = (" ".join(f"{value:.3f}".lstrip("0") for value in score) if score else "-" for score in scores)
        lines.append(f"| {dataset} | {' | '.join(texts)} | {seeds[dataset]} |")
    return "\n".join(lines)


def main() -> None:
    """Fill the cells and print their summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--datasets", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--recipes", nargs="+", default=["released", "default"])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "quality.json")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the README's table")
    options = parser.parse_args()
    cells = json.loads(options.output.read_text())["cells"] if options.output.exists() else []
    wanted = [(d, r, s) for s in range(options.seeds) for d in options.datasets for r in options.recipes]
    cells = fill(cells, wanted, options.output, options.jobs)
    rows = summarise(cells, options.datasets, options.recipes)
    if options.json:
        print(json.dumps(rows, indent=1))
    elif options.markdown:
        print(markdown(rows))
    else:
        show(rows)


if __name__ == "__main__":
    main()
