"""Compare the default with its parts, with every other method, or with other settings, on ten graphs.

    python benchmarks/defaults.py --parts [--graphs citeseer …] [--runs 10] [--jobs 2] [--device cuda] [--show]
    python benchmarks/defaults.py [--methods tadw …] …
    python benchmarks/defaults.py --choose …

Measures: Macro-F1 of logistic regression (C = 1, vectors of one length, 10 splits) at 5 and at 50 % of the labelled
nodes; NMI of k-means (best of 10 starts); AUC of a tenth of the edges, removed before a separate training, by the
cosine and by all evidence; and seconds of a training. Every method has its defaults and 150 dimensions. Run k has seed
k and the same splits for every method; torch methods and parts alone have at most 3 runs, and debian-packages 1 with
one split. Means are over finished runs; a run that takes longer than --time-limit is not finished. The last table
counts the finished runs.

Finished trainings are kept in results/trainings/. --parts writes results/parts.json and keeps its row "before", which
was measured in the same way with the default of October 2026, when it was not centred. Without --parts and --choose,
results/defaults.json is written. --choose has seeds from 1000 on, which no report uses.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean

from rich.console import Console
from rich.table import Table

from neural_brane.cli.terminal import counting
from neural_brane.experiments.compute import TASKS, compute_missing
from neural_brane.experiments.store import Record, Store, Training
from neural_brane.files.storage import atomic
from neural_brane.methods import METHODS
from neural_brane.progress import Meter

FOLDER = Path(__file__).parent / "results"
GRAPHS = (
    "citeseer", "caltech36", "reed98", "arnetminer", "cora", "wiki", "acm", "haverford76", "stdlib", "debian-packages",
)  # fmt: skip
MEASURES = {
    "macro_f1_5": "Macro-F1 at 5 %", "macro_f1": "Macro-F1 at 50 %", "nmi": "NMI", "cosine": "AUC by cosine",
    "link": "AUC by all evidence", "seconds": "seconds",
}  # fmt: skip
FEW_RUNS = 3
FEW = "0.05"  # share of the labelled nodes in "macro_f1_5"
DEFAULT, BASELINE, BEFORE = "neural-brane", "attributes", "before"
PARTS: dict[str, dict] = {
    DEFAULT: {},
    "spectral part alone": {"spectral_dim": 150},
    "learned part alone": {"spectral_dim": 0},
    "learned part not trained": {"learning_rate": 1e-9, "tolerance": None, "epochs": 1, "batches_per_epoch": 1},
}
NEAR, BELOW = 0.01, 0.02
UNREPORTED = 1000  # first seed of --choose
# With --choose, the default is compared with settings that change one of its choices.
SETTINGS: dict[str, dict] = {
    "default": {},
    "spectral_dim 100": {"spectral_dim": 100},
    "spectral_dim 125": {"spectral_dim": 125},
    "no links in the spectral part": {"link_weight": 0.0},
    "link_weight 0.6": {"link_weight": 0.6},
    "three hops": {"hop_weights": (1.0, 1.0, 1.0, 1.0)},
    "learned_weight 0.2": {"learned_weight": 0.2},
    "learned_weight 0.35": {"learned_weight": 0.35},
    "spectral_power 1": {"spectral_power": 1.0},
    "spectral_power 2": {"spectral_power": 2.0},
    "not centred": {"centre": False},
    "table_std 0.01": {"table_std": 0.01},
    "twice the epochs": {"epochs": 40},
    "half of the learned part from attributes": {"attribute_dim": 19},
    "spectral part alone": {"spectral_dim": 150},
    "learned part alone": {"spectral_dim": 0},
}
Cell = dict[str, list[float]]  # measure: values of a method on one graph, one per run


def classes(graph: str) -> dict:
    """Return how classes are predicted; the regression takes minutes for the 58 of debian-packages."""
    return {"classes": {"train": [0.05, 0.5], "splits": 1 if graph == "debian-packages" else 10, "C": 1.0}}


def trainings(graph: str, method: str, parameters: dict, seeds: range, predicted: dict) -> list[Training]:
    """Return two trainings per seed: one for classes and clusters, one for links."""
    whole = predicted | TASKS["cluster"].scoring
    own = {"dim": 150} | {name: value for name, value in parameters.items() if name in METHODS[method].parameters()}
    return [Training(method, own, graph, seed, scoring) for seed in seeds for scoring in (whole, TASKS["link"].scoring)]


def plan(options: argparse.Namespace) -> dict[tuple[str, str], list[Training]]:
    """Return the trainings by graph and name of the row."""
    found = {}
    for graph in options.graphs:
        settings = SETTINGS if options.choose else PARTS if options.parts else dict.fromkeys(options.methods)
        for name, changed in settings.items():
            method, parameters = (name, {}) if changed is None else (DEFAULT, changed)
            parameters = {"device": options.device} | parameters
            few = METHODS[method].extra or (options.parts and changed)
            runs = 1 if graph == "debian-packages" else min(options.runs, FEW_RUNS if few else options.runs)
            first = UNREPORTED if options.choose else 0
            found[graph, name] = trainings(graph, method, parameters, range(first, first + runs), classes(graph))
    return found


def cell_of(store: Store, wanted: list[Training]) -> Cell | None:
    """Return the values of finished trainings on one graph, or None if a measure has none."""
    found = values_of([record for training in wanted if (record := store.get(training)) is not None])
    return found if len(found) == len(MEASURES) else None


def values_of(records: list[Record]) -> Cell:
    """Return the values of each measure in the records of trainings."""
    whole, links = ([one for one in records if measure in one] for measure in ("nmi", "auc_of_cosines"))
    found = {}
    if whole:
        if FEW in whole[0]["macro_f1"]:
            found["macro_f1_5"] = [fmean(one["macro_f1"][FEW]) for one in whole]
        found["macro_f1"] = [fmean(list(one["macro_f1"].values())[-1]) for one in whole]
        found |= {name: [one[name] for one in whole] for name in ("nmi", "seconds") if name in whole[0]}
    if links:
        found |= {"cosine": [one["auc_of_cosines"] for one in links], "link": [one["scorer_auc"] for one in links]}
    return found


def verdicts(cells: dict[str, dict[str, Cell]], graphs: list[str]) -> list[str]:
    """Return sentences on the default: where it is near the best, its mean, and where it is below attributes."""
    sentences = []
    others = [name for name in cells if name != DEFAULT]
    for measure in ("macro_f1_5", "macro_f1", "nmi", "link"):
        heading = MEASURES[measure]
        means = {name: {graph: fmean(one[measure]) for graph, one in row.items()} for name, row in cells.items()}
        near, short = [], []
        for graph in graphs:
            best = max((name for name in cells if graph in means[name]), key=lambda name: means[name][graph])
            gap = means[best][graph] - means[DEFAULT][graph]
            (near if gap <= NEAR else short).append((graph, best, gap))
        missed = "; ".join(f"{graph}: {best} is {gap:.3f} ahead" for graph, best, gap in short)
        first = f"{heading}: the best or within {NEAR} of it on {len(near)} of {len(graphs)} graphs. {missed}"
        sentences.append(first.strip())
        whole = {name: fmean(row.values()) for name, row in means.items() if len(row) == len(graphs)}
        rival = max((name for name in others if name in whole), key=whole.__getitem__, default=None)
        if rival:
            other = f"the best other method, {rival}, has {whole[rival]:.4f}"
            sentences.append(f"{heading}: mean {whole[DEFAULT]:.4f}; {other}")
        if BASELINE in means:
            below = {graph: means[BASELINE][graph] - means[DEFAULT][graph] for graph in means[BASELINE]}
            worst = max(below, key=below.__getitem__)
            sentences.append(f"{heading}: the smallest lead over '{BASELINE}' is {-below[worst]:+.3f}, on {worst}")
    return sentences


def show(cells: dict[str, dict[str, Cell]], graphs: list[str]) -> None:
    """Print one table per measure, and one of the finished runs."""
    console = Console(width=200)
    for measure, heading in MEASURES.items():
        table = Table(heading, *graphs, "mean", box=None)
        for name, row in cells.items():
            means = {graph: fmean(row[graph][measure]) for graph in graphs if graph in row}
            shown = [f"{means[graph]:.3f}" if graph in means else "-" for graph in graphs]
            table.add_row(name, *shown, f"{fmean(means.values()):.4f}" if len(means) == len(graphs) else "-")
        console.print(table)
    table = Table("runs", *graphs, box=None)
    for name, row in cells.items():
        table.add_row(name, *(str(min(map(len, row[graph].values()))) if graph in row else "-" for graph in graphs))
    console.print(table)


def main() -> None:
    """Compute missing trainings, print tables and sentences, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=GRAPHS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), default="cpu", help="device of the methods that can train on a GPU"
    )
    parser.add_argument("--time-limit", type=float, default=3600.0, help="seconds for one training")
    parser.add_argument("--parts", action="store_true", help="compare the default with each of its parts alone")
    parser.add_argument("--choose", action="store_true", help="compare settings of the default, with other seeds")
    parser.add_argument("--show", action="store_true", help="train nothing; print the finished trainings")
    parser.add_argument("--trainings", type=Path, default=FOLDER / "trainings")
    options = parser.parse_args()
    store = Store(options.trainings)
    rows = plan(options)
    missing = [] if options.show else store.missing([training for row in rows.values() for training in row])
    with counting("defaults", steady=False) as progress:
        meter = Meter(progress, len(missing), "trainings")
        for ended in compute_missing(missing, store, jobs=options.jobs, timeout=options.time_limit):
            if ended.failure:
                print(f"failed: {ended.task.method} on {ended.task.dataset}: {ended.failure}")
            meter.advance()
    cells: dict[str, dict[str, Cell]] = {}
    for (graph, name), wanted in rows.items():
        if (cell := cell_of(store, wanted)) is not None:
            cells.setdefault(name, {})[graph] = cell
    path = FOLDER / ("parts.json" if options.parts else "defaults.json")
    if options.parts and path.is_file():
        cells |= {BEFORE: json.loads(path.read_text(encoding="utf-8"))["cells"].get(BEFORE, {})}
    show(cells, options.graphs)
    if options.choose:
        return
    compared = [graph for graph in options.graphs if graph in cells.get(DEFAULT, {})]
    sentences = [] if options.parts else verdicts(cells, compared)
    print("\n".join(sentences))
    trained_on = {json.dumps(one["machine"]) for row in rows.values() for each in row if (one := store.get(each))}
    machines = [json.loads(one) for one in sorted(trained_on)]
    record = {"machines": machines, "runs": options.runs, "verdicts": sentences, "cells": cells}
    with atomic(path) as draft:
        draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
