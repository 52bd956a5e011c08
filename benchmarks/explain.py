"""Test whether explanations name planted attributes.

    python benchmarks/explain.py [--groups 10] [--size 200] [--seeds 3] [--dim 150]

The graph has groups of nodes. Each node has 5 of the 8 attributes of its group and 15 noise attributes; 4 of 5 links
stay in the group. `one` is the share of the first five attributes of explain(u) that belong to u's group. `pair` is the
share of the planted attributes common to two nodes of a group that are among the first five of explain(u, v). Writes
results/explain.json.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from neural_brane import AttributedGraph
from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic
from neural_brane.methods import METHODS

PATH = Path(__file__).parent / "results" / "explain.json"
EXPLAINED = ("neural-brane", "propagated-attributes", "smoothed-attributes", "attributes")
TOP, QUERIES = 5, 300


class Planted(NamedTuple):
    """A graph with planted groups."""

    graph: AttributedGraph
    groups: np.ndarray  # group of every node
    carried: dict[int, set[str]]  # node: its planted attributes

    def members(self, group: int) -> np.ndarray:
        """Return the nodes of a group."""
        return np.flatnonzero(self.groups == group)


def planted(
    groups: int, size: int, *, attributes: int = 8, own: int = 5, noise: int = 400, own_noise: int = 15, seed: int = 0
) -> Planted:
    """Make a graph whose nodes have `own` attributes of their group and `own_noise` of the noise."""
    rng = np.random.default_rng(seed)
    group_of = np.repeat(np.arange(groups), size)
    edges, bags, carried = [], {}, {}
    for node, group in enumerate(group_of.tolist()):
        edges += [(node, int(mate)) for mate in rng.choice(np.flatnonzero(group_of == group), 2) if mate != node]
        edges += [(node, int(rng.choice(np.flatnonzero(group_of != group))))] if rng.random() < 0.5 else []
        carried[node] = {f"group{group}-{one}" for one in rng.choice(attributes, own, replace=False)}
        bags[node] = sorted(carried[node]) + [f"noise-{one}" for one in rng.choice(noise, own_noise, replace=False)]
    graph = AttributedGraph.from_edges(
        np.array(edges), attributes=bags, ids=np.arange(len(group_of)), labels=group_of.astype(str), name="planted"
    )
    return Planted(graph, group_of, carried)


def precision(model: object, known: Planted, rng: np.random.Generator) -> float:
    """Return the share of the attributes listed for random nodes that belong to their group."""
    nodes = rng.choice(len(known.graph), min(QUERIES, len(known.graph)), replace=False).tolist()
    return fmean(
        fmean(name.startswith(f"group{known.groups[node]}-") for name, _ in model.explain(node, top=TOP).attributes)
        for node in nodes
    )


def recall(model: object, known: Planted, rng: np.random.Generator) -> float:
    """Return the share of the planted attributes common to two nodes of a group that explain(u, v) lists."""
    found = []
    for _ in range(QUERIES):
        one, other = rng.choice(known.members(int(rng.choice(known.groups))), 2, replace=False).tolist()
        shared = known.carried[one] & known.carried[other]
        listed = {name for name, _ in model.explain(one, other, top=TOP).attributes}
        found.append(len(shared & listed) / len(shared))
    return fmean(found)


def main() -> None:
    """Fit all methods, score their explanations, print the scores and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--dim", type=int, default=150)
    options = parser.parse_args()
    records = []
    for name in EXPLAINED:
        one, pair = [], []
        for seed in range(options.seeds):
            known = planted(options.groups, options.size, seed=seed)
            model = METHODS[name](dim=options.dim, seed=seed).fit(known.graph)
            rng = np.random.default_rng(seed)
            one.append(precision(model, known, rng))
            pair.append(recall(model, known, rng))
        records.append({"method": name, "one": one, "pair": pair})
        print(f"{name:24} one {fmean(one):.3f}  pair {fmean(pair):.3f}", flush=True)
    with atomic(PATH) as draft:
        about = {"machine": describe_machine(), "options": vars(options), "results": records}
        draft.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
