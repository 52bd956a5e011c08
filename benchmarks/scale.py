"""Measure memory and speed on a million nodes, compared with the size of its arrays and a step on a small graph.

    python benchmarks/scale.py [--nodes 1000000] [--json]

A synthetic graph (10 edges and 20 attributes per node, one attribute per ten nodes) is saved. A new process reads it,
embeds it for one epoch of 1,000 steps and writes the vectors. Prints

    bytes_mb     size of the tables P, P', W and b and of the CSR arrays of links and attributes
    peak_mb      peak memory of the process
    step_us      microseconds of one step of 100 triplets
    small_us     the same on 10,000 nodes with bags of the same size

and the ratios of peak_mb to its bound of 1.6 × bytes_mb + 300, and of step_us to small_us.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from alone import SCHEDULE

from neural_brane.experiments.compute import peak_memory, run
from neural_brane.experiments.store import describe_machine

SMALL = 10_000


def make(task: tuple[int, Path]) -> None:
    """Write a synthetic graph in a separate process, whose memory does not count; task: (nodes, path)."""
    from neural_brane import synthetic
    from neural_brane.files.graphs.formats import write_graph

    nodes, path = task
    write_graph(synthetic(nodes), path)


def embed(task: tuple[Path, Path]) -> dict[str, float]:
    """Read the graph, train for one epoch, write the vectors, and return the measurements; task: (graph, vectors)."""
    from neural_brane import NeuralBrane, read
    from neural_brane.files.vectors.formats import VectorFile

    source, output = task
    graph = read(source)
    times: list[tuple[int, float]] = []
    seen = {"progress": lambda report: times.append((report.done, time.perf_counter()))}
    method = NeuralBrane(**SCHEDULE | {"epochs": 1, "seed": 0} | seen)
    method.fit(graph)
    VectorFile(output).write(graph.ids, method.blocks, dim=method.dim, provenance=method.provenance())
    values = method.parameters_in_force()
    (first, begun), (last, ended) = times[0], times[-1]
    return {
        "nodes": len(graph),
        "edges": graph.edges,
        "attribute_entries": int(graph.attributes.nnz),
        "bytes_mb": needed_bytes(graph, values) / 1e6,
        "peak_mb": peak_memory(),
        "step_us": (ended - begun) / (last - first) * values["batch_size"] * 1e6,
    }


def needed_bytes(graph, values: dict) -> int:
    """Return the bytes of the tables, the hidden layer and the graph."""
    dim, attribute_dim, hidden = values["dim"], values["attribute_dim"], values["hidden"]
    tables = attribute_dim * graph.attributes.shape[1] + (dim - attribute_dim) * len(graph)
    matrices = (graph.adjacency, graph.attributes)
    arrays = sum(part.nbytes for matrix in matrices for part in (matrix.data, matrix.indices, matrix.indptr))
    return 4 * (tables + hidden * (dim + 1)) + arrays


def measure(folder: Path, nodes: int) -> dict[str, float]:
    """Make a graph and embed it, each in a new process, and return the measurements."""
    graph, vectors = folder / f"{nodes}.npz", folder / f"{nodes}-vectors.npz"
    for function, task in ((make, (nodes, graph)), (embed, (graph, vectors))):
        (ended,) = run(function, [task], jobs=1)
        if ended.failure:
            raise SystemExit(f"{function.__name__}, {nodes:,} nodes: {ended.failure}")
    return ended.result


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), SMALL)  # compiles the kernels, so that the next runs need not
        small, large = (measure(Path(folder), nodes) for nodes in (SMALL, options.nodes))
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
