"""Score links and suggest likely ones, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse

from neural_brane.errors import printable
from neural_brane.graph import AttributedGraph
from neural_brane.insight.contributions import Terms
from neural_brane.insight.pairs import (
    PairFeatures,
    draw_non_edges,
    edge_keys,
    edge_pairs,
    spectral_vectors,
    without_edges,
)
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.linalg.eigenvectors import REPORTS
from neural_brane.linalg.weights import rarity, without_self_loops
from neural_brane.progress import Meter, Reporter
from neural_brane.search.exact import Exact


@dataclass(frozen=True, slots=True)
class Shared:
    """Attributes and neighbours that two nodes share and few others have, each with its share of the list's sum.

    An attribute counts by its rarity times how much of it each node has: half for itself, half for its neighbours.
    A neighbour counts 1 / degree. What more than a tenth of the nodes have is never listed, nor an attribute that nodes
    with links have in common hardly more often than by chance, such as "of" in a text.
    """

    attributes: list[tuple[Any, float]]
    neighbours: list[tuple[Any, float]]

    def __str__(self) -> str:
        parts = (("both linked to", self.neighbours), ("attributes of both or of their neighbours:", self.attributes))
        texts = [f"{how} {', '.join(printable(name) for name, _ in listed)}" for how, listed in parts if listed]
        return "; ".join(texts) or "nothing rare in common"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A likely new neighbour of a node; `suggest` of a fitted method returns a list of them.

    Attributes
    ----------
    id : str or int
        The id of the suggested node.
    score : float
        A number from 0 to 1, as `score_links` of the method returns it; higher is likelier.
    reasons : Shared
        The `attributes` and `neighbours` that both nodes share and few others have, two lists of (name, share).

    Examples
    --------
    >>> print(Suggestion("Bela", 0.31415, Shared([("chess", 0.2)], [("Anna", 0.3)])))
    Bela (0.31): both linked to Anna; attributes of both or of their neighbours: chess
    """

    id: Any
    score: float
    reasons: Shared

    def __str__(self) -> str:
        return f"{printable(self.id)} ({self.score:.2g}): {self.reasons}"

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
        return {
            "id": self.id,
            "score": self.score,
            "attributes": [{"attribute": name, "share": share} for name, share in self.reasons.attributes],
            "neighbours": [{"id": name, "share": share} for name, share in self.reasons.neighbours],
        }


SHARE, MOST = 0.1, 25_000  # edges to learn from: their share of all edges, and at most this many
FEWEST = 10  # with fewer edges to learn from, nothing is learned
PLAIN = np.array([1 / 7] * 7 + [0.0] * 4)  # the weights of the features then
NEAREST = 300  # candidates from each source
HUBS = 0.01  # share of the nodes that are hubs, those with the most links
REACH = 1_000_000  # neighbours of neighbours looked at for candidates

Embed = Callable[[AttributedGraph, int, Callable[[], Any]], np.ndarray]  # from a graph, a seed and a reporter


