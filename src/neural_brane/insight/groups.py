"""Find groups of nodes whose vectors lie close together, and name them by typical attributes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import EmbeddingError, GraphError, ParameterError, printable
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.progress import Meter, Reporter
from neural_brane.search.exact import unit_rows

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

# One rule decides which attributes are typical of a group. It names clusters and regions, and summarises selections.

SURE = 0.001  # the highest chance that groups of random nodes get any name
SHARED = 3  # most groups that one attribute names
CANDIDATES = 20  # typical attributes looked at for each name


class Name(NamedTuple):
    """An attribute that is typical of a group of nodes."""

    attribute: Any
    lift: float  # its share in the group divided by its share among all nodes
    share: float  # the share of the group's nodes with this attribute


def rank_typical(found: np.ndarray, size: int, holders: np.ndarray, nodes: int) -> np.ndarray:
    """Return the positions of the attributes that are typical of a group of `size` nodes, most typical first.

    The score of an attribute is its share in the group times the logarithm of its lift, which is this share divided by
    the share among all nodes. At least two nodes must have it. `summary` in explore/page/questions.js repeats this.

    found: (attributes,) counts in the group. holders: counts among all nodes.

    >>> rank_typical(np.array([2, 3, 1]), 3, np.array([2, 60, 1]), 60).tolist()
    [0]
    """
    lifts = found * nodes / (size * np.maximum(holders, 1))
    scores = np.where(found > 1, found / size * np.log(np.maximum(lifts, 1)), 0)
    order = np.argsort(-scores, kind="stable")
    return order[scores[order] > 0]


def name_groups(
    attributes: sparse.csr_array, names: Any, groups: np.ndarray, k: int, top: int, *, sure: bool = True
) -> list[list[Name]]:
    """Return the most typical attributes of each of k groups of nodes, at most `top` per group.

    Of attributes such as "section=web", a group gets one per column. If `sure`, an attribute names at most three groups
    and is clearly more common than by chance: random groups of these sizes would get any name with a chance of at most
    0.1 % (hypergeometric test, Bonferroni bound). Some groups then get no name.
    """
    from scipy.stats import hypergeom

    nodes, width = attributes.shape
    sizes = np.bincount(groups, minlength=k)
    holders = np.bincount(attributes.indices, minlength=width)
    has = sparse.csr_array((np.ones(attributes.nnz), attributes.indices, attributes.indptr), shape=attributes.shape)
    counts = (_members(groups, k) @ has).tocsr()
    bound = SURE / max(k * int(np.count_nonzero(holders)), 1)
    named, used = [], Counter[int]()
    for group, size in enumerate(sizes.tolist()):
        part = counts[[group]]
        best = rank_typical(part.data, size, holders[part.indices], nodes)[: CANDIDATES * top]
        if sure:
            best = best[hypergeom.sf(part.data[best] - 1, nodes, holders[part.indices[best]], size) <= bound]
        chosen: dict[str, Name] = {}  # by column
        for column, found in zip(part.indices[best].tolist(), part.data[best].tolist(), strict=True):
            name = names[column]
            own = str(name).partition("=")[0] if "=" in str(name) else f"={column}"
            if own not in chosen and (used[column] < SHARED or not sure) and len(chosen) < top:
                used[column] += 1
                lift = float(found * nodes / (size * holders[column]))
                chosen[own] = Name(name.item() if isinstance(name, np.generic) else name, lift, found / size)
        named.append(list(chosen.values()))
    return named


# Clusters come from k-means on the leading directions of vectors of length 1.

LEADING = 30  # directions in which the vectors differ most; more cost time and do not agree better with classes
ROWS, EACH = 20_000, 100  # most vectors that k-means sees, or so many per cluster; the others join the nearest centre
STARTS = 10  # starts of k-means, of which the one with the smallest inertia counts
MOST = 20  # highest number of clusters to try
SAMPLE = 2_000  # vectors used to choose a number
NEAREST = 10  # neighbours of each node in the graph of the sample
PRICE = 0.01  # modularity that one more cluster must add
QUICK = 3  # starts of k-means while a number is chosen
LARGE = 0.25  # share of the nodes above which a cluster is split, if its parts are stable
PARTS, PAIRS, SEEN, STABLE = range(2, 7), 3, 0.8, 0.9  # numbers of parts; pairs of random samples, and their agreement
FEWEST = 100  # distinct vectors of a cluster that can be split
BLOCK_ROWS = 65_536  # rows read at a time


def run_k_means(
    table: np.ndarray, k: int, seed: int, *, starts: int, advice: str, progress: Reporter | None = None
) -> KMeans:
    """Return the start of k-means with the smallest inertia; `advice`: advice if there are fewer than k vectors."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    meter, found = Meter(progress, starts, "starts of k-means"), []
    with warnings.catch_warnings(), one_blas_thread():  # with more threads the last bits would vary
        warnings.simplefilter("error", ConvergenceWarning)
        for start in range(starts):
            own_seed = int(np.random.SeedSequence((seed, start)).generate_state(1)[0])
            try:
                found.append(KMeans(k, n_init=1, random_state=own_seed).fit(table))
            except ConvergenceWarning:
                raise EmbeddingError(f"there are fewer distinct vectors than {k} clusters; {advice}") from None
            meter.advance()
    return min(found, key=lambda one: one.inertia_)


