"""k-means on vectors of length one, and how many clusters there are."""

import warnings

import numpy as np
from scipy import sparse

from neural_brane.blas import one_blas_thread
from neural_brane.errors import EmbeddingError
from neural_brane.progress import Meter, Reporter

MOST = 20  # clusters that are tried
SAMPLE = 2_000  # nodes that the number is chosen by
NEAREST = 10  # in the graph of the sample
PRICE = 0.01  # modularity that one more cluster must add
STARTS = 3  # of k-means, the best of which counts


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
    members = _members(clusters)
    between = (members @ graph @ members.T).toarray()
    ends = between.sum(axis=0) / between.sum()
    return float(np.trace(between) / between.sum() - ends @ ends)


def _members(clusters: np.ndarray) -> sparse.csr_array:
    """(clusters, nodes): 1 where a node is in a cluster."""
    places = clusters, np.arange(len(clusters))
    return sparse.csr_array((np.ones(len(clusters)), places), shape=(int(clusters.max()) + 1, len(clusters)))
