"""Compare our skip-gram training with gensim and our random walks with PecanPy, on all cores.

    python benchmarks/methods.py [--json] [--datasets citeseer arnetminer] [--walks debian-packages] [--rounds 2]

Training uses the same walks (10 per node, 80 nodes long), dim 150, window 10, 5 negatives and 1 epoch. Prints seconds,

    ours_s      DeepWalk on these walks: counting, pairs, negatives, training
    gensim_s    Word2Vec(sg=1).train with as many workers as cores; its vocabulary is built before

the Macro-F1 of each at 70 %, and whether a second run gives the same bits. For walks, prints the seconds to draw 10,000
walks of 80 nodes, of first order (p = q = 1) and of second order (p = 0.5, q = 2):

    ours_s      WalkSampler
    pecanpy_s   only the compiled loop of PecanPy, after compilation: FirstOrderUnweighted or PreCompFirstOrder for the
                first order, SparseOTF for the second, which like ours keeps no table of transitions

The programs take turns, and the best round of each counts. Needs gensim and pecanpy; a part is left out if its library
is not installed. PecanPy 2 needs NumPy below 2.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from neural_brane import AttributedGraph, DeepWalk, classify, load
from neural_brane.experiments.store import describe_machine
from neural_brane.sampling.walks import WalkSampler

WALKS_PER_NODE, LENGTH, DIM, WINDOW = 10, 80, 150, 10
WALKS = 10_000
ORDERS = {"first": (1.0, 1.0), "second": (0.5, 2.0)}


def compare_training(graph: AttributedGraph, rounds: int) -> dict[str, Any]:
    """Train both programs on one set of walks in turn, and return the results."""
    walks = WalkSampler(graph.adjacency, length=LENGTH, seed=0).draw(0, len(graph) * WALKS_PER_NODE)
    sentences = [[str(node) for node in walk if node >= 0] for walk in walks]
    ours(walks[:100], len(graph))  # compiles the kernels
    runs: dict[str, list[tuple[float, np.ndarray]]] = {"ours": [], "gensim": []}
    for _ in range(rounds):
        runs["ours"].append(ours(walks, len(graph)))
        runs["gensim"].append(gensim(sentences, len(graph)))
    seconds = {name: min(run[0] for run in found) for name, found in runs.items()}
    figures = {f"{name}_s": round(value, 2) for name, value in seconds.items()}
    figures["faster_than_gensim"] = round(seconds["gensim"] / seconds["ours"], 2)
    for name, found in runs.items():
        score = classify(found[0][1], graph.labels, train=[0.7]).at(0.7).macro.mean
        figures[f"{name}_macro_f1"] = round(score, 4)
        figures[f"{name}_same_bits"] = all(np.array_equal(found[0][1], vectors) for _, vectors in found[1:])
    return {"dataset": graph.name, "digest": graph.digest(), "words": int((walks >= 0).sum())} | figures


def ours(walks: np.ndarray, nodes: int) -> tuple[float, np.ndarray]:
    """Train DeepWalk on walks, and return seconds and vectors."""
    method = DeepWalk(dim=DIM, walk_length=LENGTH, window=WINDOW)
    method.seed_ = 0
    start = time.perf_counter()
    vectors = method.learn(lambda first, count: walks[first : first + count], len(walks), nodes)
    return time.perf_counter() - start, vectors


def gensim(sentences: list[list[str]], nodes: int) -> tuple[float, np.ndarray]:
    """Train gensim on the same walks, and return seconds and vectors."""
    from gensim.models import Word2Vec

    model = Word2Vec(
        sg=1, hs=0, negative=5, vector_size=DIM, window=WINDOW, epochs=1, sample=0, min_count=0, seed=0,
        workers=numba.get_num_threads(),
    )  # fmt: skip
    model.build_vocab(sentences)
    start = time.perf_counter()
    model.train(sentences, total_examples=model.corpus_count, epochs=1)
    return time.perf_counter() - start, model.wv[[str(node) for node in range(nodes)]]


def compare_walks(graph: AttributedGraph, rounds: int) -> list[dict[str, Any]]:
    """Draw as many walks with both programs in turn, of first and second order, and return the results."""
    results = []
    for order, (p, q) in ORDERS.items():
        sampler = WalkSampler(graph.adjacency, length=LENGTH, p=p, q=q, seed=0)
        contenders = {"ours": lambda s=sampler: s.draw(0, WALKS), "pecanpy": pecanpy(graph, p, q)}
        best = dict.fromkeys(contenders, np.inf)
        for run in contenders.values():
            run()  # compiles the loop
        for _ in range(rounds):
            for name, run in contenders.items():
                start = time.perf_counter()
                run()
                best[name] = min(best[name], time.perf_counter() - start)
        figures = {f"{name}_s": round(value, 3) for name, value in best.items()}
        ratio = round(best["pecanpy"] / best["ours"], 2)
        results.append({"dataset": graph.name, "order": order, **figures, "faster_than_pecanpy": ratio})
    return results


def pecanpy(graph: AttributedGraph, p: float, q: float) -> Callable[[], object]:
    """Return PecanPy's fastest loop without a table of second-order transitions, ready to run."""
    from pecanpy import pecanpy as library

    matrix = graph.adjacency
    equal = matrix.data.min() == matrix.data.max()
    first_order = library.FirstOrderUnweighted if equal else library.PreCompFirstOrder
    model = (first_order if p == q == 1 else library.SparseOTF)(p=p, q=q, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.npz")
        ids = np.arange(len(graph)).astype(str)
        np.savez(path, IDs=ids, data=matrix.data, indptr=matrix.indptr, indices=matrix.indices)
        model.read_npz(str(path), weighted=True)
    model.preprocess_transition_probs()
    starts = np.random.default_rng(0).integers(0, len(graph), WALKS).astype(np.uint32)
    forward, has_neighbours = model.get_move_forward(), model.get_has_nbrs()

    def run() -> object:
        with library.ProgressBar(total=len(starts), disable=True) as bar:
            return model._random_walks(len(starts), LENGTH - 1, 0, starts, has_neighbours, forward, bar)

    return run


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--datasets", nargs="*", default=["citeseer", "arnetminer"], help="datasets of the training")
    parser.add_argument("--walks", nargs="*", default=["citeseer", "debian-packages"], help="datasets of the walks")
    parser.add_argument("--rounds", type=int, default=2, help="how many times the programs take turns")
    options = parser.parse_args()
    parts = {
        "training": lambda: [compare_training(load(name), options.rounds) for name in options.datasets],
        "walks": lambda: [line for name in options.walks for line in compare_walks(load(name), options.rounds)],
    }
    results: dict[str, Any] = {"machine": describe_machine(), "threads": numba.get_num_threads()}
    for part, measure in parts.items():
        try:
            results[part] = measure()
        except ImportError as reason:
            print(f"{part} left out: {reason}", file=sys.stderr)
    if options.json:
        print(json.dumps(results, indent=1))
        return
    for line in results.get("training", []) + results.get("walks", []):
        print("  ".join(f"{name} {value}" for name, value in line.items()))


if __name__ == "__main__":
    main()
