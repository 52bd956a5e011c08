"""Compare the joint SVD of attributes over hops in single precision with SciPy in double precision.

    python benchmarks/spectral.py [--dataset debian-packages] [--dim 150] [--rounds 2] [--json]

Fits PropagatedAttributes, each time in a new process that has already compiled the kernels, and prints

    seconds      time from the graph in memory to the vectors, the best of all rounds
    peak_mb      peak memory of the process, including Python, the libraries and the graph
    captured     sum of squared singular values, the part of the matrix that the result explains
    speedup      seconds of the reference divided by these seconds

for the reference, the CPU on all cores, and the GPU if there is one. The reference is the same iteration with SciPy's
products, 32 columns at a time on all cores, and LAPACK's QR. The programs take turns.
"""

import argparse
import json
import time

import numpy as np
from scipy import sparse

from neural_brane import AttributedGraph, PropagatedAttributes, load
from neural_brane.experiments.compute import peak_memory, run
from neural_brane.experiments.store import describe_machine
from neural_brane.kernels.threads import by_slabs, one_blas_thread
from neural_brane.linalg.weights import average_scales, inverse_frequency, weigh
from neural_brane.methods.training import gpu_name, resolve

HOPS, OVERSAMPLING, ITERATIONS = 2, 10, 6


def reference(graph: AttributedGraph, dim: int) -> np.ndarray:
    """Return the squared singular values in double precision; the vectors are computed too, because of their time."""
    scale, diagonal = average_scales(graph.adjacency)
    averages = (sparse.diags_array(scale) @ graph.adjacency + sparse.diags_array(diagonal)).tocsr()
    attributes = weigh(graph.attributes, inverse_frequency(graph.attributes))

    def product(table: np.ndarray) -> np.ndarray:
        parts = [table]
        for _ in range(HOPS):
            parts.append(averages.T @ parts[-1])
        total = np.zeros_like(table)
        while parts:
            total = averages @ total + attributes @ (attributes.T @ parts.pop())
        return total

    basis = np.random.default_rng(0).standard_normal((len(graph), dim + OVERSAMPLING))
    with one_blas_thread():
        for _ in range(ITERATIONS):
            basis = np.linalg.qr(by_slabs(product, basis, threads=None))[0]
        values, axes = np.linalg.eigh(basis.T @ by_slabs(product, basis, threads=None))
        _ = (basis @ axes[:, -dim:] * np.sqrt(values[-dim:])).astype(np.float32)
    return values[-dim:]


def measure(task: tuple[str, str, int]) -> dict[str, float]:
    """Fit once and return the measurements; task: (reference, cpu or cuda; dataset; dim)."""
    name, dataset, dim = task

    def values_of(graph: AttributedGraph, width: int) -> np.ndarray:
        if name == "reference":
            return reference(graph, width)
        method = PropagatedAttributes(dim=width, seed=0, device=name).fit(graph)
        _ = method.embedding_
        return method.values_

    values_of(load("stdlib"), 16)  # compiles the kernels
    graph = load(dataset)
    start = time.perf_counter()
    values = values_of(graph, dim)
    return {
        "seconds": round(time.perf_counter() - start, 2),
        "peak_mb": peak_memory(),
        "captured": round(float(values.sum()), 2),
    }


def contenders() -> list[str]:
    """Return the names of the programs: the reference, the CPU, and the GPU if there is one."""
    return ["reference", "cpu"] + (["cuda"] if resolve("auto", needs=("torch",)) == "cuda" else [])


def compare(dataset: str, dim: int, rounds: int) -> dict[str, dict[str, float]]:
    """Return the best round of each program, with its speedup over the reference."""
    best: dict[str, dict[str, float]] = {}
    for task in [(name, dataset, dim) for name in contenders()] * rounds:
        (ended,) = run(measure, [task], jobs=1)
        if ended.failure:
            raise SystemExit(f"{task[0]} on {dataset}: {ended.failure}")
        best[task[0]] = min(best.get(task[0], ended.result), ended.result, key=lambda found: found["seconds"])
    slow = best["reference"]["seconds"]
    return {name: found | {"speedup": round(slow / found["seconds"], 1)} for name, found in best.items()}


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="debian-packages")
    parser.add_argument("--dim", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = compare(options.dataset, options.dim, options.rounds)
    machine = describe_machine() | ({"gpu": gpu_name()} if "cuda" in found else {})
    settings = {"dataset": options.dataset, "dim": options.dim}
    if options.json:
        print(json.dumps({"machine": machine} | settings | {"results": found}, indent=1))
        return
    print(f"{options.dataset}, dim {options.dim}, on {machine['cores']} cores of {machine['processor']}")
    for name, figures in found.items():
        print(f"{name:10}", *(f"{key} {value:<9,}" for key, value in figures.items()))


if __name__ == "__main__":
    main()
