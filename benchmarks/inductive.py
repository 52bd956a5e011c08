"""Vectors of nodes that were hidden while a method learned, by what they bring: attributes and links, or one of these.

    python benchmarks/inductive.py [--graphs citeseer …] [--shares 0.1 0.3] [--methods neural-brane …]
        [--runs 3] [--device cuda] [--merge OTHER.json …] [--again] [--show]

A share of the nodes is hidden with all their links, and the method is fitted to the rest. The hidden nodes are then
transformed, with links to known nodes and to each other. A logistic regression (liblinear, C = 1) learns classes from
the vectors of all nodes seen, or TRAINED of them drawn at random, and is tested on those hidden: Macro-F1.
`transductive` is the same regression where the method was fitted to the whole graph. Every method has its defaults
and 150 dimensions. Run k has seed k, and hides others. Graph2Gauss reads attributes alone of a new node: it has no
score with links alone.

Every run is put into results/inductive.json as soon as it is there, with the machine it was made on, and is not made
again, but with --again. --merge takes in the runs of files from other machines; --show trains nothing.
"""

import argparse
import json
import warnings
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from neural_brane import AttributedGraph, load
from neural_brane.evaluate.classify import fit_split
from neural_brane.experiments.store import describe_machine, machine_name
from neural_brane.files.storage import atomic
from neural_brane.methods import METHODS

PATH = Path(__file__).parent / "results" / "inductive.json"
GRAPHS = ("citeseer", "cora", "caltech36", "debian-packages")
INPUTS = {"both": (True, True), "attributes": (True, False), "links": (False, True)}
TRAINED = 5_000  # nodes that the regression learns from, at most: with 58 classes it takes long
WITHOUT_LINKS = ("attributes", "graph2gauss")  # of a new node they read its attributes alone
Row = dict[str, Any]  # one run: graph, hidden, method, seed, scores, device, machine


def part_of(graph: AttributedGraph, nodes: np.ndarray) -> AttributedGraph:
    """Some nodes of a graph, with the links among them."""
    adjacency = graph.adjacency[nodes][:, nodes]
    return AttributedGraph(adjacency, graph.attributes[nodes], graph.ids[nodes], graph.attribute_names)


def brought(graph: AttributedGraph, hidden: np.ndarray, *, attributes: bool, links: bool) -> AttributedGraph:
    """The graph as hidden nodes bring it: without the links, or without the attributes of the hidden."""
    bags, adjacency = graph.attributes, graph.adjacency
    if not attributes:
        bags = sparse.diags_array((~hidden).astype(np.float32)) @ bags
    if not links:
        adjacency = sparse.csr_array(adjacency.shape, dtype=np.float32)
    return AttributedGraph.from_sparse(adjacency, bags, ids=graph.ids, attribute_names=graph.attribute_names)


def run(name: str, graph: AttributedGraph, share: float, seed: int, device: str) -> dict[str, float | None]:
    """One run of a method: Macro-F1 by what hidden nodes bring, and where none was hidden; None where it cannot be."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros(len(graph), bool)
    hidden[rng.choice(len(graph), int(share * len(graph)), replace=False)] = True
    method = METHODS[name](dim=150, seed=seed, **({"device": device} if "device" in METHODS[name].parameters() else {}))
    labelled = graph.labels != ""
    seen, asked = rng.permutation(np.flatnonzero(labelled & ~hidden))[:TRAINED], np.flatnonzero(labelled & hidden)
    scores: dict[str, float | None] = {
        "transductive": fit_split(method.fit_transform(graph).vectors, graph.labels, seen, asked, 1.0)[0]
    }
    method.fit(part_of(graph, np.flatnonzero(~hidden)))
    for what, (attributes, links) in INPUTS.items():
        if what == "links" and name in WITHOUT_LINKS:
            scores[what] = None
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some hidden nodes bring nothing at all
            vectors = method.transform(brought(graph, hidden, attributes=attributes, links=links)).vectors
        scores[what] = fit_split(vectors, graph.labels, seen, asked, 1.0)[0]
    return scores


def key_of(row: Row) -> tuple[str, float, str, int]:
    """What a run is of."""
    return row["graph"], row["hidden"], row["method"], row["seed"]


def read(path: Path) -> list[Row]:
    """The runs of a file; none where there is no such file."""
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    return rows


def keep(rows: Iterable[Row], path: Path = PATH) -> list[Row]:
    """Put runs into the file, in the place of earlier ones of the same; returns all, in a fixed order."""
    kept = {key_of(row): row for row in (*read(path), *rows)}
    ordered = [kept[key] for key in sorted(kept)]
    with atomic(path) as draft:
        draft.write_text(json.dumps({"rows": ordered}, indent=1) + "\n", encoding="utf-8")
    return ordered


def summarise(rows: list[Row]) -> list[list[str]]:
    """A line for every graph, share and method: mean scores, and how much of the transductive one both keep."""
    cells: dict[tuple[str, float, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["graph"], row["hidden"], row["method"]), []).append(row)
    lines = []
    for (graph, share, name), some in cells.items():
        means = [_mean([row["scores"][what] for row in some]) for what in ("transductive", *INPUTS)]
        kept = means[1] / means[0] if means[0] and means[1] else None
        shown = ["—" if one is None else f"{one:.3f}" for one in means]
        machines = {machine_name(row["machine"]) for row in some}
        lines.append(
            [graph, f"{share:.0%}", name, *shown, "—" if kept is None else f"{kept:.1%}", str(len(some)), *machines]
        )
    return lines


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def main() -> None:
    """Run what is missing, keep every run at once, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    inductive = [name for name in METHODS if METHODS[name].inductive]
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3])
    parser.add_argument("--methods", nargs="+", default=inductive, choices=inductive)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="of the methods that have one")
    parser.add_argument("--merge", nargs="+", type=Path, default=[], help="files of the same kind to take runs from")
    parser.add_argument("--again", action="store_true", help="make runs again that are there")
    parser.add_argument("--show", action="store_true", help="train nothing")
    options = parser.parse_args()
    rows = keep([row for path in options.merge for row in read(path)])
    done = set() if options.again else {key_of(row) for row in rows}
    for graph in [] if options.show else map(load, options.graphs):
        for share, name, seed in product(options.shares, options.methods, range(options.runs)):
            row: Row = {"graph": graph.name, "hidden": share, "method": name, "seed": seed}
            if key_of(row) in done:
                continue
            row["scores"] = run(name, graph, share, seed, options.device)
            rows = keep([row | {"device": options.device, "machine": describe_machine()}])
            print(graph.name, share, name, seed, row["scores"], flush=True)
    table = Table("graph", "hidden", "method", "transductive", *INPUTS, "kept by both", "runs", "machine", box=None)
    for line in summarise(rows):
        table.add_row(*line[:9], "; ".join(line[9:]))
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
