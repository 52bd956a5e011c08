"""Vectors of nodes that were hidden while a method learned, by what they bring: attributes and links, or one of these.

    python benchmarks/inductive.py [--graphs citeseer …] [--shares 0.1 0.3] [--methods neural-brane …]
        [--runs 3] [--device cuda]

A share of the nodes is hidden with all their links, and the method is fitted to the rest. The hidden nodes are then
transformed, with links to known nodes and to each other. A logistic regression (liblinear, C = 1) learns classes from
the vectors of all nodes seen and is tested on those hidden: Macro-F1. `transductive` is the same regression where the
method was fitted to the whole graph. Every method has its defaults and 150 dimensions. Run k has seed k, and hides
others.
Writes results/inductive.json.
"""

import argparse
import json
import warnings
from pathlib import Path
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import sparse

from neural_brane import AttributedGraph, load
from neural_brane.evaluate.classify import fit_split
from neural_brane.io.atomic import atomic
from neural_brane.machine import describe_machine
from neural_brane.methods import METHODS

PATH = Path(__file__).parent / "results" / "inductive.json"
GRAPHS = ("citeseer", "cora", "caltech36", "debian-packages")
INPUTS = {"both": (True, True), "attributes": (True, False), "links": (False, True)}
Scores = dict[str, list[float]]


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


def run(name: str, graph: AttributedGraph, share: float, seed: int, device: str) -> dict[str, float]:
    """One run of a method: Macro-F1 by what hidden nodes bring, and where none was hidden."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros(len(graph), bool)
    hidden[rng.choice(len(graph), int(share * len(graph)), replace=False)] = True
    method = METHODS[name](dim=150, seed=seed, **({"device": device} if "device" in METHODS[name].parameters() else {}))
    labelled = graph.labels != ""
    seen, asked = np.flatnonzero(labelled & ~hidden), np.flatnonzero(labelled & hidden)
    scores = {"transductive": fit_split(method.fit_transform(graph).vectors, graph.labels, seen, asked, 1.0)[0]}
    method.fit(part_of(graph, np.flatnonzero(~hidden)))
    for what, (attributes, links) in INPUTS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some hidden nodes bring nothing at all
            vectors = method.transform(brought(graph, hidden, attributes=attributes, links=links)).vectors
        scores[what] = fit_split(vectors, graph.labels, seen, asked, 1.0)[0]
    return scores


def main() -> None:
    """Run, print a table, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    inductive = [name for name in METHODS if METHODS[name].inductive]
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS))
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3])
    parser.add_argument("--methods", nargs="+", default=inductive, choices=inductive)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options = parser.parse_args()
    table = Table("graph", "hidden", "method", "transductive", *INPUTS, "kept by both", box=None)
    records = []
    for graph in map(load, options.graphs):
        for share in options.shares:
            for name in options.methods:
                runs = [run(name, graph, share, seed, options.device) for seed in range(options.runs)]
                means = {what: fmean(one[what] for one in runs) for what in runs[0]}
                kept = means["both"] / means["transductive"]
                records.append({"graph": graph.name, "hidden": share, "method": name, "runs": runs, "kept": kept})
                table.add_row(
                    graph.name, f"{share:.0%}", name, *(f"{one:.3f}" for one in means.values()), f"{kept:.1%}"
                )
                print(graph.name, share, name, {what: round(one, 4) for what, one in means.items()}, flush=True)
    Console(width=120).print(table)
    with atomic(PATH) as draft:
        draft.write_text(
            json.dumps({"machine": describe_machine(), "results": records}, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
