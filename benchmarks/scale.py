"""Memory and speed on a graph of a million nodes, against what its arrays must take and a small graph's step.

    python benchmarks/scale.py [--nodes 1000000] [--json]

A synthetic graph (10 edges and 20 attributes a node, one attribute for ten nodes) is saved, then read, embedded for
one epoch of 1,000 steps and written in a process of its own. Prints

    bytes_mb     the tables P, P', W and b and the CSR arrays of links and attributes
    peak_mb      the most memory the process held
    step_us      one step of 100 triplets
    small_us     the same on 10,000 nodes with bags of the same size

and peak_mb against its bound of 1.6 × bytes_mb + 300, and step_us against small_us.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from neural_brane.machine import describe_machine

SMALL = 10_000


def make(nodes: int, path: Path) -> None:
    """Write a synthetic graph: run in a process of its own, whose memory does not count."""
    from neural_brane import synthetic
    from neural_brane.io import write_graph

    write_graph(synthetic(nodes), path)


def embed(graph_file: Path, output: Path) -> None:
    """Read, train for one epoch, write; print the figures as JSON."""
    from neural_brane import NeuralBrane, read
    from neural_brane.io import VectorFile

    graph = read(graph_file)
    times: list[tuple[int, float]] = []
    method = NeuralBrane(epochs=1, seed=0, progress=lambda report: times.append((report.done, time.perf_counter())))
    method.fit(graph)
    VectorFile(output).write(graph.ids, method.blocks(), dim=method.dim, provenance=method.provenance())
    arrays = [part for matrix in (graph.adjacency, graph.attributes) for part in _parts(matrix)]
    widths = method.settings_["attribute_dim"], graph.attributes.shape[1]
    tables = 4 * (widths[0] * widths[1] + (method.dim - widths[0]) * len(graph)) + sum(
        x.nbytes for x in method.model_[2:]
    )
    (first, begun), (last, ended) = times[0], times[-1]
    batch = method.settings_["batch_size"]
    figures = {
        "nodes": len(graph),
        "edges": graph.edges,
        "attribute_entries": int(graph.attributes.nnz),
        "bytes_mb": (tables + sum(part.nbytes for part in arrays)) / 1e6,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "step_us": (ended - begun) / (last - first) * batch * 1e6,
    }
    print(json.dumps(figures))


def _parts(matrix) -> tuple:
    return matrix.data, matrix.indices, matrix.indptr


def run(folder: Path, nodes: int) -> dict[str, float]:
    """Make a graph and embed it, each in a fresh process."""
    graph, vectors = folder / f"{nodes}.npz", folder / f"{nodes}-vectors.npz"
    subprocess.run([sys.executable, __file__, "--make", str(nodes), str(graph)], check=True)
    command = [sys.executable, __file__, "--embed", str(graph), str(vectors)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure and print, or play the part of one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--embed", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(int(options.make[0]), Path(options.make[1]))
        return
    if options.embed:
        embed(*options.embed)
        return
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), SMALL)  # compiles, so that the figures below are of a second run
        small, large = (run(Path(folder), nodes) for nodes in (SMALL, options.nodes))
    bound = 1.6 * large["bytes_mb"] + 300
    result = {name: round(value, 1) for name, value in large.items()} | {
        "small_us": round(small["step_us"], 1),
        "bound_mb": round(bound, 1),
        "peak_over_bound": round(large["peak_mb"] / bound, 3),
        "step_over_small": round(large["step_us"] / small["step_us"], 2),
    }
    if options.json:
        print(json.dumps({"machine": describe_machine(), "result": result}, indent=1))
    else:
        print("\n".join(f"{name:18} {value:>14,}" for name, value in result.items()))


if __name__ == "__main__":
    main()
