"""How time and memory grow with the graph: each method's default run on 1,000, 10,000 and all 95,277 nodes.

    python benchmarks/growth.py [--methods all|NAME…] [--sizes 1000 10000 95277] [--timeout 1800] [--json]

The graphs are parts of debian-packages: the nodes that a breadth-first search from its first one meets first, with the
edges among them. That keeps the density (10.1, 13.5 and 11.2 neighbours a node), which a random choice of nodes does
not (0.1 at 1,000). Each run is a process of its own; seconds are of `fit` and the vectors, memory is the process's peak
(ru_maxrss: Python, Numba and the graph count too). The first run of a method compiles, so the smallest graph is run
twice and the second run counts.

The exponent is the slope of log seconds over log nodes, fitted to all sizes; `late` is the slope between the two
largest, where fixed costs weigh least; `memory` is that slope of the peak. Runs are kept in results/growth.json, and
the table in results/growth.md, as they end, so a benchmark that was stopped goes on where it was; a run that met the
timeout is tried again with a longer one only. Methods on torch are measured when named, or with 'all', on the CPU.
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from neural_brane.io.atomic import atomic
from neural_brane.machine import describe_machine

RESULTS = Path(__file__).parent / "results" / "growth.json"
DATASET, SIZES = "debian-packages", (1_000, 10_000, 95_277)


def make(nodes: int, path: Path) -> None:
    """Write a part of the graph: run in a process of its own, whose memory does not count."""
    import numpy as np
    from scipy.sparse.csgraph import breadth_first_order

    from neural_brane import AttributedGraph, load
    from neural_brane.io import write_graph

    graph = load(DATASET)
    if nodes < len(graph):
        met = breadth_first_order(graph.adjacency, 0, directed=False, return_predecessors=False)
        part = np.sort(met[:nodes])
        graph = AttributedGraph.from_sparse(graph.adjacency[part][:, part], graph.attributes[part], ids=graph.ids[part])
    write_graph(graph, path)


def measure(method: str, path: Path) -> None:
    """One default run; prints its figures as JSON."""
    from neural_brane import METHODS, read

    graph = read(path)
    model = METHODS[method](seed=0)
    if "device" in model.get_params():
        model.set_params(device="cpu")
    start = time.perf_counter()
    vectors = model.fit_transform(graph).vectors
    seconds = time.perf_counter() - start
    figures = {
        "edges": graph.edges,
        "attribute_entries": int(graph.attributes.nnz),
        "finite": bool(abs(vectors).max() < math.inf),
        "seconds": round(seconds, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6),
    }
    print(json.dumps(figures))


def run(method: str, nodes: int, path: Path, timeout: float) -> dict[str, object]:
    """A default run in a fresh process: its figures, the timeout it met, or why it failed."""
    cell: dict[str, object] = {"method": method, "nodes": nodes}
    command = [sys.executable, __file__, "--measure", method, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return cell | {"timeout": timeout}
    if done.returncode:
        return cell | {"failure": (done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1]}
    return cell | json.loads(done.stdout.splitlines()[-1])


def fill(cells: list[dict], methods: list[str], sizes: list[int], timeout: float, output: Path) -> list[dict]:
    """Measure what is missing, keeping every finished run; a method that met the timeout is not run on more nodes."""
    cells = [cell for cell in cells if "failure" not in cell and cell.get("timeout", timeout) >= timeout]
    done = {(cell["method"], cell["nodes"]): cell for cell in cells}
    with tempfile.TemporaryDirectory() as folder:
        for method in methods:
            missing = [nodes for nodes in sizes if (method, nodes) not in done]
            for nodes in missing:
                path = Path(folder, f"{nodes}.npz")
                if not path.exists():
                    subprocess.run([sys.executable, __file__, "--make", str(nodes), str(path)], check=True)
                if nodes == missing[0]:
                    run(method, nodes, path, timeout)
                cell = run(method, nodes, path, timeout)
                print(json.dumps(cell), file=sys.stderr)
                cells.append(cell)
                with atomic(output) as draft:
                    record = {"machine": describe_machine(), "growth": summarise(cells), "cells": cells}
                    draft.write_text(json.dumps(record, indent=1) + "\n")
                with atomic(output.with_suffix(".md")) as draft:
                    draft.write_text(markdown(cells, sizes), encoding="utf-8")
                if "seconds" not in cell:
                    break
    return cells


def summarise(cells: list[dict]) -> list[dict]:
    """The exponents of every method that was measured at two sizes or more."""
    rows = []
    for method in dict.fromkeys(cell["method"] for cell in cells):
        chosen = sorted((c for c in cells if c["method"] == method and "seconds" in c), key=lambda c: c["nodes"])
        if len(chosen) < 2:
            continue
        nodes = [cell["nodes"] for cell in chosen]
        seconds, peaks = ([cell[name] for cell in chosen] for name in ("seconds", "peak_mb"))
        rows.append(
            {
                "method": method,
                "exponent": slope(nodes, seconds),
                "late": slope(nodes[-2:], seconds[-2:]),
                "memory": slope(nodes[-2:], peaks[-2:]),
            }
        )
    return rows


def slope(sizes: list[float], values: list[float]) -> float:
    """The slope of the least-squares line through the logarithms; a hundredth of a second is the least that counts."""
    xs, ys = [math.log(size) for size in sizes], [math.log(max(value, 0.01)) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((a - x) ** 2 for a in xs)
    return round(sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / spread, 2)


def table(cells: list[dict], sizes: list[int]) -> list[list[str]]:
    """Seconds and peak memory of every method at each size, and the exponents: the heading, then a row each."""
    found = {(cell["method"], cell["nodes"]): cell for cell in cells}
    slopes = {row["method"]: row for row in summarise(cells)}
    rows = [["method", *(f"{nodes:,} nodes" for nodes in sizes), "exponent", "late", "memory"]]
    for method in dict.fromkeys(cell["method"] for cell in cells):
        texts = [describe(found.get((method, nodes))) for nodes in sizes]
        last = [f"{slopes[method][name]:.2f}" if method in slopes else "" for name in rows[0][-3:]]
        rows.append([method, *texts, *last])
    return rows


def markdown(cells: list[dict], sizes: list[int]) -> str:
    """The table for a page."""
    machine = describe_machine()
    heading, *rows = (f"| {' | '.join(row)} |" for row in table(cells, sizes))
    place = f"{DATASET}, default runs on {machine['cores']} cores ({machine['processor']}):"
    return "\n".join([place, "", heading, "| --- " + "| ---: " * (len(sizes) + 3) + "|", *rows]) + "\n"


def show(cells: list[dict], sizes: list[int]) -> None:
    """Print the table."""
    heading, *rows = table(cells, sizes)
    shown = Table(title=f"{DATASET}: default runs")
    for name in heading:
        shown.add_column(name, justify="left" if name == "method" else "right")
    for row in rows:
        shown.add_row(*row)
    Console(width=140).print(shown)


def describe(cell: dict | None) -> str:
    """A run in a few words."""
    if cell is None:
        return ""
    if "timeout" in cell:
        return f"> {cell['timeout']:.0f} s"
    return cell.get("failure") or f"{cell['seconds']:,.1f} s, {cell['peak_mb']:,} MB"


def main() -> None:
    """Measure and print, or play the part of one of the processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", help="'all' or names (default those that need no torch)")
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--timeout", type=float, default=1800, help="seconds that a run may take")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--make", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        return make(int(options.make[0]), Path(options.make[1]))
    if options.measure:
        return measure(options.measure[0], Path(options.measure[1]))
    from neural_brane.methods import METHODS

    methods = options.methods or [name for name, kind in METHODS.items() if kind.extra is None]
    methods = list(METHODS) if methods == ["all"] else methods
    if unknown := [name for name in methods if name not in METHODS]:
        parser.error(f"no method '{unknown[0]}'; choose 'all' or some of {', '.join(METHODS)}")
    cells = json.loads(options.output.read_text())["cells"] if options.output.exists() else []
    cells = fill(cells, methods, sorted(options.sizes), options.timeout, options.output)
    if options.json:
        print(json.dumps({"machine": describe_machine(), "growth": summarise(cells), "cells": cells}, indent=1))
    else:
        show(cells, sorted(options.sizes))
    return None


if __name__ == "__main__":
    main()
