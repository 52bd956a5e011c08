"""Find groups of nodes whose vectors lie close together, and name them by typical attributes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import EmbeddingError, GraphError, ParameterError, printable
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.progress import Meter, Reporter
from neural_brane.search.exact import unit_rows

# One rule decides which attributes are typical of a group. It names clusters and regions, and summarises selections.

SURE = 0.001  # the highest chance that groups of random nodes get any name


class Name(NamedTuple):
    """An attribute that is typical of a group of nodes."""

    attribute: Any  # its name, or its column if names are unknown
    lift: float  # its share in the group divided by its share among all nodes
    share: float  # the share of the group's nodes with this attribute


def weigh_attributes(holders: np.ndarray, nodes: int) -> np.ndarray:
    """Return the weight of each attribute, −log of the share of nodes that have it, float32; holders: their counts."""
    return -np.log(np.maximum(holders, 1) / max(nodes, 1)).astype(np.float32)


def rank_typical(found: np.ndarray, size: int, holders: np.ndarray, nodes: int) -> np.ndarray:
    """Return the positions of the attributes that are typical of a group of `size` nodes, most typical first.

    The score of an attribute is its weight times the number of nodes that have it beyond those expected by chance. At
    least one is expected, so two nodes must have it. `summary` in explore/page/questions.js repeats this rule.

    found: (attributes,) counts in the group. holders: counts among all nodes.

    >>> rank_typical(np.array([2, 3, 1]), 3, np.array([2, 60, 1]), 60).tolist()
    [0]
    """
    expected = size * (holders / max(nodes, 1))
    scores = weigh_attributes(holders, nodes) * (found - np.maximum(expected, 1))
    order = np.argsort(-scores, kind="stable")
    return order[scores[order] > 0]


def name_groups(
    attributes: sparse.csr_array, groups: np.ndarray, k: int, top: int, *, sure: bool = True
) -> list[list[Name]]:
    """Return the most typical attributes of each of k groups of nodes, at most `top` per group.

    If `sure`, only attributes that are clearly more common than by chance: k random groups of these sizes would get
    any name with a chance of at most 0.1 % (hypergeometric test, Bonferroni bound). Some groups then get no name.
    """
    from scipy.stats import hypergeom

    nodes, width = attributes.shape
    holders = np.bincount(attributes.indices, minlength=width)
    has = sparse.csr_array((np.ones(attributes.nnz), attributes.indices, attributes.indptr), shape=attributes.shape)
    counts = (_members(groups, k) @ has).tocsr()
    bound = SURE / max(k * int(np.count_nonzero(holders)), 1)
    named = []
    for group, size in enumerate(np.bincount(groups, minlength=k).tolist()):
        part = counts[[group]]
        best = rank_typical(part.data, size, holders[part.indices], nodes)[: 4 * top]
        if sure:
            best = best[hypergeom.sf(part.data[best] - 1, nodes, holders[part.indices[best]], size) <= bound]
        columns, found = part.indices[best[:top]], part.data[best[:top]]
        lifts = (found * nodes / (size * holders[columns])).tolist()
        named.append([Name(*one) for one in zip(columns.tolist(), lifts, (found / size).tolist(), strict=True)])
    return named


# Clusters come from k-means on vectors of length 1.

MOST = 20  # highest number of clusters to try
SAMPLE = 2_000  # nodes used to choose the number
NEAREST = 10  # neighbours of each node in the graph of the sample
PRICE = 0.01  # modularity that one more cluster must add
STARTS = 3  # runs of k-means; the best one counts


def run_k_means(table: np.ndarray, k: int, seed: int, *, starts: int, advice: str) -> np.ndarray:
    """Return the cluster of every row by the best of `starts` runs of k-means; `advice`: advice if k is too large."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), one_blas_thread():  # with more threads the last bits would vary
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return KMeans(k, n_init=starts, random_state=seed).fit_predict(table)
        except ConvergenceWarning:
            raise EmbeddingError(f"there are fewer distinct vectors than {k} clusters; {advice}") from None


