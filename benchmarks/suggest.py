"""Measure how many links that were removed before training are among the first ten suggestions.

    python benchmarks/suggest.py [--graphs citeseer caltech36] [--seeds 3] [--share 0.1]

A tenth of the edges is held out, and Neural-Brane is fitted to the rest with its defaults. Ten links are suggested for
every node that lost an edge. `recall` is the share of its lost links (at most ten) among the suggestions; `hits` is the
share of nodes with at least one. `all` is the score of `suggest`: the own score or the cosine, whichever finds more of
256 links that are not held out, combined with common neighbours, weighted by how many of these links each finds. The
other scores are used separately: the own score, the cosine of the same vectors, the number of common neighbours, the
Adamic-Adar index, and resource allocation. Run k has seed k. Writes results/suggest.json.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy import sparse

from neural_brane import NeuralBrane, load
from neural_brane.evaluate.link import HeldOutEdges, hold_out_edges
from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic
from neural_brane.insight.links import LinkScorer

PATH = Path(__file__).parent / "results" / "suggest.json"
FIRST = 10
OURS = {"all": "all", "own score": "score", "cosine": "similarity", "resource allocation": "neighbours"}


def lost_links(held_out: HeldOutEdges) -> dict[int, set[int]]:
    """Return the nodes that lost an edge, with the other ends of their lost edges."""
    lost: dict[int, set[int]] = {}
    for one, other in held_out.positives.tolist():
        lost.setdefault(one, set()).add(other)
        lost.setdefault(other, set()).add(one)
    return lost


def common(links: sparse.csr_array, row: int, weights: np.ndarray) -> list[int]:
    """Return the first nodes by the summed weights of common neighbours; ties keep the nodes' order."""
    near = links[[row]].indices
    scores = weights[near] @ links[near]
    scores[[row, *near]] = -np.inf
    return np.argsort(-scores, kind="stable")[:FIRST].tolist()


def run(name: str, share: float, seed: int) -> dict[str, dict[str, float]]:
    """Return recall and hits of one run, by score."""
    held_out = hold_out_edges(load(name), share=share, seed=seed)
    graph, lost = held_out.graph, lost_links(held_out)
    embedding = NeuralBrane(seed=seed).fit(graph).embedding_
    scorer = LinkScorer(embedding, graph, "cosine")
    weights = scorer.weigh()
    degrees = np.maximum(np.diff(graph.adjacency.indptr), 2)
    links = sparse.csr_array(
        (np.ones(graph.adjacency.nnz), graph.adjacency.indices, graph.adjacency.indptr), shape=graph.adjacency.shape
    )
    found: dict[str, list[tuple[float, bool]]] = {}
    for row, others in lost.items():
        listed = {
            title: scorer.rank(row, FIRST, by=by, weights=lambda: weights)[0].tolist() for title, by in OURS.items()
        }
        listed["common neighbours"] = common(links, row, np.ones(len(graph)))
        listed["Adamic-Adar"] = common(links, row, 1 / np.log(degrees))
        for title, first in listed.items():
            right = len(others & set(first))
            found.setdefault(title, []).append((right / min(len(others), FIRST), right > 0))
    return {
        title: {"recall": fmean(one for one, _ in runs), "hits": fmean(one for _, one in runs)}
        for title, runs in found.items()
    }


def main() -> None:
    """Run all measurements, print the results and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["citeseer", "caltech36"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.1)
    options = parser.parse_args()
    records = []
    for name in options.graphs:
        runs = [run(name, options.share, seed) for seed in range(options.seeds)]
        records.append({"graph": name, "runs": runs})
        for title in runs[0]:
            recall, hits = (fmean(one[title][score] for one in runs) for score in ("recall", "hits"))
            print(f"{name:12} {title:20} recall {recall:.3f}  hits {hits:.3f}", flush=True)
        with atomic(PATH) as draft:
            about = {"machine": describe_machine(), "options": vars(options), "results": records}
            draft.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