class LinkScorer:
    """Score pairs of nodes by all that a graph says about them: a logistic regression over `PairFeatures`.

    A random tenth of the edges, at most 25,000, is taken out. The regression learns to tell them from as many random
    pairs without an edge, by the features of the smaller graph. Scores then use the features of the whole graph. The
    features need vectors, and these must not contain the edges either, so they are made twice. If fewer than ten edges
    can be taken out, nothing is learned: the score adds the mean of all features but those of degrees, in deviations
    over random pairs, to the log odds of an edge.

    The vectors are spectral ones of the scorer's own, whatever method the graph was embedded with. With a tenth of the
    edges of caltech36, reed98, citeseer and cora held out, their AUC was .950, .944, .994 and .977. A second training
    of eleven methods on the smaller graph gave at most .003 more and up to .037 less. The vectors of the full training,
    which had seen the edges, gave at most .001 more and up to .032 less. Spectral vectors beside those of a second
    training gave at most .004 more.

    A node may lose all its edges: keeping the last one cost .04 of AUC on citeseer and .02 on stdlib, where nodes lack
    all edges. Drawing half of the random pairs by degree changed the recall of ten suggestions by −.037 to +.004.

    Parameters
    ----------
    graph : AttributedGraph
        The graph. Weights of links do not count as features.
    embed : callable
        A function that makes vectors (nodes, dim) of a graph; it also gets the seed and a function to call while it
        works.
    seed : int
        The seed of the random numbers.
    weights : ndarray, optional
        The `weights` of an earlier scorer; nothing is learned then.
    progress : callable, optional
        A function that is called with the progress.
    """

    def __init__(
        self,
        graph: AttributedGraph,
        *,
        embed: Embed = spectral_vectors,
        seed: int = 0,
        weights: np.ndarray | None = None,
        progress: Reporter | None = None,
    ):
        self.graph, self.embed, self.seed = graph, embed, seed
        meter = Meter(progress, 2 * REPORTS * (2 if weights is None else 1), "steps", stage="scores of links")
        self.weights = self._learn(meter) if weights is None else weights  # of the features, the constant last
        self.features = self._features(graph, meter)

    def extended(self, graph: AttributedGraph) -> Self:
        """Return a scorer with the same weights for a graph that has grown."""
        return type(self)(graph, embed=self.embed, seed=self.seed, weights=self.weights)

    def score(self, pairs: np.ndarray) -> np.ndarray:
        """Return the log odds of a link between the nodes at pairs of rows (k, 2), (k,) float64.

        If the graph lacked as many edges as were taken out, these were the odds that a pair without an edge is one of
        them.
        """
        with one_blas_thread():
            return self.features(pairs) @ self.weights[:-1] + self.weights[-1]

    def rank(self, row: int, k: int, exclude: Iterable[int] = ()) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of the k likeliest new neighbours of a node, and their scores; none is in `exclude`.

        The hundredth of the nodes with the most links takes at most a third of the k places.
        """
        rows = np.setdiff1d(self.candidates(row), np.fromiter(exclude, np.int64))
        scores = self.score(np.column_stack([np.full(len(rows), row), rows]))
        best = np.argsort(-scores, kind="stable")
        hub = np.isin(rows[best], self._hubs[: int(HUBS * len(self.graph))])
        best = best[~hub | (np.cumsum(hub) <= -(-k // 3))][:k]
        return rows[best], scores[best]

    def candidates(self, row: int) -> np.ndarray:
        """Return rows that may be likely neighbours: hubs, and the nearest by vectors, by eigenvectors and by two hops.

        The first ten of them were as good as the first ten of all nodes of citeseer, wiki and debian-packages.
        """
        links, degrees = self.features.links, self.features.degrees
        near = links[[row]].indices
        room = NEAREST + len(near)
        found = [one.nearest(one.vectors[[row]], room, np.array([row])).rows[0] for one in self._searches]
        near = near[np.argsort(degrees[near], kind="stable")]  # a hub says little and leads far, so it comes last
        near = near[: max(1, int(np.searchsorted(np.cumsum(degrees[near]), REACH)))]
        reached, places = np.unique(links[near].indices, return_inverse=True)
        shared = np.bincount(places, np.repeat(1 / np.maximum(degrees[near], 1), degrees[near]), len(reached))
        found += [reached[np.argsort(-shared, kind="stable")[: room + 1]], self._hubs]
        return np.setdiff1d(np.concatenate(found), [row, -1, *links[[row]].indices])

    @cached_property
    def _searches(self) -> tuple[Exact, Exact]:
        return Exact(self.features.vectors), Exact(self.features.places)

    @cached_property
    def _hubs(self) -> np.ndarray:
        return np.argsort(-self.features.degrees, kind="stable")[:NEAREST]

    def _features(self, graph: AttributedGraph, meter: Meter) -> PairFeatures:
        return PairFeatures(self.embed(graph, self.seed, meter.advance), graph, seed=self.seed, report=meter.advance)

    def _learn(self, meter: Meter) -> np.ndarray:
        """Return the weights of the features, and last the constant."""
        from sklearn.linear_model import LogisticRegression

        graph, nodes, rng = self.graph, len(self.graph), np.random.default_rng(self.seed)
        edges = edge_pairs(graph)
        others = nodes * (nodes - 1) // 2 - len(edges)
        count = min(MOST, round(SHARE * len(edges)), others)
        learns = count >= FEWEST
        held_out = edges[np.sort(rng.choice(len(edges), count * learns, replace=False))]
        drawn = draw_non_edges(edge_keys(graph), nodes, min(max(count, FEWEST), others), rng)
        features = self._features(without_edges(graph, held_out), meter)(np.concatenate([held_out, drawn]))
        means, scales = features.mean(axis=0) if len(features) else 0, features.std(axis=0) if len(features) else 0
        scales = np.where(scales > 0, scales, 1)
        weights, constant = PLAIN, 0.0
        if learns:
            with one_blas_thread():  # else the order of sums, and so the last bits, would depend on the threads
                truth = np.repeat([1, 0], count)
                fitted = LogisticRegression(max_iter=1_000).fit((features - means) / scales, truth)
            weights, constant = fitted.coef_[0], fitted.intercept_[0]
        constant += np.log(SHARE * max(len(edges), 1) / max(others, 1))  # it saw as many pairs of either kind
        weights = weights / scales
        return np.append(weights, constant - np.sum(means * weights))


def as_chances(scores: np.ndarray) -> np.ndarray:
    """Return log odds as numbers from 0 to 1."""
    return 1 / (1 + np.exp(-np.clip(scores, -700, 700)))


COMMON, FEW = 0.1, 20  # what more than this share of the nodes have, and more than so many nodes, is never a reason
TESTED = 0.01  # attributes of a larger share of the nodes are reasons only if links join nodes that have them
LIFT, LINKS = 2, 100_000  # so many times as often as by chance, among at most so many links
PRESENT = 0.1  # least amount of an attribute in the profile of a node


class SharedFinder:
    """Find what two nodes of a graph share and few others have."""

    def __init__(self, graph: AttributedGraph):
        nodes, attributes = len(graph), graph.attributes
        self.graph, self.limit = graph, max(FEW, COMMON * nodes)
        self.links = without_self_loops(graph.adjacency)
        self.degrees = np.diff(self.links.indptr)
        ones = np.ones(attributes.nnz, np.float32)
        self.has = sparse.csr_array((ones, attributes.indices, attributes.indptr), shape=attributes.shape)
        holders = np.bincount(attributes.indices, minlength=attributes.shape[1])
        self.weights = np.where(holders > self.limit, 0, rarity(holders, nodes))
        ends = edge_pairs(graph)
        ends = ends[np.random.default_rng(0).permutation(len(ends))[:LINKS]]  # the same links at every call
        tested = np.flatnonzero((holders > max(FEW, TESTED * nodes)) & (self.weights > 0))
        one, other = (self.has[rows][:, tested] for rows in ends.T)
        by_chance = len(ends) * np.square(holders[tested] / nodes)
        self.weights[tested[one.multiply(other).sum(axis=0) < LIFT * by_chance]] = 0

    def find(self, row: int, others: Iterable[int], top: int) -> list[Shared]:
        """Return what a node shares with each of `others`: the `top` attributes and neighbours, by share and rarity."""
        own, near = self._profile(row), self.links[[row]].indices
        found = []
        for other in others:
            both = sparse.csr_array(own.multiply(self._profile(other)))
            attributes = Terms(both.indices, both.data * self.weights[both.indices])
            common = np.intersect1d(near, self.links[[other]].indices)
            common = common[self.degrees[common] <= self.limit]
            neighbours = Terms(common, 1 / self.degrees[common])
            parts = ((attributes, self.graph.attribute_names), (neighbours, self.graph.ids))
            found.append(Shared(*(self._largest(terms, names, top) for terms, names in parts)))
        return found

    def _profile(self, row: int) -> sparse.csr_array:
        """Return for each attribute half of 1 if the node has it, and half of the share of its neighbours."""
        mean = self.links[[row]].sign() @ self.has * (0.5 / max(self.degrees[row], 1))
        profile = sparse.csr_array(mean + 0.5 * self.has[[row]])
        profile.data[profile.data < PRESENT] = 0
        return profile

    def _largest(self, terms: Terms, names: np.ndarray, top: int) -> list[tuple[Any, float]]:
        values = terms.values[:, None] / (terms.values.sum() or 1)
        return [(name, share) for name, share in largest(Terms(terms.rows, values), names, top) if share > 0]


def largest(terms: Terms, names: np.ndarray, top: int) -> list[tuple[Any, float]]:
    """Return the names of the `top` rows that add most to the first target, each with what it adds, largest first."""
    order = np.argsort(-terms.values[:, 0], kind="stable")[:top]
    return list(zip(names[terms.rows[order]].tolist(), terms.values[order, 0].tolist(), strict=True))
