"""Compare `brane estimate` with the time and memory of `brane embed` from two CSV files.

    python benchmarks/from_files.py [--nodes 1000000] [--json]

One file contains the edges of a synthetic graph (10 per node). The other is a table of nodes with two categories, two
numbers and a text of eight words, which depend on the class. Prints

    estimated_mb, peak_mb, memory_ratio     estimated memory, peak memory, and the first divided by the second
    estimated_s, seconds, time_ratio        estimated time, time from start to end, and the first divided by the second
    macro_f1                                Macro-F1 at 50 % training nodes, on at most 20,000 random nodes
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse

from neural_brane import Embedding, synthetic
from neural_brane.evaluate import classify
from neural_brane.experiments.store import describe_machine

COMMAND = [sys.executable, "-W", "ignore", "-c", "from neural_brane.cli import main; main()"]
WORDS, TEXT = 2_000, 8  # words of a class, and of a node's text


def make(nodes: int, folder: Path) -> None:
    """Write edges.csv and people.csv."""
    graph = synthetic(nodes)
    upper = sparse.triu(graph.adjacency).tocoo()
    names = "user-" + pl.Series(np.arange(nodes)).cast(pl.String).str.zfill(8)
    pl.DataFrame({"from": names.gather(upper.row), "to": names.gather(upper.col)}).write_csv(folder / "edges.csv")
    random = np.random.default_rng(0)
    classes = np.unique(graph.labels, return_inverse=True)[1]
    words = np.minimum(random.zipf(1.3, (nodes, TEXT)), WORDS) + WORDS * classes[:, None] * random.integers(
        0, 2, (nodes, TEXT)
    )
    texts = pl.Series(words.ravel()).cast(pl.String).reshape((nodes, TEXT)).cast(pl.List(pl.String))
    people = {
        "name": names,
        "class": pl.Series(graph.labels),
        "country": "c" + pl.Series(random.integers(0, 200, nodes)).cast(pl.String),
        "city": "t" + pl.Series(random.integers(0, 20_000, nodes)).cast(pl.String),
        "age": random.integers(0, 90, nodes) + 5 * classes,
        "income": random.lognormal(8, 1, nodes),
        "about": "w" + texts.list.join(" w"),
    }
    pl.DataFrame(people).write_csv(folder / "people.csv")


def measure(nodes: int, folder: Path) -> dict[str, float]:
    """Estimate, train and score, and return the measurements."""
    make(nodes, folder)
    files = [str(folder / "edges.csv"), "--nodes", str(folder / "people.csv"), "--label", "class"]
    estimated = subprocess.run([*COMMAND, "estimate", *files, "--json"], check=True, capture_output=True, text=True)
    expected = json.loads(estimated.stdout)
    start = time.perf_counter()
    output = folder / "vectors.npz"
    process = subprocess.Popen([*COMMAND, "embed", *files, "--seed", "0", "-o", str(output)])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit("brane embed failed")
    seconds, peak = time.perf_counter() - start, usage.ru_maxrss * 1024 / 1e6
    embedding, labels = Embedding.load(output), synthetic(nodes).labels
    rows = np.random.default_rng(0).choice(nodes, min(nodes, 20_000), replace=False)
    places = [embedding.row(f"user-{row:08d}") for row in rows.tolist()]
    macro = classify(embedding.vectors[places], labels[rows], train=[0.5], splits=1).scores[0].macro.mean
    return {
        "nodes": nodes,
        "estimated_mb": round(expected["peak"] / 1e6, 1),
        "peak_mb": round(peak, 1),
        "memory_ratio": round(expected["peak"] / 1e6 / peak, 3),
        "estimated_s": round(expected["total_seconds"], 1),
        "seconds": round(seconds, 1),
        "time_ratio": round(expected["total_seconds"] / seconds, 2),
        "macro_f1": round(macro, 4),
    }


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options.nodes, Path(folder))
    if options.json:
        print(json.dumps({"machine": describe_machine(), "result": result}, indent=1))
        return
    for name, value in result.items():
        print(f"{name:14} {value:>12,}")


if __name__ == "__main__":
    main()
