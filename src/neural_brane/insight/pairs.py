"""Draw pairs of nodes with and without an edge, and compute what a graph and its vectors say about a pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import assemble
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.linalg.eigenvectors import Hops
from neural_brane.linalg.tables import BLOCK_ROWS, Tables
from neural_brane.linalg.weights import distinguishes_nodes, unit_rows, without_self_loops
from neural_brane.search.exact import cosines_of_pairs

BLOCK_PAIRS = 16_384  # pairs looked at at a time
MOST_NEIGHBOURS = 2_000_000  # neighbours looked at at a time
EIGENVECTORS = 128
SPECTRAL_DIM = 112
HOP_WEIGHTS, LINK_WEIGHT = (1.0, 1.0, 1.0), 0.3  # those of Neural-Brane's spectral part


def edge_pairs(graph: AttributedGraph) -> np.ndarray:
    """Return the edges between two nodes as rows u < v (edges, 2), sorted."""
    entries = graph.adjacency.tocoo()
    upper = entries.row < entries.col
    return np.stack([entries.row[upper], entries.col[upper]], axis=1).astype(np.int64)


def edge_keys(graph: AttributedGraph) -> np.ndarray:
    """Return one number per edge between two nodes, as `keys_of` computes it."""
    return keys_of(edge_pairs(graph), len(graph))


def keys_of(pairs: np.ndarray, nodes: int) -> np.ndarray:
    """Return one number per pair of nodes, the same for (u, v) and (v, u)."""
    ends = np.sort(pairs.astype(np.int64), axis=1)
    return ends[:, 0] * nodes + ends[:, 1]


def draw_non_edges(taken: np.ndarray, nodes: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return distinct pairs u < v (count, 2), drawn uniformly from all pairs whose keys are not in `taken`."""
    free = nodes * (nodes - 1) // 2 - len(taken)
    if free < count:
        raise GraphError(f"{count:,} pairs without an edge are needed, but there are {free:,}; hold out fewer edges")
    if free < 4 * (len(taken) + count):  # the graph is dense, so a list of all free pairs takes little memory
        low, high = np.triu_indices(nodes, 1)
        keys = np.setdiff1d(low * nodes + high, taken)
        return np.stack(np.divmod(rng.choice(keys, count, replace=False), nodes), axis=1)
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        ends = np.sort(rng.integers(nodes, size=(2 * count, 2)), axis=1)
        keys = keys_of(ends[ends[:, 0] < ends[:, 1]], nodes)
        both = np.concatenate([found, keys[~np.isin(keys, taken)]])
        # Keep the order of the draw, so that cutting at `count` favours no pair.
        _, first = np.unique(both, return_index=True)
        found = both[np.sort(first)]
    return np.stack(np.divmod(found[:count], nodes), axis=1)


def without_edges(graph: AttributedGraph, pairs: np.ndarray) -> AttributedGraph:
    """Return the graph without the edges between the given pairs of rows."""
    entries = graph.adjacency.tocoo()
    ends = np.stack([entries.row, entries.col], axis=1)
    kept = ~np.isin(keys_of(ends, len(graph)), keys_of(pairs, len(graph)))
    return graph.relinked(assemble(ends[kept], entries.data[kept], len(graph)))


def spectral_vectors(graph: AttributedGraph, seed: int, report: Callable[[], Any] | None = None) -> np.ndarray:
    """Return vectors like the spectral part that Neural-Brane has by default, (nodes, dim) float32.

    A graph whose nodes nothing distinguishes, neither links nor attributes, has vectors of zeros.
    """
    from neural_brane.methods.spectral import WholeGraph, decompose, hops_of

    if not (WholeGraph(graph).linked or distinguishes_nodes(graph.attributes)):
        return np.zeros((len(graph), 1), np.float32)
    hops = hops_of(graph, HOP_WEIGHTS, link_weight=LINK_WEIGHT)
    return decompose(hops, min(SPECTRAL_DIM, len(graph)), seed=seed, threads=None, report=report).vectors


