"""Compare the number of clusters that `embedding.clusters()` finds with the number of classes or planted groups.

    python benchmarks/clusters.py [--graphs citeseer …] [--groups 2 4 10 30] [--seeds 3] [--large 100000]

Neural-Brane learns from each graph with its defaults; run k has seed k, in training and in clustering. `nmi` compares
the clusters with the labels, `nmi_at_classes` as many clusters as there are classes; `largest` is the share of nodes in
the largest cluster. The planted graphs are those of explain.py, with 100 nodes per group. For `large`, as many
random vectors around 20 centres in 150 dimensions are clustered; it gives the seconds and the memory added to the
earlier peak of the process. Writes results/clusters.json.
"""

import argparse
import json
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from explain import planted
from sklearn.metrics import normalized_mutual_info_score

from neural_brane import AttributedGraph, Embedding, NeuralBrane, load
from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic

PATH = Path(__file__).parent / "results" / "clusters.json"
GRAPHS = ("citeseer", "cora", "caltech36", "reed98", "stdlib", "acm", "wiki")
SIZE, CENTRES, DIM = 100, 20, 150


def count(graph: AttributedGraph, seed: int) -> dict[str, float]:
    """Return the number of clusters found, their NMI with the labels, and the share of nodes in the largest."""
    embedding, known = NeuralBrane(seed=seed).fit_transform(graph), graph.labels != ""
    found, given = embedding.clusters(seed=seed), embedding.clusters(len(graph.classes), seed=seed)
    nmi, at_classes = (
        round(float(normalized_mutual_info_score(graph.labels[known], one.assignments[known])), 3)
        for one in (found, given)
    )
    return {"found": found.k, "nmi": nmi, "nmi_at_classes": at_classes, "largest": round(found[0].size / len(graph), 2)}


def record(name: str, graphs: list[AttributedGraph]) -> dict[str, Any]:
    """Return the results on graphs of one kind; run k uses graph k and seed k."""
    runs = [count(graph, seed) for seed, graph in enumerate(graphs)]
    row = {"graph": name, "classes": len(graphs[0].classes)} | {key: [run[key] for run in runs] for key in runs[0]}
    print(row, flush=True)
    return row


def measure(nodes: int) -> dict[str, float]:
    """Return the seconds and the memory in MB that clustering many vectors takes."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(CENTRES, DIM)).astype(np.float32)[rng.integers(CENTRES, size=nodes)]
    vectors += rng.normal(scale=0.5, size=vectors.shape).astype(np.float32)
    embedding = Embedding(vectors, np.arange(nodes))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    found = embedding.clusters(seed=0)
    seconds = time.perf_counter() - start
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"nodes": nodes, "found": found.k, "seconds": round(seconds, 1), "added_mb": round(added)}


def main() -> None:
    """Run all measurements, print the results and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="*", default=list(GRAPHS))
    parser.add_argument("--groups", nargs="*", type=int, default=[2, 4, 10, 30])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--large", type=int, default=100_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # warnings about nodes without links
    large = measure(options.large)  # must be first, because earlier runs would raise the peak memory
    print(large, flush=True)
    seeds = range(options.seeds)
    rows = [record(name, [load(name) for _ in seeds]) for name in options.graphs]
    rows += [
        record(f"{groups} planted", [planted(groups, SIZE, seed=seed).graph for seed in seeds])
        for groups in options.groups
    ]
    with atomic(PATH) as draft:
        about = {"machine": describe_machine(), "options": vars(options), "large": large, "results": rows}
        draft.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