class Division(NamedTuple):
    """The cluster of every vector, (nodes,) int64, largest first; and how the number was chosen, "" if it was given."""

    assignments: np.ndarray
    rule: str


def divide(vectors: np.ndarray, k: int | None = None, *, seed: int = 0, progress: Reporter | None = None) -> Division:
    """Divide the directions of vectors (nodes, dim), which may stay in a file, into k clusters or a chosen number."""
    sample = unit_rows(vectors[draw_rows(len(vectors), max(ROWS, EACH * (k or 0)), seed)])
    with one_blas_thread():
        centred = (sample - sample.mean(axis=0)).astype(np.float64)
        directions = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, : max(LEADING, k or 0)].astype(np.float32)

    def prepare(rows: np.ndarray) -> np.ndarray:
        return unit_rows(unit_rows(rows) @ directions)

    with one_blas_thread():
        sample = prepare(sample)
    rule, chosen = "", k
    if chosen is None:
        chosen = choose_k(sample, seed, progress)
        rule = "no more were tried" if chosen == MOST else "more would hardly make neighbours agree more"
    centres = find_centres(sample, chosen, seed, STARTS, progress)
    if k is None:
        centres, notes = split_large(sample, centres, seed)
        rule = "; ".join([f"{chosen} clusters: {rule}", *notes])
    _, codes, sizes = np.unique(join_centres(vectors, centres, prepare), return_inverse=True, return_counts=True)
    return Division(np.argsort(np.argsort(-sizes, kind="stable"), kind="stable")[codes], rule)


def draw_rows(total: int, most: int, seed: int) -> np.ndarray:
    """Return the numbers of all rows, or of a random sample of them if there are more than `most`, in order."""
    if total <= most:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, most, replace=False))


def find_centres(
    table: np.ndarray, k: int, seed: int, starts: int = STARTS, progress: Reporter | None = None
) -> np.ndarray:
    """Return the centres of k clusters, (k, dim)."""
    return run_k_means(table, k, seed, starts=starts, advice="give a smaller k", progress=progress).cluster_centers_


def join_centres(
    table: np.ndarray, centres: np.ndarray, prepare: Callable[[np.ndarray], np.ndarray] = np.asarray
) -> np.ndarray:
    """Return the nearest centre of every row (rows,); prepare: a function for rows when they are read."""
    shift = np.square(centres).sum(axis=1) / 2
    with one_blas_thread():  # with more threads the last bits would vary
        blocks = (prepare(table[at : at + BLOCK_ROWS]) for at in range(0, len(table), BLOCK_ROWS))
        return np.concatenate([np.argmax(block @ centres.T - shift, axis=1) for block in blocks])


def split_large(unit: np.ndarray, centres: np.ndarray, seed: int) -> tuple[np.ndarray, list[str]]:
    """Split clusters of more than a quarter of the rows into stable parts; return all centres, and what was done."""
    codes, kept, notes = join_centres(unit, centres), [], []
    waiting = [(centre, np.flatnonzero(codes == at)) for at, centre in enumerate(centres)]
    while waiting:
        centre, rows = waiting.pop()
        share = len(rows) / len(unit)
        large = share > LARGE and len(np.unique(unit[rows], axis=0)) >= FEWEST
        parts = find_parts(unit[rows], seed) if large else None
        if parts is None:
            kept.append(centre)
            if large:
                notes.append(f"one with {share:.0%} of the nodes stays whole, as no division of it is stable")
            continue
        codes = join_centres(unit[rows], parts)
        waiting += [(part, rows[codes == at]) for at, part in enumerate(parts)]
        notes.append(f"one with {share:.0%} of the nodes was split into {len(parts)}")
    return np.stack(kept), notes


