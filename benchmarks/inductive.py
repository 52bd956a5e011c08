"""Score vectors of nodes that were hidden during training, from their attributes and links, or only one of these.

    python benchmarks/inductive.py [--graphs citeseer …] [--shares 0.1 0.3] [--methods neural-brane …]
        [--runs 3] [--device cuda] [--merge OTHER.json …] [--again] [--show]

A share of the nodes is hidden with all their links, and the method is fitted to the rest. Then the hidden nodes are
transformed, with links to known nodes and to each other. A logistic regression (liblinear, C = 1) learns classes from
the vectors of all known nodes, or of TRAINED random ones, and is tested on the hidden nodes by Macro-F1. `transductive`
is the same regression after the method was fitted to the whole graph. Every method has its defaults and 150 dimensions.
Run k has seed k, which also chooses the hidden nodes. Graph2Gauss uses only the attributes of a new node, so it has no
score for links.

Every run is written to results/inductive.json as it ends, with its machine, and is not repeated unless --again is
given. --merge adds the runs of files from other machines; --show trains nothing.
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
TRAINED = 5_000  # most nodes that the regression learns from; with 58 classes it is slow
WITHOUT_LINKS = ("attributes", "graph2gauss")  # methods that use only the attributes of a new node
Row = dict[str, Any]  # one run: graph, hidden, method, seed, scores, device, machine


def part_of(graph: AttributedGraph, nodes: np.ndarray) -> AttributedGraph:
    """Return some nodes of a graph with the links between them."""
    adjacency = graph.adjacency[nodes][:, nodes]
    return AttributedGraph(adjacency, graph.attributes[nodes], graph.ids[nodes], graph.attribute_names)


def with_inputs(graph: AttributedGraph, hidden: np.ndarray, *, attributes: bool, links: bool) -> AttributedGraph:
    """Return the graph without links, or without the attributes of the hidden nodes, or unchanged."""
    bags, adjacency = graph.attributes, graph.adjacency
    if not attributes:
        bags = sparse.diags_array((~hidden).astype(np.float32)) @ bags
    if not links:
        adjacency = sparse.csr_array(adjacency.shape, dtype=np.float32)
    return AttributedGraph.from_sparse(adjacency, bags, ids=graph.ids, attribute_names=graph.attribute_names)


def run(name: str, graph: AttributedGraph, share: float, seed: int, device: str) -> dict[str, float | None]:
    """Return Macro-F1 of one run: without hidden nodes, and by the inputs of hidden nodes; None if impossible."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros(len(graph), bool)
    hidden[rng.choice(len(graph), int(share * len(graph)), replace=False)] = True
    method = METHODS[name](dim=150, seed=seed, **({"device": device} if "device" in METHODS[name].parameters() else {}))
    labelled = graph.labels != ""
    seen, tested = rng.permutation(np.flatnonzero(labelled & ~hidden))[:TRAINED], np.flatnonzero(labelled & hidden)
    scores: dict[str, float | None] = {
        "transductive": fit_split(method.fit_transform(graph).vectors, graph.labels, seen, tested, 1.0)[0]
    }
    method.fit(part_of(graph, np.flatnonzero(~hidden)))
    for inputs, (attributes, links) in INPUTS.items():
        if inputs == "links" and name in WITHOUT_LINKS:
            scores[inputs] = None
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some hidden nodes have neither attributes nor links
            vectors = method.transform(with_inputs(graph, hidden, attributes=attributes, links=links)).vectors
        scores[inputs] = fit_split(vectors, graph.labels, seen, tested, 1.0)[0]
    return scores


def key_of(row: Row) -> tuple[str, float, str, int]:
    """Return the graph, share, method and seed of a run."""
    return row["graph"], row["hidden"], row["method"], row["seed"]


def read(path: Path) -> list[Row]:
    """Return the runs of a file, or none if there is no file."""
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []
    return rows


def keep(rows: Iterable[Row], path: Path = PATH) -> list[Row]:
    """Write runs to the file, where they replace earlier ones of the same kind; return all in a fixed order."""
    kept = {key_of(row): row for row in (*read(path), *rows)}
    ordered = [kept[key] for key in sorted(kept)]
    with atomic(path) as draft:
        draft.write_text(json.dumps({"rows": ordered}, indent=1) + "\n", encoding="utf-8")
    return ordered


def summarise(rows: list[Row]) -> list[list[str]]:
    """Return one line per graph, share and method: mean scores, and the score of both inputs over `transductive`."""
    cells: dict[tuple[str, float, str], list[Row]] = {}
    for row in rows:
        cells.setdefault((row["graph"], row["hidden"], row["method"]), []).append(row)
    lines = []
    for (graph, share, name), runs in cells.items():
        means = [_mean([row["scores"][inputs] for row in runs]) for inputs in ("transductive", *INPUTS)]
        kept = means[1] / means[0] if means[0] and means[1] else None
        shown = ["—" if one is None else f"{one:.3f}" for one in means]
        machines = {machine_name(row["machine"]) for row in runs}
        lines.append(
            [graph, f"{share:.0%}", name, *shown, "—" if kept is None else f"{kept:.1%}", str(len(runs)), *machines]
        )
    return lines


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def main() -> None:
    """Compute missing runs, write every run as it ends, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    inductive = [name for name in METHODS if METHODS[name].inductive]
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3])
    parser.add_argument("--methods", nargs="+", default=inductive, choices=inductive)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="device of methods that use a GPU")
    parser.add_argument("--merge", nargs="+", type=Path, default=[], help="result files from other machines")
    parser.add_argument("--again", action="store_true", help="repeat runs that are already stored")
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
