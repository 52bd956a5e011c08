"""Measure how time and memory grow with the graph: each method's default run on graphs of three sizes.

    python benchmarks/growth.py [--graph debian-packages|synthetic] [--methods all|NAME…] [--sizes …] [--timeout 1800]
    python benchmarks/growth.py --show [--graph synthetic]            print the stored results and measure nothing

The graphs are all of debian-packages (95,277 nodes) and two parts of it: the first 1,000 and 10,000 nodes of a
breadth-first search from its first node, with the edges between them. These parts have a similar density (10.1, 13.5
and 11.2 neighbours per node); 1,000 random nodes would have 0.1 neighbours. With --graph synthetic, the graphs have
10,000, 100,000 and a million nodes, with 10 edges and 20 attributes per node.

Each run has a new process on one core. Seconds are processor time of `fit` and the vectors, which other work on the
machine hardly changes. Memory is the peak of the process, including Python, Numba and the graph. The first run of a
method compiles, so the smallest graph is run twice and the second run counts. A method that reaches the timeout is not
run on larger graphs. If shelf.py has trained a method on all of debian-packages, its measurement is used.

The exponent is the slope of log seconds over log nodes, fitted to all sizes. `late` is the slope between the two
largest sizes, where fixed costs matter least, and `memory` is the same slope of the peak memory. Runs are written to
results/growth.json or growth_synthetic.json as they end, with a table beside it, and replace earlier runs of the same
method and size. To resume after a stop, name the methods that are left.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import shelf
from rich.console import Console
from rich.table import Table

from neural_brane.experiments.compute import OUT_OF_TIME, FinishedCall, peak_memory, run
from neural_brane.experiments.store import Store, describe_machine
from neural_brane.files.storage import atomic
from neural_brane.methods import METHODS

RESULTS = Path(__file__).parent / "results"
REAL, MADE = "debian-packages", "synthetic"
FILES = {REAL: RESULTS / "growth.json", MADE: RESULTS / "growth_synthetic.json"}
SIZES = {REAL: [1_000, 10_000, 95_277], MADE: [10_000, 100_000, 1_000_000]}


def make(task: tuple[str, int, Path]) -> None:
    """Write a graph in a separate process, whose memory does not count; task: (name, nodes, path)."""
    import numpy as np
    from scipy.sparse.csgraph import breadth_first_order

    from neural_brane import AttributedGraph, load
    from neural_brane.files.graphs.formats import write_graph

    name, nodes, path = task
    graph = load(f"{name}:{nodes}" if name == MADE else name)
    if nodes < len(graph):
        met = breadth_first_order(graph.adjacency, 0, directed=False, return_predecessors=False)
        part = np.sort(met[:nodes])
        graph = AttributedGraph.from_sparse(graph.adjacency[part][:, part], graph.attributes[part], ids=graph.ids[part])
    write_graph(graph, path)


def measure(task: tuple[str, Path]) -> dict[str, object]:
    """Return the measurements of one default run; task: (method, path of the graph)."""
    from neural_brane import read

    method, path = task
    graph = read(path)
    model = METHODS[method](seed=0, threads=1)
    if "device" in model.get_params():
        model.set_params(device="cpu")
    start = time.process_time()
    model.fit_transform(graph)
    seconds = time.process_time() - start
    return {"edges": graph.edges, "seconds": round(seconds, 2), "peak_mb": round(peak_memory())}


def on_the_shelf(graph: str, method: str, nodes: int) -> dict[str, object] | None:
    """Return the measurements of shelf.py's default run on the whole graph, or None if there is none."""
    if (graph, nodes) != (REAL, SIZES[REAL][-1]):
        return None
    whole, _ = shelf.plan(REAL, [method], 1)[method]
    record = Store(shelf.FOLDER / "trainings").get(whole)
    if record is None:
        return None
    seconds, peak = record["processor_seconds"], record["peak_mb"]
    return {"edges": record["data"]["edges"], "seconds": round(seconds, 2), "peak_mb": round(peak)}


def alone(function: Any, task: tuple, timeout: float | None = None) -> FinishedCall:
    """Call a function in a new process."""
    return next(run(function, [task], jobs=1, timeout=timeout))


def as_cell(method: str, nodes: int, ended: FinishedCall, timeout: float) -> dict[str, object]:
    """Return a run as the file stores it: measurements, the reached timeout, or why it failed."""
    cell: dict[str, object] = {"method": method, "nodes": nodes}
    if ended.failure == OUT_OF_TIME:
        return cell | {"timeout": timeout}
    return cell | ({"failure": ended.failure} if ended.failure else ended.result)


