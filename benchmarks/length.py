"""Measure how the length of vectors changes a classifier's scores.

    python benchmarks/length.py [--graphs citeseer …] [--methods tadw …] [--show]

Every method has its defaults and seed 0. Logistic regression learns from 5 % and from 50 % of the labelled nodes, in
three random splits: from the vectors as they are (C = 1), scaled to a root-mean-square length of 5 (C = 1), and with a
C that cross-validation of the training nodes chooses. Prints Macro-F1 and the seconds of the scores. Finished trainings
are kept in results/trainings/; the scores are written to results/length.json.
"""

import argparse
import json
import time
from pathlib import Path
from statistics import fmean

from neural_brane import load
from neural_brane.evaluate import classify
from neural_brane.experiments.store import Store, Training
from neural_brane.files.storage import atomic

FOLDER = Path(__file__).parent / "results"
GRAPHS = ("caltech36", "reed98", "citeseer", "cora", "stdlib")
METHODS = ("neural-brane", "attributes", "propagated-attributes", "tadw", "pane", "deepwalk")
WAYS = {"as they are": {"as_they_are": True}, "one length": {}, "chosen C": {"as_they_are": True, "C": "cv"}}
SHARES, SPLITS = (0.05, 0.5), 3


def measure(training: Training) -> dict:
    """Train a method, and return Macro-F1 by way and share, and the seconds of each way."""
    graph, record = load(training.dataset), {}
    vectors = training.model(threads=None).fit_transform(graph).vectors
    for way, options in WAYS.items():
        start = time.perf_counter()
        found = classify(vectors, graph.labels, train=SHARES, splits=SPLITS, **options)
        means = [round(score.macro.mean, 4) for score in found.scores]
        record[way] = {"macro_f1": means, "seconds": round(time.perf_counter() - start, 1)}
    return record


def show(rows: list[dict]) -> None:
    """Print Macro-F1 of every row at both shares, and the means and the seconds of every way."""
    print(f"{'graph':12}{'method':24}" + "".join(f"{way + f', {share:.0%}':>18}" for way in WAYS for share in SHARES))
    mean = {way: [fmean(row[way]["macro_f1"][at] for row in rows) for at in range(len(SHARES))] for way in WAYS}
    for row in [*rows, {"graph": "mean", "method": ""} | {way: {"macro_f1": mean[way]} for way in WAYS}]:
        scores = [score for way in WAYS for score in row[way]["macro_f1"]]
        print(f"{row['graph']:12}{row['method']:24}" + "".join(f"{score:18.4f}" for score in scores))
    print("seconds:", {way: round(sum(row[way]["seconds"] for row in rows)) for way in WAYS})


def main() -> None:
    """Compute missing scores, write all of them, and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--show", action="store_true", help="print the stored scores and train nothing")
    options = parser.parse_args()
    path, store = FOLDER / "length.json", Store(FOLDER / "trainings")
    rows = json.loads(path.read_text(encoding="utf-8")) if options.show else []
    for graph in [] if options.show else options.graphs:
        for method in options.methods:
            training = Training(method, {}, graph, 0, {"length": {"shares": SHARES, "splits": SPLITS}})
            if (record := store.get(training)) is None:
                store.put(training, record := measure(training))
            rows.append({"graph": graph, "method": method} | record)
            print(rows[-1], flush=True)
    with atomic(path) as draft:
        draft.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    show(rows)


if __name__ == "__main__":
    main()