def find_parts(unit: np.ndarray, seed: int) -> np.ndarray | None:
    """Return the centres of the most stable division, or None if none is stable.

    A number of parts is stable if the clusters found in two random samples of 80 % agree: their mean adjusted Rand
    index over three pairs of samples is at least 0.9.
    """
    from sklearn.metrics import adjusted_rand_score

    rows = unit[draw_rows(len(unit), SAMPLE, seed)]
    rng = np.random.default_rng(seed)

    def divide_part(parts: int) -> np.ndarray:
        part = rows[rng.permutation(len(rows))[: round(SEEN * len(rows))]]
        return join_centres(rows, find_centres(part, parts, seed, QUICK))

    def agree(parts: int) -> float:
        return float(np.mean([adjusted_rand_score(divide_part(parts), divide_part(parts)) for _ in range(PAIRS)]))

    agreements = [agree(parts) for parts in PARTS]
    best = int(np.argmax(agreements))
    return find_centres(rows, PARTS[best], seed) if agreements[best] >= STABLE else None


def choose_k(unit: np.ndarray, seed: int, progress: Reporter | None = None) -> int:
    """Return the number of clusters with the largest modularity minus 0.01 per cluster.

    In a sample of nodes, each node is joined to its nearest nodes by cosine. k-means divides the sample into 2, 3, …
    clusters; modularity is the share of edges within clusters beyond what chance would put there.
    """
    sample = unit[draw_rows(len(unit), SAMPLE, seed)]
    distinct = len(np.unique(sample, axis=0))
    if distinct < 3:
        return distinct
    graph = join_nearest(sample)
    tried = range(2, min(MOST, distinct - 1) + 1)
    meter = Meter(progress, len(tried), "numbers of clusters tried")
    reached = np.empty(len(tried))
    for at, k in enumerate(tried):
        codes = run_k_means(sample, k, seed, starts=QUICK, advice="give a smaller k").labels_
        reached[at] = modularity(graph, codes)
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
    rule : str
        How the number of clusters was chosen, in words; "" if it was given.
    """

    ids: np.ndarray
    assignments: np.ndarray
    clusters: tuple[Cluster, ...]
    rule: str

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
        how = f" ({self.rule}; set the number with k)" if self.rule else ""
        lines = [f"  {at}  {one}" for at, one in enumerate(self.clusters)]
        return "\n".join([f"{self.k} clusters of {len(self.ids)} nodes{how}", *lines])

    def as_dict(self) -> dict[str, Any]:
        """Return the clusters as plain values, for JSON, without `ids` and `assignments`."""
        return {
            "nodes": len(self.ids),
            "k": self.k,
            "rule": self.rule,
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
    """Divide nodes into clusters by k-means on the leading directions of their vectors, scaled to length 1.

    Parameters
    ----------
    vectors, ids : ndarray, shapes (nodes, dim) and (nodes,)
        Finite vectors and the ids of their nodes.
    k : int, optional
        The number of clusters. If None, numbers up to 20 are tried on 2,000 of the nodes: each further cluster must add
        0.01 to the modularity of the graph that joins each node to its ten nearest. A cluster of more than a quarter of
        the nodes is then split, if k-means finds the same parts in random samples of it.
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
    assignments, rule = divide(vectors, None if k is None else int(k), seed=seed, progress=progress)
    found = int(assignments.max()) + 1
    names = [[] for _ in range(found)] if graph is None else _names_from(graph, ids, assignments, found)
    unit = unit_rows(vectors)
    clusters = []
    for at in range(found):
        rows = np.flatnonzero(assignments == at)
        nearness = unit[rows] @ unit[rows].mean(axis=0)
        central = rows[np.argsort(-nearness, kind="stable")[:CENTRAL]]
        clusters.append(Cluster(len(rows), names[at], ids[central].tolist()))
    return Clusters(ids, assignments, tuple(clusters), rule)


def _names_from(graph: AttributedGraph, ids: np.ndarray, assignments: np.ndarray, k: int) -> list[list[Name]]:
    """Return the names of clusters by the attributes of a graph, whose nodes are matched by id."""
    rows = locate(graph.ids, ids)
    known = rows >= 0
    if not known.any():
        raise GraphError(
            f"none of the {len(ids):,} vectors belongs to a node of graph '{graph.name}'; give the graph they were "
            "learned from"
        )
    return name_groups(graph.attributes[rows[known]], graph.attribute_names, assignments[known], k, NAMES)
