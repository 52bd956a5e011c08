"""Measure reading a large table of edges with string ids into a graph, compared with only `polars.read_csv`.

    python benchmarks/reading.py [--edges 10000000] [--nodes 1000000] [--repeats 3] [--json]

The table has a header line and lines such as `user-000123,user-004567` with random ends. Each reading runs in a new
process, which imports its packages before the clock starts. The two kinds take turns, and the smallest seconds and
processor seconds of each count; processor seconds are of all threads and depend less on other work on the machine. The
time includes loading compiled code from Numba's cache; a first reading, which fills the cache, does not count. Memory
is the peak of the whole process, including the interpreter and its libraries (`before`), divided by that of the graph
(adjacency and ids); the last figure leaves out `before`. Results are written to results/reading.json.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic

RESULTS = Path(__file__).parent / "results" / "reading.json"
CHUNK = 1_000_000  # lines written at a time


def write_table(path: Path, nodes: int, edges: int) -> None:
    """Write a table of edges between nodes drawn at random."""
    import polars

    random = np.random.default_rng(0)
    names = polars.Series([f"user-{node:06d}" for node in range(nodes)])
    with path.open("wb") as file:
        file.write(b"source,target\n")
        for start in range(0, edges, CHUNK):
            ends = random.integers(0, nodes, (min(CHUNK, edges - start), 2))
            part = polars.DataFrame({"source": names.gather(ends[:, 0]), "target": names.gather(ends[:, 1])})
            part.write_csv(file, include_header=False)


def measure(kind: str, path: str) -> dict[str, float]:
    """Read the table once in this process, and return the seconds and bytes of memory."""
    import polars

    from neural_brane.files.graphs.formats import read_graph

    before, start, start_of_work = peak(), time.perf_counter(), time.process_time()
    graph = read_graph(path) if kind == "graph" else None
    table = polars.read_csv(path) if kind == "table" else None
    figures = {
        "seconds": time.perf_counter() - start,
        "processor_seconds": time.process_time() - start_of_work,
        "before": before,
        "peak": peak(),
    }
    if graph is not None:
        parts = (graph.adjacency.data, graph.adjacency.indices, graph.adjacency.indptr, graph.ids)
        figures |= {"result": sum(part.nbytes for part in parts), "nodes": len(graph), "edges": graph.edges}
    if table is not None:
        figures["result"] = int(table.estimated_size())
    return figures


def peak() -> int:
    """Return the peak memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure_apart(kind: str, path: Path) -> dict[str, float]:
    """Call `measure` in a new process."""
    command = [sys.executable, __file__, "--measure", kind, str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def compare(runs: dict[str, list[dict[str, float]]]) -> dict[str, float]:
    """Return the best seconds and peaks, the ratio of the two kinds' times, and of the peak to the graph's size."""
    best = {
        kind: {name: min(run[name] for run in runs[kind]) for name in ("seconds", "processor_seconds", "peak")}
        for kind in runs
    }
    first = runs["graph"][0]
    return {
        **{f"{kind}_seconds": best[kind]["seconds"] for kind in runs},
        **{f"{kind}_peak_megabytes": best[kind]["peak"] / 1e6 for kind in runs},
        "graph_megabytes": first["result"] / 1e6,
        "times_the_seconds": best["graph"]["seconds"] / best["table"]["seconds"],
        "times_the_processor_seconds": best["graph"]["processor_seconds"] / best["table"]["processor_seconds"],
        "times_the_graph_in_memory": best["graph"]["peak"] / first["result"],
        "times_the_graph_in_new_memory": (best["graph"]["peak"] - first["before"]) / first["result"],
    }


def main() -> None:
    """Measure, write the results and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print all results as JSON")
    parser.add_argument("--measure", nargs=2, metavar=("KIND", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    runs: dict[str, list[dict[str, float]]] = {"table": [], "graph": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.csv"
        write_table(path, options.nodes, options.edges)
        size = path.stat().st_size
        measure_apart("graph", path)
        for _ in range(options.repeats):
            for kind, measured in runs.items():
                measured.append(measure_apart(kind, path))
    found = {"machine": describe_machine(), "file_bytes": size, **compare(runs), "runs": runs}
    with atomic(RESULTS) as draft:
        draft.write_text(json.dumps(found, indent=1) + "\n")
    print(
        json.dumps(found) if options.json else "\n".join(f"{name} {value:.2f}" for name, value in compare(runs).items())
    )


if __name__ == "__main__":
    main()