class PairFeatures:
    """What a graph and its vectors say about pairs of its nodes.

    Only links count, not their weights; self-loops do not. Tables take memory for nodes × (2 dim + 128) numbers.
    """

    NAMES = (
        "cosine of the vectors",
        "cosine of a vector and the mean around the other node",
        "cosine of the means around both nodes",
        "shared neighbours, each divided by its degree",
        "any shared neighbour",
        "inner product over the leading eigenvectors",
        "cosine over the leading eigenvectors",
        "sum of log degrees",
        "difference of log degrees",
        "a node without neighbours",
        "two nodes without neighbours",
    )

    def __init__(
        self, vectors: np.ndarray, graph: AttributedGraph, *, seed: int, report: Callable[[], Any] | None = None
    ):
        self.links = without_self_loops(graph.adjacency)
        self.links.data = np.ones(self.links.nnz, np.float32)
        self.degrees = np.diff(self.links.indptr)
        self.vectors = unit_rows(np.asarray(vectors, np.float32))
        nearby = (
            Tables(None).matrix(self.links).scaled(rows=1 / (self.degrees + 1), diagonal=1 / (self.degrees + 1))
        )  # averages over a node and its neighbours
        self.around = unit_rows(nearby @ self.vectors)
        self.places, self.inverse = eigenvectors(self.links, seed, report)

    def __call__(self, pairs: np.ndarray) -> np.ndarray:
        """Return the features of pairs of rows (k, 2), (k, 11) float64."""
        blocks = [self._block(*pairs[at : at + BLOCK_PAIRS].T) for at in range(0, len(pairs), BLOCK_PAIRS)]
        return np.concatenate([np.empty((0, len(self.NAMES))), *blocks])

    def _block(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        shared = self._shared(one, other)
        reach = len(self.degrees) * np.einsum("ij,ij,j->i", self.places[one], self.places[other], self.inverse)
        first, second = np.log1p(self.degrees[one]), np.log1p(self.degrees[other])

        def cosine(table: np.ndarray, against: np.ndarray) -> np.ndarray:
            return np.einsum("ij,ij->i", table[one], against[other], dtype=np.float64)

        return np.stack(
            [
                cosine(self.vectors, self.vectors),
                cosine(self.around, self.vectors) + cosine(self.vectors, self.around),
                cosine(self.around, self.around),
                np.log1p(50 * shared),
                shared > 0,
                np.sign(reach) * np.log1p(np.abs(reach)),
                cosines_of_pairs(self.places[one], self.places[other]),
                first + second,
                np.abs(first - second),
                np.minimum(first, second) == 0,
                np.maximum(first, second) == 0,
            ],
            axis=1,
        )

    def _shared(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return Σ 1 / degree over the neighbours that both nodes have: of the one with fewer, ask for each."""
        swap = self.degrees[one] > self.degrees[other]
        few, many = np.where(swap, other, one), np.where(swap, one, other)
        found = np.zeros(len(one))
        for block in even_blocks(self.degrees[few]):
            counts = self.degrees[few[block]]
            pair = np.repeat(np.arange(len(counts)), counts)
            before = np.cumsum(counts) - counts
            neighbours = self.links.indices[self.links.indptr[few[block]][pair] + np.arange(len(pair)) - before[pair]]
            both = self.links[neighbours, many[block][pair]]
            found[block] = np.bincount(pair, both / self.degrees[neighbours], len(counts))
        return found


def even_blocks(sizes: np.ndarray) -> Iterator[slice]:
    """Yield slices of places whose sizes sum to MOST_NEIGHBOURS at most, but hold at least one place."""
    ends, start = np.cumsum(sizes), 0
    while start < len(sizes):
        before = ends[start] - sizes[start]
        stop = max(start + 1, int(np.searchsorted(ends, before + MOST_NEIGHBOURS, side="right")))
        yield slice(start, stop)
        start = stop


def eigenvectors(
    links: sparse.csr_array, seed: int, report: Callable[[], Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvectors of D^-½AD^-½ times their eigenvalues, and 1 / eigenvalue where it is positive, else 0.

    These are the eigenvectors of the square with the largest eigenvalues, turned so that they are those of the matrix
    itself, which tells positive from negative ones.
    """
    from neural_brane.methods.spectral import decompose

    scale = 1 / np.sqrt(np.maximum(np.diff(links.indptr), 1))
    count = min(EIGENVECTORS, links.shape[0])
    if links.nnz == 0:
        return np.zeros((links.shape[0], count), np.float32), np.zeros(count)
    hops = Hops(None, (1.0,), links, links=(scale, scale))
    found = decompose(hops, count, seed=seed, threads=None, report=report)
    rank = np.count_nonzero(found.values)
    tables = Tables(None)
    with one_blas_thread():
        basis = found.vectors[:, :rank] / np.sqrt(found.values[:rank]).astype(np.float32)
        image = tables.matrix(links).scaled(rows=scale, columns=scale) @ basis
        blocks = (slice(at, at + BLOCK_ROWS) for at in range(0, len(basis), BLOCK_ROWS))
        inner = sum(basis[rows].T.astype(np.float64) @ image[rows].astype(np.float64) for rows in blocks)
        values, axes = np.linalg.eigh((inner + inner.T) / 2)
        places = tables.rotate(basis, axes * values)
    return places, np.divide(1, values, out=np.zeros(rank), where=values > 0)
