"""Measure the map of `brane explore`: seconds, and the share of a node's nearest nodes that are near on the map.

    python benchmarks/layout.py                      # debian-packages; writes results/layout.json
    python benchmarks/layout.py --dataset citeseer

For 2,000 random nodes, the ten nearest by cosine among all vectors are compared with the ten nearest on the map. Our
maps are made twice to check that their bits are equal. scikit-learn's t-SNE is too slow for all nodes, so it is
compared with ours on a sample of 5,000 nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from neural_brane import METHODS, load
from neural_brane.evaluate.map import map_2d
from neural_brane.experiments.store import describe_machine
from neural_brane.explore.layout import pca, tsne
from neural_brane.progress import Progress
from neural_brane.search.exact import nearest_rows

QUERIES, NEAREST, SAMPLE = 2000, 10, 5000
RESULTS = Path(__file__).parent / "results" / "layout.json"


def kept(vectors: np.ndarray, points: np.ndarray) -> float:
    """Return the share of the nearest nodes by vectors that are also among the nearest on the map."""
    rows = np.sort(np.random.default_rng(0).choice(len(vectors), min(QUERIES, len(vectors)), replace=False))
    true = nearest_rows(vectors, vectors[rows], NEAREST, rows).rows
    shown = cKDTree(points).query(points[rows], NEAREST + 1)[1]
    shares = [
        len(set(a.tolist()) & set(b[b != row].tolist())) / NEAREST for row, a, b in zip(rows, true, shown, strict=True)
    ]
    return round(float(np.mean(shares)), 4)


def measure(vectors: np.ndarray, make: Callable[[np.ndarray], np.ndarray], *, twice: bool = False) -> dict[str, Any]:
    """Measure the seconds and the share of one way to make a map."""
    begun = time.perf_counter()
    points = make(vectors)
    found: dict[str, Any] = {"seconds": round(time.perf_counter() - begun, 1), "kept": kept(vectors, points)}
    if twice:
        found["same_bits"] = make(vectors).tobytes() == points.tobytes()
    return found


def report(progress: Progress) -> None:
    """Print the progress."""
    if progress.done == progress.total or progress.done % 50 == 0:
        print(f"  {progress.stage}: {progress.done:,} of {progress.total:,} {progress.unit}", flush=True)


def main() -> None:
    """Measure all maps, print the results and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="debian-packages")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    graph = load(options.dataset)
    vectors = METHODS["propagated-attributes"](dim=150, seed=0).fit_transform(graph).vectors
    chosen = np.sort(np.random.default_rng(0).choice(len(vectors), min(SAMPLE, len(vectors)), replace=False))
    sample = vectors[chosen]
    results: dict[str, Any] = {"nodes": len(vectors), "sample": len(sample)}
    for name, table, make, twice in (
        ("sample, pca", sample, pca, True),
        ("sample, tsne", sample, tsne, True),
        ("sample, scikit-learn", sample, map_2d, False),
        ("all, pca", vectors, pca, True),
        ("all, tsne", vectors, lambda table: tsne(table, progress=report), True),
    ):
        results[name] = measure(table, make, twice=twice)
        print(name, results[name], flush=True)
    record = {"dataset": options.dataset, "machine": describe_machine(), "load": os.getloadavg()[0], "results": results}
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
