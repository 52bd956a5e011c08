"""Measure how well edges that were removed before training are told from other pairs, and how many are suggested.

    python benchmarks/links.py [--graphs citeseer caltech36] [--seeds 1] [--nodes 1000] [--dim 150]

A tenth of the edges is held out, and Neural-Brane is fitted to the rest with its defaults. `auc` is the area under
the ROC curve of the held-out edges against as many random pairs without an edge. Then ten links are suggested for nodes
that lost an edge, at most --nodes of them. `recall` is the share of a node's lost links (at most ten) among the ten;
`ndcg` counts a link the more the higher it stands. `all evidence` is the score of `suggest`, which looks at some
candidates; the others rank all nodes: the cosine of Neural-Brane's vectors, the number of common neighbours,
Adamic-Adar, resource allocation, and an inner product over 128 eigenvectors. Run k has seed k. Adds to
results/links.json after every run, and skips runs that the file has; remove the file to start again.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import numpy as np
from scipy import sparse
from sklearn.metrics import roc_auc_score

from neural_brane import NeuralBrane, load
from neural_brane.evaluate.link import HeldOutEdges, hold_out_edges
from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic
from neural_brane.insight.links import LinkScorer

PATH = Path(__file__).parent / "results" / "links.json"
GRAPHS = (
    "citeseer", "caltech36", "reed98", "arnetminer", "cora", "wiki", "acm", "haverford76", "stdlib", "debian-packages",
)  # fmt: skip
FIRST, BLOCK = 10, 512
MEASURES = ("auc", "recall", "ndcg")
OURS = "all evidence"

Score = Callable[[np.ndarray], np.ndarray]  # from pairs of rows (k, 2) to numbers (k,)


def in_blocks(score: Score) -> Score:
    """Return a score that looks at BLOCK pairs at a time."""
    return lambda pairs: np.concatenate([score(pairs[at : at + BLOCK]) for at in range(0, len(pairs), BLOCK)])


def common(links: sparse.csr_array, weights: np.ndarray) -> Score:
    """Return the score that sums the weights of common neighbours."""
    weighed = links @ sparse.diags_array(weights)

    def score(pairs: np.ndarray) -> np.ndarray:
        one, other = pairs.T
        if len(pairs) > 1 and (one == one[0]).all():  # a node against many
            return (links[other] @ weighed[[one[0]]].toarray()[0]).ravel()
        return np.asarray(weighed[one].multiply(links[other]).sum(axis=1)).ravel()

    return score


def rivals(scorer: LinkScorer, embedding) -> dict[str, Score]:
    """Return the scores to compare with, by name."""
    links, unit = scorer.features.links, embedding.vectors / np.linalg.norm(embedding.vectors, axis=1, keepdims=True)
    places, inverse = scorer.features.places, scorer.features.inverse
    degrees = np.maximum(np.diff(links.indptr), 1)
    return {
        "cosine": lambda pairs: np.einsum("ij,ij->i", *(unit[ends] for ends in pairs.T)),
        "common neighbours": in_blocks(common(links, np.ones(len(degrees)))),
        "Adamic-Adar": in_blocks(common(links, 1 / np.log(np.maximum(degrees, 2)))),
        "resource allocation": in_blocks(common(links, 1 / degrees)),
        "eigenvectors": lambda pairs: np.einsum("ij,ij,j->i", *(places[ends] for ends in pairs.T), inverse),
    }


def lost_links(held_out: HeldOutEdges, most: int) -> dict[int, set[int]]:
    """Return nodes that lost an edge, at most so many of them, with the other ends of their lost edges."""
    lost: dict[int, set[int]] = {}
    for one, other in held_out.positives.tolist():
        lost.setdefault(one, set()).add(other)
        lost.setdefault(other, set()).add(one)
    chosen = np.random.default_rng(0).permutation(sorted(lost))[:most]
    return {int(row): lost[int(row)] for row in chosen}


def judge(first: list[int], others: set[int]) -> tuple[float, float]:
    """Return recall and NDCG of the first nodes of a list."""
    gains = 1 / np.log2(np.arange(FIRST) + 2)
    right = np.array([node in others for node in first])
    most = min(len(others), FIRST)
    return right.sum() / most, gains[: len(first)][right].sum() / gains[:most].sum()


def best(links: sparse.csr_array, score: Score, row: int) -> list[int]:
    """Return the first nodes among all that are not linked to a node."""
    free = np.setdiff1d(np.arange(links.shape[0]), [row, *links[[row]].indices])
    scores = score(np.column_stack([np.full(len(free), row), free]))
    return free[np.argsort(-scores, kind="stable")[:FIRST]].tolist()


def run(name: str, options: argparse.Namespace, seed: int) -> dict[str, dict[str, float]]:
    """Return all measures of one run, by score."""
    held_out = hold_out_edges(load(name), seed=seed)
    graph, lost = held_out.graph, lost_links(held_out, options.nodes)
    embedding = NeuralBrane(dim=options.dim, seed=seed).fit(graph).embedding_
    scorer = LinkScorer(graph, seed=seed)
    compared = {OURS: scorer.score} | rivals(scorer, embedding)
    pairs = np.concatenate([held_out.positives, held_out.negatives])
    truth = np.repeat([1, 0], [len(held_out.positives), len(held_out.negatives)])
    found = {}
    for title, score in compared.items():
        lists = {
            row: scorer.rank(row, FIRST)[0].tolist() if title == OURS else best(scorer.features.links, score, row)
            for row in lost
        }
        recall, ndcg = np.mean([judge(lists[row], others) for row, others in lost.items()], axis=0).tolist()
        found[title] = {"auc": float(roc_auc_score(truth, score(pairs))), "recall": recall, "ndcg": ndcg}
    return found


def show(name: str, runs: list[dict[str, dict[str, float]]]) -> None:
    """Print the means of a graph's runs."""
    for title in runs[0]:
        auc, recall, ndcg = (fmean(one[title][measure] for one in runs) for measure in MEASURES)
        print(f"{name:16} {title:20} AUC {auc:.4f}  recall {recall:.3f}  NDCG {ndcg:.3f}", flush=True)


def main() -> None:
    """Run all measurements, print the results and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--dim", type=int, default=150)
    options = parser.parse_args()
    known = json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {"results": {}, "nodes": {}}
    results, nodes = known["results"], known["nodes"]
    for name in options.graphs:
        runs = results.setdefault(name, [])
        while len(runs) < options.seeds:
            runs.append(run(name, options, len(runs)))
            nodes[name] = options.nodes
            about = {"machine": describe_machine(), "dim": options.dim, "nodes": nodes, "results": results}
            with atomic(PATH) as draft:
                draft.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        show(name, runs)


if __name__ == "__main__":
    main()
