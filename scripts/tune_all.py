"""Search the parameters of the paper's competitors on its graphs, and write src/neural_brane/experiments/tuned.toml.

    python scripts/tune_all.py [--jobs 16] [--device cuda] [--methods tadw …] [--datasets citeseer …] [--folder tuning]

Each search is the same as `brane tune METHOD DATASET`. FOLDER keeps finished trainings, and the file is written after
each search, so a stopped run can resume. Entries of other searches are not changed. Neural-Brane's recipes and methods
with an empty grid are not tuned.
"""

import argparse
import os
from pathlib import Path

from neural_brane.cli.terminal import counting
from neural_brane.experiments import tune as tuned
from neural_brane.experiments.reproduce.plan import BOTH, COLUMNS, FULL, LINKS, LINKS_ONLY
from neural_brane.experiments.tune import RUNS, Candidate, Tuned, candidates, grid, hide_test_labels, parse, tune
from neural_brane.files import datasets
from neural_brane.files.storage import atomic
from neural_brane.methods import METHODS

PATH = Path(tuned.__file__).with_name("tuned.toml")
Search = tuple[str, str]  # dataset, method


def searches() -> list[Search]:
    """Return all searches, in the order of the file."""
    return [
        (dataset, column.method)
        for dataset in FULL.datasets
        for column in COLUMNS
        if column.group == LINKS or (column.group == BOTH and dataset not in LINKS_ONLY)
        if grid(METHODS[column.method])
    ]


def updated(text: str, dataset: str, method: str, found: Tuned) -> str:
    """Return the file's text with one entry added or replaced; its comment stays on top."""
    entries = {(data, name): one for data, methods in parse(text).items() for name, one in methods.items()}
    entries[dataset, method] = found
    order = searches()
    known = sorted(entries, key=lambda key: order.index(key) if key in order else len(order))
    comment = text[: text.index("\n[") + 1] if "\n[" in text else text
    return comment + "\n".join(["", *(entries[key].as_toml(key[1], key[0]) for key in known)]).removeprefix("\n")


def search(dataset: str, method: str, options: argparse.Namespace) -> Candidate:
    """Run one search, write its best parameters to the file, and return the best candidate."""
    graph, points = datasets.load(dataset), grid(METHODS[method])
    fixed = {"device": options.device} if "device" in METHODS[method].parameters() else {}
    with counting("search") as progress:
        best = tune(
            method, graph, points, fixed=fixed, jobs=options.jobs, folder=options.folder, progress=progress
        )[0]  # fmt: skip
    if best.macro:
        found = Tuned(best.parameters, best.score, len(candidates(points)), RUNS, hide_test_labels(graph).digest())
        text = updated(PATH.read_text(encoding="utf-8"), dataset, method, found)
        with atomic(PATH) as draft:
            draft.write_text(text, encoding="utf-8")
    return best


def main() -> None:
    """Run the chosen searches, and print the best parameters of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="NAME")
    parser.add_argument("--datasets", nargs="+", default=list(FULL.datasets), choices=FULL.datasets, metavar="NAME")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="trainings at a time")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="device of GraphSAGE and Graph2Gauss")
    parser.add_argument("--folder", type=Path, default=Path("tuning"), help="folder that keeps finished trainings")
    options = parser.parse_args()
    for dataset, method in searches():
        if dataset in options.datasets and method in options.methods:
            best = search(dataset, method, options)
            result = f"{best.score:.4f} ± {best.sd:.4f} {best.parameters}" if best.macro else f"FAILED: {best.failure}"
            print(f"{dataset} {method}: {result}", flush=True)


if __name__ == "__main__":
    main()
