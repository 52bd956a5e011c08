"""The default beside every other method on ten graphs, in three measures; and how its values were chosen.

    python benchmarks/defaults.py [--graphs citeseer …] [--methods tadw …] [--runs 10] [--jobs 2] [--device cuda]
        [--show]
    python benchmarks/defaults.py --choose [--graphs …] [--jobs 2]

Measures: Macro-F1 of logistic regression at 50 % (liblinear, C = 1, vectors as they are, 10 splits), NMI of k-means
(10 starts), and AUC of a tenth of the edges, held out before a training of their own: the better of the vectors' cosine
and the method's own score where it has one. Every method has its defaults and 150 dimensions. Run k has seed k and the
same splits in every method; torch methods have at most 3 runs, and debian-packages 1. A mean is over the runs that
ended, and the last table says how many did: one that takes longer than --time-limit does not.

With --choose, settings of the default are compared instead, with seeds from 1000 on, which nothing is reported of.
Finished trainings are kept in results/trainings/. Scores are written to results/defaults.json.
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
MEASURES = {"macro_f1": "Macro-F1 at 50 %", "nmi": "NMI", "link": "AUC of links"}
DEFAULT, BASELINE = "neural-brane", "attributes"
NEAR, BELOW = 0.01, 0.02
UNREPORTED = 1000  # the first seed of --choose
# What --choose compares: the default, and each of its choices changed alone.
SETTINGS: dict[str, dict] = {
    "default": {},
    "spectral_dim 100": {"spectral_dim": 100},
    "spectral_dim 125": {"spectral_dim": 125},
    "no links in the spectral part": {"link_weight": 0.0},
    "link_weight 0.6": {"link_weight": 0.6},
    "three hops": {"hop_weights": (1.0, 1.0, 1.0, 1.0)},
    "learned_weight 0.5": {"learned_weight": 0.5},
    "learned_weight 0.2": {"learned_weight": 0.2},
    "not centred": {"centre": False},
    "length 3.7": {"length": 3.7},
    "length 7": {"length": 7.0},
    "half of the learned part from attributes": {"attribute_dim": 19},
    "spectral part alone": {"spectral_dim": 150},
    "learned part alone": {"spectral_dim": 0},
}
Cell = dict[str, list[float]]  # a method's values of each measure on one graph, one per run


def trainings(
    graph: str, method: str, parameters: dict, seeds: range, classes: dict = TASKS["classify"].scoring
) -> list[Training]:
    """Two for each seed: for classes and clusters, and for links."""
    whole = classes | TASKS["cluster"].scoring
    own = {"dim": 150} | {name: value for name, value in parameters.items() if name in METHODS[method].parameters()}
    return [Training(method, own, graph, seed, scoring) for seed in seeds for scoring in (whole, TASKS["link"].scoring)]


def plan(options: argparse.Namespace) -> dict[tuple[str, str], list[Training]]:
    """The trainings by graph and by the name of their row."""
    found = {}
    for graph in options.graphs:
        for name in SETTINGS if options.choose else options.methods:
            method, parameters = (DEFAULT, SETTINGS[name]) if options.choose else (name, {})
            parameters = {"device": options.device} | parameters
            runs = 1 if graph == "debian-packages" else min(options.runs, 3 if METHODS[method].extra else options.runs)
            first = UNREPORTED if options.choose else 0
            found[graph, name] = trainings(graph, method, parameters, range(first, first + runs))
    return found


def cell_of(store: Store, wanted: list[Training]) -> Cell | None:
    """The values of a row on one graph, of the trainings that are there; None where a measure has none."""
    found = values_of([record for training in wanted if (record := store.get(training)) is not None])
    return found if len(found) == len(MEASURES) else None


def values_of(records: list[Record]) -> Cell:
    """The values of each measure that finished trainings tell."""
    whole, links = ([record for record in records if measure in record] for measure in ("nmi", "auc"))
    found = {}
    if whole:
        found["macro_f1"] = [TASKS["classify"].value(record, "macro_f1") for record in whole]
        found["nmi"] = [TASKS["cluster"].value(record, "nmi") for record in whole]
    if links:
        found["link"] = _better([(record["auc_of_cosines"], record.get("auc_own")) for record in links])
    return found


def _better(pairs: list[tuple[float, float | None]]) -> list[float]:
    """The scores that are better in the mean: one method's, not each run's."""
    cosine, own = zip(*pairs, strict=True)
    return list(own if None not in own and fmean(own) > fmean(cosine) else cosine)


def verdicts(cells: dict[str, dict[str, Cell]], graphs: list[str]) -> list[str]:
    """What the figures say of the default: where it is near the best, its mean, and where it is below attributes."""
    told = []
    others = [name for name in cells if name != DEFAULT]
    for measure, heading in MEASURES.items():
        means = {name: {graph: fmean(one[measure]) for graph, one in row.items()} for name, row in cells.items()}
        near, short = [], []
        for graph in graphs:
            best = max((name for name in cells if graph in means[name]), key=lambda name: means[name][graph])
            gap = means[best][graph] - means[DEFAULT][graph]
            (near if gap <= NEAR else short).append((graph, best, gap))
        missed = "; ".join(f"{graph}: {best} is {gap:.3f} ahead" for graph, best, gap in short)
        told.append(f"{heading}: within {NEAR} of the best or ahead on {len(near)} of {len(graphs)}. {missed}".strip())
        whole = {name: fmean(row.values()) for name, row in means.items() if len(row) == len(graphs)}
        rival = max((name for name in others if name in whole), key=whole.__getitem__, default=None)
        if rival:
            told.append(f"{heading}: mean {whole[DEFAULT]:.4f}, the best other, {rival}, {whole[rival]:.4f}")
        if BASELINE in means:
            below = {graph: means[BASELINE][graph] - means[DEFAULT][graph] for graph in means[BASELINE]}
            worst = max(below, key=below.__getitem__)
            told.append(f"{heading}: against attributes alone at worst {-below[worst]:+.3f}, on {worst}")
    return told


def show(cells: dict[str, dict[str, Cell]], graphs: list[str]) -> None:
    """A table for each measure."""
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
    """Train what is missing, print tables and verdicts, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=GRAPHS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="of the methods that have one")
    parser.add_argument("--time-limit", type=float, default=3600.0, help="seconds for one training")
    parser.add_argument("--choose", action="store_true", help="compare settings of the default, on seeds of their own")
    parser.add_argument("--show", action="store_true", help="train nothing")
    parser.add_argument("--trainings", type=Path, default=FOLDER / "trainings")
    options = parser.parse_args()
    store = Store(options.trainings)
    rows = plan(options)
    missing = [] if options.show else store.missing([training for some in rows.values() for training in some])
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
    show(cells, options.graphs)
    if options.choose:
        return
    told = verdicts(cells, [graph for graph in options.graphs if graph in cells.get(DEFAULT, {})])
    print("\n".join(told))
    trained_on = {json.dumps(one["machine"]) for some in rows.values() for each in some if (one := store.get(each))}
    machines = [json.loads(one) for one in sorted(trained_on)]
    record = {"machines": machines, "runs": options.runs, "verdicts": told, "cells": cells}
    with atomic(FOLDER / "defaults.json") as draft:
        draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
