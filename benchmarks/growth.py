"""How time and memory grow with the graph: each method's default run on graphs of three sizes.

    python benchmarks/growth.py [--graph debian-packages|synthetic] [--methods all|NAME…] [--sizes …] [--timeout 1800]
    python benchmarks/growth.py --show [--graph synthetic]            print what FILE holds and measure nothing

The graphs are parts of debian-packages with 1,000 and 10,000 nodes, and all of its 95,277: the nodes that a
breadth-first search from its first one meets first, with the edges among them. That keeps the density (10.1, 13.5 and
11.2 neighbours a node), which a random choice of nodes does not (0.1 at 1,000). Or they are synthetic ones of 10,000,
100,000 and a million nodes, with 10 edges and 20 attributes a node.

Each run is a process of its own on one core. Seconds are of the processor for `fit` and the vectors, which other work
on the machine hardly changes; memory is the process's peak (Python, Numba and the graph count too). The first run of a
method compiles, so the smallest graph is run twice and the second run counts. A method that met the timeout is not run
on larger graphs. A training of shelf.py on all of debian-packages is the same run: where there is one, it is taken.

The exponent is the slope of log seconds over log nodes, fitted to all sizes; `late` is the slope between the two
largest, where fixed costs weigh least; `memory` is that slope of the peak. Runs are written to FILE
(results/growth.json or growth_synthetic.json), and the table beside it, as they end, in place of earlier runs of the
same method and size: to go on after a stop, name the methods that are left.
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

from neural_brane.experiments.compute import OUT_OF_TIME, Ended, peak_memory, run
from neural_brane.experiments.store import Store, describe_machine
from neural_brane.files.storage import atomic
from neural_brane.methods import METHODS

RESULTS = Path(__file__).parent / "results"
REAL, MADE = "debian-packages", "synthetic"
FILES = {REAL: RESULTS / "growth.json", MADE: RESULTS / "growth_synthetic.json"}
SIZES = {REAL: [1_000, 10_000, 95_277], MADE: [10_000, 100_000, 1_000_000]}


def make(task: tuple[str, int, Path]) -> None:
    """Write a graph, (its name, nodes, path): in a process of its own, whose memory does not count."""
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
    """The figures of one default run, (method, path of the graph)."""
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
    """The figures of a default run on the whole graph, where shelf.py has made it; None where it has not."""
    if (graph, nodes) != (REAL, SIZES[REAL][-1]):
        return None
    whole, _ = shelf.plan(REAL, [method], 1)[method]
    record = Store(shelf.FOLDER / "trainings").get(whole)
    if record is None:
        return None
    seconds, peak = record["processor_seconds"], record["peak_mb"]
    return {"edges": record["data"]["edges"], "seconds": round(seconds, 2), "peak_mb": round(peak)}


def alone(function: Any, task: tuple, timeout: float | None = None) -> Ended:
    """Call a function in a process of its own."""
    return next(run(function, [task], jobs=1, timeout=timeout))


def as_cell(method: str, nodes: int, ended: Ended, timeout: float) -> dict[str, object]:
    """A run as FILE holds it: its figures, the timeout it met, or why it failed."""
    cell: dict[str, object] = {"method": method, "nodes": nodes}
    if ended.failure == OUT_OF_TIME:
        return cell | {"timeout": timeout}
    return cell | ({"failure": ended.failure} if ended.failure else ended.result)


def fill(cells: list[dict], graph: str, methods: list[str], sizes: list[int], timeout: float) -> Iterator[list[dict]]:
    """Measure the methods at every size, smallest first, until one does not succeed; yield all runs as each ends."""
    with tempfile.TemporaryDirectory() as folder:
        for method in methods:
            for nodes in sizes:
                if found := on_the_shelf(graph, method, nodes):
                    ended = Ended(method, found)
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
    """Write the runs and their exponents, and the table beside them."""
    with atomic(output) as draft:
        record = {"machine": describe_machine(), "growth": summarise(cells), "cells": cells}
        draft.write_text(json.dumps(record, indent=1) + "\n")
    with atomic(output.with_suffix(".md")) as draft:
        draft.write_text(markdown(cells, graph), encoding="utf-8")


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
    squares = sum((a - x) ** 2 for a in xs)
    return round(sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / squares, 2)


def table(cells: list[dict]) -> list[list[str]]:
    """Seconds and peak memory of every method at each size, and the exponents: the heading, then a row each."""
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
    """The table for a page."""
    machine = describe_machine()
    names, *rows = table(cells)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *rows]
    place = f"{graph}, default runs on one core ({machine['processor']}), seconds of the processor:"
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
    """A run in a few words."""
    if cell is None:
        return ""
    if "timeout" in cell:
        return f"> {cell['timeout']:.0f} s"
    return cell.get("failure") or f"{cell['seconds']:,.1f} s, {cell['peak_mb']:,} MB"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", choices=list(SIZES), default=REAL)
    parser.add_argument("--methods", nargs="+", default=["all"], help="'all' or names")
    parser.add_argument("--sizes", nargs="+", type=int, help="numbers of nodes")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds that a run may take")
    parser.add_argument("--show", action="store_true", help="print what the file holds and measure nothing")
    options = parser.parse_args()
    methods = list(METHODS) if options.methods == ["all"] else options.methods
    if unknown := [name for name in methods if name not in METHODS]:
        parser.error(f"no method '{unknown[0]}'; choose 'all' or some of {', '.join(METHODS)}")
    sizes, output = sorted(options.sizes or SIZES[options.graph]), FILES[options.graph]
    cells = json.loads(output.read_text())["cells"] if output.exists() else []
    if not options.show:
        for runs in fill(cells, options.graph, methods, sizes, options.timeout):
            write(runs, options.graph, output)
        cells = runs
    show(cells, options.graph)


if __name__ == "__main__":
    main()
