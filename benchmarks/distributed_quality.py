"""Compare the Macro-F1 of a training by two ranks with one process, on the same seeds and splits.

    python benchmarks/distributed_quality.py [--datasets citeseer debian-packages] [--seeds 3] [--ranks 2] [--splits 10]
        [--shares 0.3 0.5 0.7]

Trains with `brane embed` and with `brane distributed embed`, and scores on random splits at these shares of training
nodes. Results replace earlier ones of the same dataset in results/distributed_quality.json; a table is written to
results/distributed_quality.txt. --epochs N is for a short test, which writes nothing. The exit code is 1 if a mean over
the seeds differs by more than 0.01.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean

from neural_brane import Embedding, classify, load
from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic

RESULTS = Path(__file__).parent / "results"
MARGIN = 0.01


def train(dataset: str, seed: int, ranks: int | None, epochs: int | None, output: Path) -> float:
    """Train with one process or with ranks, write the vectors, and return the seconds."""
    words = ["embed"] if ranks is None else ["distributed", "embed", "--ranks", str(ranks)]
    command = [sys.executable, "-m", "neural_brane", *words, dataset, "--seed", str(seed), "-o", str(output)]
    command += [] if epochs is None else ["--epochs", str(epochs)]
    begun = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begun


def score(dataset: str, output: Path, shares: list[float], splits: int) -> dict[str, float]:
    """Return Macro-F1 at each share of training nodes."""
    graph = load(dataset)
    vectors = Embedding.load(output)
    if list(vectors.ids) != list(graph.ids):
        raise SystemExit(f"{output}: the order of nodes differs from the graph's")
    found = classify(vectors.vectors, graph.labels, train=shares, splits=splits, seed=0).as_dict()["scores"]
    return {f"{100 * share:.0f} %": one["macro_f1"]["mean"] for share, one in zip(shares, found, strict=True)}


def compare(dataset: str, options: argparse.Namespace, folder: Path) -> dict:
    """Return scores and seconds of both kinds of training, by seed."""
    found: dict = {"one process": [], f"{options.ranks} ranks": []}
    for seed in range(options.seeds):
        for name, ranks in zip(found, (None, options.ranks), strict=True):
            output = folder / f"{dataset}-{seed}-{ranks or 1}.npz"
            seconds = train(dataset, seed, ranks, options.epochs, output)
            scores = score(dataset, output, options.shares, options.splits)
            found[name].append(
                {"seed": seed, "splits": options.splits, "seconds": round(seconds, 1), "macro_f1": scores}
            )
            print(dataset, name, found[name][-1], flush=True)
    return found


def largest_difference(found: dict) -> float:
    """Return the largest difference between means over the seeds, at any share."""
    one, several = found.values()
    shares = one[0]["macro_f1"]
    means = [[fmean(run["macro_f1"][share] for run in runs) for share in shares] for runs in (one, several)]
    return max(abs(first - second) for first, second in zip(*means, strict=True))


def table(results: dict) -> str:
    """Return a Markdown table of the means over the seeds."""
    lines = ["| dataset | trained by | share of training nodes: Macro-F1 | seconds |", "| --- | --- | --- | --- |"]
    for dataset, found in results.items():
        for name, runs in found.items():
            means = {share: fmean(run["macro_f1"][share] for run in runs) for share in runs[0]["macro_f1"]}
            seconds = fmean(run["seconds"] for run in runs)
            scores = ", ".join(f"{share}: {value:.4f}" for share, value in means.items())
            cells = [dataset, name, scores, f"{seconds:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    last = [f"{dataset}: largest difference {largest_difference(found):.4f}" for dataset, found in results.items()]
    return "\n".join([*lines, "", *last, ""])


def main() -> None:
    """Train, score, print the table and write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=["citeseer", "debian-packages"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.3, 0.5, 0.7])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--epochs", type=int)
    options = parser.parse_args()
    kept = RESULTS / "distributed_quality.json"
    results = json.loads(kept.read_text())["results"] if options.epochs is None and kept.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        results |= {dataset: compare(dataset, options, Path(folder)) for dataset in options.datasets}
    print(table(results))
    if options.epochs is None:
        with atomic(kept) as draft:
            draft.write_text(json.dumps({"machine": describe_machine(), "results": results}, indent=1) + "\n")
        with atomic(RESULTS / "distributed_quality.txt") as draft:
            draft.write_text(table(results))
    if any(largest_difference(found) > MARGIN for found in results.values()):
        raise SystemExit(f"a mean differs by more than {MARGIN}")


if __name__ == "__main__":
    main()