def partition(unit: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Return the cluster of every row, (rows,) int64; the largest cluster is number 0."""
    clusters = run_k_means(unit, k, seed, starts=STARTS, advice="give a smaller k")
    order = np.argsort(-np.bincount(clusters, minlength=k), kind="stable")
    ranks = np.empty(k, np.int64)
    ranks[order] = np.arange(k)
    return ranks[clusters]


def choose_k(unit: np.ndarray, seed: int, progress: Reporter | None = None) -> int:
    """Return the number of clusters with the largest modularity minus 0.01 per cluster.

    In a sample of nodes, each node is joined to its nearest nodes by cosine. k-means divides the sample into 2, 3, …
    clusters; modularity is the share of edges within clusters beyond what chance would put there.
    """
    rng = np.random.default_rng(seed)
    sample = unit if len(unit) <= SAMPLE else unit[np.sort(rng.choice(len(unit), SAMPLE, replace=False))]
    distinct = len(np.unique(sample, axis=0))
    if distinct < 3:
        return min(distinct, len(unit))
    graph = join_nearest(sample)
    tried = range(2, min(MOST, distinct - 1) + 1)
    meter = Meter(progress, len(tried), "numbers of clusters tried")
    reached = np.empty(len(tried))
    for at, k in enumerate(tried):
        reached[at] = modularity(graph, partition(sample, k, seed))
        meter.advance()
    return tried[int(np.argmax(reached - PRICE * np.array(tried)))]


def join_nearest(unit: np.ndarray) -> sparse.csr_array:
    """Return the undirected graph that joins each row to its nearest rows by cosine."""
    count = min(NEAREST, len(unit) - 1)
    with one_blas_thread():
        cosines = unit @ unit.T  # small, because these rows are a sample
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
    ends = np.repeat(np.arange(len(unit)), count), nearest.ravel()
    joined = sparse.csr_array((np.ones(len(ends[0])), ends), shape=(len(unit),) * 2)
    return joined.maximum(joined.T).tocsr()


def modularity(graph: sparse.csr_array, clusters: np.ndarray) -> float:
    """Return the share of edges within clusters beyond what chance would put there."""
    members = _members(clusters, int(clusters.max()) + 1)
    between = (members @ graph @ members.T).toarray()
    ends = between.sum(axis=0) / between.sum()
    return float(np.trace(between) / between.sum() - ends @ ends)


def _members(groups: np.ndarray, k: int) -> sparse.csr_array:
    """Return the matrix (groups, nodes) with a 1 where a node is in a group."""
    return sparse.csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(k, len(groups)))


NAMES, CENTRAL = 5, 3  # attributes and nodes listed for a cluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster of nodes.

    Attributes
    ----------
    size : int
        The number of its nodes.
    attributes : list of (attribute, lift, share)
        Typical attributes, most typical first. share: the share of the cluster's nodes that have it; lift: this share
        divided by the share among all nodes.
    centre : list of str or int
        The ids of the nodes nearest to its mean vector.
    """

    size: int
    attributes: list[Name]
    centre: list[Any]

    def __str__(self) -> str:
        names = ", ".join(printable(one.attribute) for one in self.attributes)
        typical = f"; typical attributes: {names}" if names else ""
        return f"size {self.size}{typical}; central nodes: {', '.join(map(printable, self.centre))}"


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """A sequence of clusters, largest first, with the cluster of every node.

    Attributes
    ----------
    ids, assignments : ndarray, shape (nodes,)
        The ids of the nodes and the number of each node's cluster (int64).
    clusters : tuple of Cluster
        The clusters by number.
    chosen : bool
        True if the number of clusters was chosen, False if it was given.
    """

    ids: np.ndarray
    assignments: np.ndarray
    clusters: tuple[Cluster, ...]
    chosen: bool

    @property
    def k(self) -> int:
        """The number of clusters."""
        return len(self.clusters)

    def __len__(self) -> int:
        return self.k

    def __iter__(self) -> Iterator[Cluster]:
        return iter(self.clusters)

    def __getitem__(self, at: int) -> Cluster:
        return self.clusters[at]

    def __repr__(self) -> str:
        how = " (number chosen by modularity; set it with k)" if self.chosen else ""
        lines = [f"  {at}  {one}" for at, one in enumerate(self.clusters)]
        return "\n".join([f"{self.k} clusters of {len(self.ids)} nodes{how}", *lines])

    def as_dict(self) -> dict[str, Any]:
        """Return the clusters as plain values, for JSON, without `ids` and `assignments`."""
        return {
            "nodes": len(self.ids),
            "k": self.k,
            "chosen": self.chosen,
            "clusters": [
                {"size": one.size, "centre": one.centre, "attributes": [name._asdict() for name in one.attributes]}
                for one in self.clusters
            ],
        }


def find_clusters(
    vectors: np.ndarray,
    ids: np.ndarray,
    k: int | None = None,
    *,
    graph: AttributedGraph | None = None,
    seed: int = 0,
    progress: Reporter | None = None,
) -> Clusters:
    """Divide nodes into clusters by k-means on their vectors, scaled to length 1.

    Parameters
    ----------
    vectors, ids : ndarray, shapes (nodes, dim) and (nodes,)
        Finite vectors and the ids of their nodes.
    k : int, optional
        The number of clusters. If None, numbers up to 20 are tried on 2,000 of the nodes: each further cluster must add
        0.01 to the modularity of the graph that joins each node to its ten nearest.
    graph : AttributedGraph, optional
        Its attributes name the clusters; its nodes are matched by id.
    seed, progress
        The seed of k-means and of the sample (int), and a function that is called with the progress.

    Returns
    -------
    Clusters
        The clusters and the cluster of every node.

    Examples
    --------
    >>> find_clusters(np.array([[1, 0], [2, 0], [0, 1]]), np.array(["ann", "bob", "cat"]), k=2)
    2 clusters of 3 nodes
      0  size 2; central nodes: ann, bob
      1  size 1; central nodes: cat
    """
    if len(vectors) == 0:
        raise EmbeddingError("there are no vectors to divide into clusters; give some")
    if not np.isfinite(vectors).all():
        raise EmbeddingError("some vectors contain NaN or infinity and belong to no cluster; leave them out")
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if k is not None and not (whole and 1 <= k <= len(vectors)):
        raise ParameterError(f"k={k!r} makes no sense; give a whole number from 1 to {len(vectors)}, or None")
    if seed < 0:
        raise ParameterError(f"seed={seed} makes no sense; give 0 or more")
    unit = unit_rows(vectors)
    chosen = choose_k(unit, seed, progress) if k is None else int(k)
    assignments = partition(unit, chosen, seed)
    names = [[] for _ in range(chosen)] if graph is None else _names_from(graph, ids, assignments, chosen)
    clusters = []
    for at in range(chosen):
        rows = np.flatnonzero(assignments == at)
        nearness = unit[rows] @ unit[rows].mean(axis=0)
        central = rows[np.argsort(-nearness, kind="stable")[:CENTRAL]]
        clusters.append(Cluster(len(rows), names[at], ids[central].tolist()))
    return Clusters(ids, assignments, tuple(clusters), k is None)


def _names_from(graph: AttributedGraph, ids: np.ndarray, assignments: np.ndarray, k: int) -> list[list[Name]]:
    """Return the names of clusters by the attributes of a graph, whose nodes are matched by id."""
    rows = locate(graph.ids, ids)
    known = rows >= 0
    if not known.any():
        raise GraphError(
            f"none of the {len(ids):,} vectors belongs to a node of graph '{graph.name}'; give the graph they were "
            "learned from"
        )
    named = name_groups(graph.attributes[rows[known]], assignments[known], k, NAMES)
    return [[one._replace(attribute=graph.attribute_names[one.attribute].item()) for one in group] for group in named]
