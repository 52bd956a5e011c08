"""Find groups of nodes whose vectors lie together, and name them by what their nodes have."""

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

# What is typical of a group of nodes: the one rule, by which clusters and regions are named and selections summarised.

SURE = 0.001  # the chance that a cluster of random nodes would be given any such name


class Name(NamedTuple):
    """An attribute that is typical of a group: its name, or its column where no names are known."""

    attribute: Any
    lift: float  # how many times as often as among all nodes
    share: float  # of the group's nodes that have it


def weigh_attributes(holders: np.ndarray, nodes: int) -> np.ndarray:
    """Weigh each attribute by how rare it is: −log of the share of nodes that have it, as float32.

    holders: (attributes,) how many of all nodes have each.
    """
    return -np.log(np.maximum(holders, 1) / max(nodes, 1)).astype(np.float32)


def rank_typical(found: np.ndarray, size: int, holders: np.ndarray, nodes: int) -> np.ndarray:
    """The places of the attributes that are typical of a group of `size` nodes, the most typical first.

    An attribute counts by how many more nodes of the group have it than chance would give, times its weight. The first
    node that has it never counts, so that two at least must. The page summarises selections by the same rule, from the
    same weights (`summary` in explore/page/questions.js).

    found: (attributes,) how many of the group have each; holders: how many of all nodes.

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
    """The columns of the attributes that are most typical of each of k groups of nodes, at most `top`.

    With `sure`, they are so much more common in the group that k random groups of these sizes would be given any such
    name with a chance of 0.1 % (hypergeometric, Bonferroni's bound); a group may then have no name.
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


# k-means on vectors of length one, and how many clusters there are.

MOST = 20  # clusters to try
SAMPLE = 2_000  # nodes by which the number is chosen
NEAREST = 10  # nodes that each is joined to in the graph of the sample
PRICE = 0.01  # modularity that one more cluster must add
STARTS = 3  # runs of k-means, of which the best counts


def run_k_means(table: np.ndarray, k: int, seed: int, *, starts: int, mend: str) -> np.ndarray:
    """The cluster of every row, by the best of some runs of k-means; `mend` says what to do if k is too many."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), one_blas_thread():  # the last bits would follow the number of threads
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return KMeans(k, n_init=starts, random_state=seed).fit_predict(table)
        except ConvergenceWarning:
            raise EmbeddingError(f"fewer distinct vectors than {k} clusters; {mend}") from None


def partition(unit: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The cluster of every row; the largest cluster is 0."""
    found = run_k_means(unit, k, seed, starts=STARTS, mend="give a smaller k")
    order = np.argsort(-np.bincount(found, minlength=k), kind="stable")
    ranks = np.empty(k, np.int64)
    ranks[order] = np.arange(k)
    return ranks[found]


def choose_k(unit: np.ndarray, seed: int, progress: Reporter | None = None) -> int:
    """The number of clusters up to which one more adds to how well they hold together.

    In a sample of nodes each is joined to its nearest by cosine. k-means divides the sample into 2, 3, … clusters, and
    the modularity of that graph says how much more the clusters are joined in themselves than chance would have it. The
    number is best whose modularity, less a hundredth for every cluster, is largest.
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
    """The graph in which each row is joined to its nearest by cosine, in no direction."""
    count = min(NEAREST, len(unit) - 1)
    with one_blas_thread():
        cosines = unit @ unit.T  # of a sample, so that this is small
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
    ends = np.repeat(np.arange(len(unit)), count), nearest.ravel()
    joined = sparse.csr_array((np.ones(len(ends[0])), ends), shape=(len(unit),) * 2)
    return joined.maximum(joined.T).tocsr()


def modularity(graph: sparse.csr_array, clusters: np.ndarray) -> float:
    """The share of edges within clusters beyond what chance would put there.

    >>> modularity(sparse.csr_array(np.kron(np.eye(2), [[0, 1], [1, 0]])), np.array([0, 0, 1, 1]))
    0.5
    """
    members = _members(clusters, int(clusters.max()) + 1)
    between = (members @ graph @ members.T).toarray()
    ends = between.sum(axis=0) / between.sum()
    return float(np.trace(between) / between.sum() - ends @ ends)


def _members(groups: np.ndarray, k: int) -> sparse.csr_array:
    """(groups, nodes): 1 where a node is in a group."""
    return sparse.csr_array((np.ones(len(groups)), (groups, np.arange(len(groups)))), shape=(k, len(groups)))


# Clusters of vectors, with their names and central nodes.

NAMES, CENTRAL = 5, 3  # attributes and nodes listed of a cluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster: its size, what its nodes have more often than others, and the nodes nearest to its middle."""

    size: int
    attributes: list[Name]
    centre: list[Any]

    def __str__(self) -> str:
        names = ", ".join(printable(one.attribute) for one in self.attributes) or "nothing over-represented"
        return f"{self.size} nodes: {names}; around {', '.join(map(printable, self.centre))}"


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The cluster of every node, and what each cluster is; the largest is number 0."""

    ids: np.ndarray
    assignments: np.ndarray  # (nodes,) int64
    clusters: tuple[Cluster, ...]
    chosen: bool  # whether k was chosen by the rule

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
        how = "chosen" if self.chosen else "given"
        lines = [f"  {at}  {one}" for at, one in enumerate(self.clusters)]
        return "\n".join([f"{self.k} clusters ({how}) of {len(self.ids)} nodes", *lines])

    def as_dict(self) -> dict[str, Any]:
        """Describe the clusters in plain values, for JSON; `assignments` are not among them."""
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
    """Divide nodes by k-means on their vectors, each brought to length one.

    Without `k`, `neural_brane.insight.groups.choose_k` chooses a number up to 20, by 2,000 of the nodes.
    The attributes of `graph`, matched by id, name the clusters.
    """
    if len(vectors) == 0:
        raise EmbeddingError("there are no vectors to divide into clusters; give some")
    if not np.isfinite(vectors).all():
        raise EmbeddingError("some vectors hold NaN or infinity, which are in no cluster; leave them out")
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if k is not None and not (whole and 1 <= k <= len(vectors)):
        raise ParameterError(f"k={k!r} makes no sense; give a whole number from 1 to {len(vectors)}, or None")
    if seed < 0:
        raise ParameterError(f"seed={seed} makes no sense; give 0 or more")
    unit = unit_rows(vectors)
    chosen = choose_k(unit, seed, progress) if k is None else int(k)
    found = partition(unit, chosen, seed)
    names = [[] for _ in range(chosen)] if graph is None else _names_from(graph, ids, found, chosen)
    clusters = []
    for at in range(chosen):
        rows = np.flatnonzero(found == at)
        nearness = unit[rows] @ unit[rows].mean(axis=0)
        central = rows[np.argsort(-nearness, kind="stable")[:CENTRAL]]
        clusters.append(Cluster(len(rows), names[at], ids[central].tolist()))
    return Clusters(ids, found, tuple(clusters), k is None)


def _names_from(graph: AttributedGraph, ids: np.ndarray, found: np.ndarray, k: int) -> list[list[Name]]:
    """The names of clusters by the attributes of a graph, whose nodes are matched by id."""
    rows = locate(graph.ids, ids)
    known = rows >= 0
    if not known.any():
        raise GraphError(
            f"none of the {len(ids):,} vectors belongs to a node of graph '{graph.name}'; give the graph they were "
            "learned from"
        )
    named = name_groups(graph.attributes[rows[known]], found[known], k, NAMES)
    return [[one._replace(attribute=graph.attribute_names[one.attribute].item()) for one in group] for group in named]