def fill(cells: list[dict], graph: str, methods: list[str], sizes: list[int], timeout: float) -> Iterator[list[dict]]:
    """Measure each method at increasing sizes until a run fails; yield all runs whenever one ends."""
    with tempfile.TemporaryDirectory() as folder:
        for method in methods:
            for nodes in sizes:
                if found := on_the_shelf(graph, method, nodes):
                    ended = FinishedCall(method, found)
                else:
                    path = Path(folder, f"{nodes}.npz")
                    if not path.exists() and (failure := alone(make, (graph, nodes, path)).failure):
                        raise SystemExit(f"the graph of {nodes:,} nodes: {failure}")
                    for _ in range(2 if nodes == sizes[0] else 1):
                        ended = alone(measure, (method, path), timeout)
                cell = as_cell(method, nodes, ended, timeout)
                print(json.dumps(cell), file=sys.stderr)
                cells = [one for one in cells if (one["method"], one["nodes"]) != (method, nodes)] + [cell]
                yield cells
                if "seconds" not in cell:
                    break


def write(cells: list[dict], graph: str, output: Path) -> None:
    """Write the runs and their exponents as JSON, and the table as Markdown."""
    with atomic(output) as draft:
        record = {"machine": describe_machine(), "growth": summarise(cells), "cells": cells}
        draft.write_text(json.dumps(record, indent=1) + "\n")
    with atomic(output.with_suffix(".md")) as draft:
        draft.write_text(markdown(cells, graph), encoding="utf-8")


def summarise(cells: list[dict]) -> list[dict]:
    """Return the exponents of every method with measurements at two sizes or more."""
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
    """Return the slope of the least-squares line through the logarithms; values below 0.01 count as 0.01."""
    xs, ys = [math.log(size) for size in sizes], [math.log(max(value, 0.01)) for value in values]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    squares = sum((a - x) ** 2 for a in xs)
    return round(sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / squares, 2)


def table(cells: list[dict]) -> list[list[str]]:
    """Return a heading and one row per method: seconds and peak memory at each size, and the exponents."""
    found = {(cell["method"], cell["nodes"]): cell for cell in cells}
    sizes = sorted({cell["nodes"] for cell in cells})
    slopes = {row["method"]: row for row in summarise(cells)}
    rows = [["method", *(f"{nodes:,} nodes" for nodes in sizes), "exponent", "late", "memory"]]
    for method in (name for name in METHODS if any(cell["method"] == name for cell in cells)):
        texts = [brief(found.get((method, nodes))) for nodes in sizes]
        last = [f"{slopes[method][name]:.2f}" if method in slopes else "" for name in rows[0][-3:]]
        rows.append([method, *texts, *last])
    return rows


def markdown(cells: list[dict], graph: str) -> str:
    """Return the table in Markdown."""
    machine = describe_machine()
    names, *rows = table(cells)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *rows]
    place = f"{graph}, default runs on one core ({machine['processor']}), processor seconds:"
    return "\n".join([place, "", *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"


def show(cells: list[dict], graph: str) -> None:
    """Print the table."""
    heading, *rows = table(cells)
    shown = Table(title=f"{graph}: default runs")
    for name in heading:
        shown.add_column(name, justify="left" if name == "method" else "right")
    for row in rows:
        shown.add_row(*row)
    Console(width=140).print(shown)


def brief(cell: dict | None) -> str:
    """Return a run in a few words."""
    if cell is None:
        return ""
    if "timeout" in cell:
        return f"> {cell['timeout']:.0f} s"
    return cell.get("failure") or f"{cell['seconds']:,.1f} s, {cell['peak_mb']:,} MB"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", choices=list(SIZES), default=REAL)
    parser.add_argument("--methods", nargs="+", default=["all"], help="'all' or names")
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of nodes")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds that a run may take")
    parser.add_argument("--show", action="store_true", help="print the stored results and measure nothing")
    options = parser.parse_args()
    methods = list(METHODS) if options.methods == ["all"] else options.methods
    if unknown := [name for name in methods if name not in METHODS]:
        parser.error(f"there is no method '{unknown[0]}'; choose 'all' or names from {', '.join(METHODS)}")
    sizes, output = sorted(options.sizes or SIZES[options.graph]), FILES[options.graph]
    cells = json.loads(output.read_text())["cells"] if output.exists() else []
    if not options.show:
        for runs in fill(cells, options.graph, methods, sizes, options.timeout):
            write(runs, options.graph, output)
        cells = runs
    show(cells, options.graph)


if __name__ == "__main__":
    main()
