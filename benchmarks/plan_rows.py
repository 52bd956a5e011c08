"""Compute how many rows a rank requests per triplet: counted on graphs, and expected from their degrees.

`counted` draws triplets as training does and counts the rows. A `Shape` describes a graph only by its degrees and by
how often each attribute occurs; `expected` computes from it the rows of a graph whose nodes are joined at random. For
graphs that are too large to make, only the expected rows are known. On smaller graphs, both are compared.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane import AttributedGraph
from neural_brane.distributed.estimate import BatchRows, count_rows, distinct_rows
from neural_brane.sampling.triplets import TripletSampler

NEGATIVE_POWER = 0.75
EXPONENT = 2.5  # the probability of d neighbours is proportional to d ** -EXPONENT
DEGREE, ATTRIBUTES_PER_NODE, NODES_PER_ATTRIBUTE = 20, 20, 10
LEVELS = 4_000  # kinds of nodes, or of attributes, in a shape of any size
SHARES = 4  # counts are averaged over the batches of so many ranks


class Shape(NamedTuple):
    """A graph described by kinds of nodes and of attributes, and the number of each kind."""

    degrees: np.ndarray  # neighbours of a node of each kind
    bags: np.ndarray  # attributes of a node of each kind
    nodes: np.ndarray  # number of nodes of each kind
    frequencies: np.ndarray  # nodes that have an attribute of each kind
    attributes: np.ndarray  # number of attributes of each kind

    @classmethod
    def of(cls, graph: AttributedGraph) -> "Shape":
        """Return the shape of a graph."""
        degrees, bags = np.diff(graph.adjacency.indptr), np.diff(graph.attributes.indptr)
        kinds, nodes = np.unique(np.column_stack([degrees, bags]), axis=0, return_counts=True)
        frequencies, attributes = np.unique(
            np.bincount(graph.attributes.indices, minlength=graph.attributes.shape[1]), return_counts=True
        )
        return cls(*kinds.T, nodes, frequencies, attributes)

    def times(self, copies: float, degree: float = 1.0, bag: float = 1.0) -> "Shape":
        """Return the shape of `copies` such graphs, with degrees and bags multiplied by factors."""
        scaled = self._replace(degrees=self.degrees * degree, bags=self.bags * bag, frequencies=self.frequencies * bag)
        return scaled._replace(nodes=self.nodes * copies, attributes=self.attributes * copies)

    def chances(self) -> np.ndarray:
        """Return the mean number of times that a node of each kind is u, i and j of a triplet, (3, kinds)."""
        linked = self.degrees > 0
        weights = np.where(linked, 1.0, 0.0), self.degrees, np.where(linked, self.degrees**NEGATIVE_POWER, 0.0)
        return np.stack([weight / (weight * self.nodes).sum() for weight in weights])


def expected(shape: Shape, triplets: int) -> BatchRows:
    """Return the mean rows of so many triplets if edges and attributes were assigned at random.

    A node is drawn at least once with probability 1 − exp(−draws), and its bag counts once. The entries of all bags
    fall on rows in proportion to how often these occur, and each row counts once.
    """
    drawn = shape.nodes * -np.expm1(-triplets * shape.chances().sum(axis=0))
    entries = (drawn * shape.bags).sum(), (drawn * shape.degrees).sum()
    rows = distinct(shape.frequencies, shape.attributes, entries[0]), distinct(shape.degrees, shape.nodes, entries[1])
    return BatchRows(triplets, float(drawn.sum()), *map(float, entries), *rows)


def distinct(occurrences: np.ndarray, items: np.ndarray, entries: float) -> float:
    """Return the expected number of distinct items among entries that are drawn in proportion to `occurrences`."""
    total = (occurrences * items).sum()
    return float((items * -np.expm1(-entries * occurrences / total)).sum()) if total else 0.0


def unshared(shape: Shape) -> tuple[float, float]:
    """Return the rows of attributes and of neighbours per triplet without sharing: the mean bags of u, i and j."""
    drawn = (shape.chances() * shape.nodes).sum(axis=0)
    return float((drawn * shape.bags).sum()), float((drawn * shape.degrees).sum())


def shares(triplets: np.ndarray, ranks: int) -> list[np.ndarray]:
    """Divide a batch of B triplets among W ranks: rank r takes numbers r·B/W up to (r + 1)·B/W."""
    return np.split(triplets, np.arange(1, ranks) * len(triplets) // ranks)


def counted(graph: AttributedGraph, sampler: TripletSampler, triplets: int) -> BatchRows:
    """Return the mean rows over the shares of SHARES ranks, of `triplets` triplets each, as training draws them."""
    batch = sampler.draw(0, SHARES * triplets)
    found = [count_rows(graph.adjacency, graph.attributes, share) for share in shares(batch, SHARES)]
    return BatchRows(triplets, *np.mean(found, axis=0).tolist()[1:])


def requested(matrix: sparse.csr_array, batch: np.ndarray, ranks: int) -> np.ndarray:
    """Return how many rows of a table each rank requests from each owner in one batch, (ranks, ranks).

    The table has one row per column of the matrix; a rank owns ⌈rows / ranks⌉ consecutive rows.
    """
    block = -(-matrix.shape[1] // ranks)
    rows = [distinct_rows(matrix, np.unique(share)) for share in shares(batch, ranks)]
    return np.stack([np.bincount(own // block, minlength=ranks) for own in rows])


def even(nodes: float) -> Shape:
    """Return a shape in which every node has 20 neighbours and 20 attributes, and every attribute 200 nodes."""
    attributes = nodes / NODES_PER_ATTRIBUTE
    one = np.ones(1)
    return Shape(
        DEGREE * one, ATTRIBUTES_PER_NODE * one, nodes * one, ATTRIBUTES_PER_NODE * nodes / attributes * one,
        attributes * one,
    )  # fmt: skip


def power_law(nodes: float) -> Shape:
    """Return a shape with degrees by a power law with mean 20, up to nodes ** (1 / 1.5); attributes by Zipf's law."""
    degrees = _levels(_power_law_quantile, nodes)
    degrees = degrees._replace(values=degrees.values * DEGREE * nodes / (degrees.values * degrees.counts).sum())
    total = nodes / NODES_PER_ATTRIBUTE
    ranks = _bounds(total)
    counts = np.diff(ranks)
    occurrences = np.diff(np.log(ranks)) / counts  # attribute k occurs in proportion to 1 / k
    frequencies = occurrences * ATTRIBUTES_PER_NODE * nodes / (occurrences * counts).sum()
    bags = np.full(len(degrees.values), float(ATTRIBUTES_PER_NODE))
    return Shape(degrees.values, bags, degrees.counts, frequencies, counts)


class _Levels(NamedTuple):
    values: np.ndarray
    counts: np.ndarray


def _bounds(total: float) -> np.ndarray:
    """Return the bounds of groups of the items from 1 to `total`: single items first, then ever larger groups."""
    return np.unique(np.concatenate([np.arange(1, 101), np.geomspace(100, total + 1, LEVELS)]))


def _levels(quantile, total: float) -> _Levels:
    """Return the values and sizes of groups of items that are sorted by value, the largest first."""
    bounds = _bounds(total)
    middle = np.sqrt(bounds[:-1] * bounds[1:]) - 0.5  # items are numbered from 1
    return _Levels(quantile(middle / total), np.diff(bounds))


def _power_law_quantile(share: np.ndarray) -> np.ndarray:
    """Return the degree that this share of the nodes exceeds, up to a factor."""
    return share ** (-1 / (EXPONENT - 1))


def power_law_graph(nodes: int, seed: int = 0) -> AttributedGraph:
    """Return a graph of shape `power_law`: ends of edges are joined at random; repeated pairs count once."""
    random = np.random.default_rng(seed)
    mean_degrees = _power_law_quantile((np.arange(nodes) + 0.5) / nodes)
    mean_degrees *= DEGREE * nodes / mean_degrees.sum()
    degrees = np.floor(mean_degrees + random.random(nodes)).astype(np.int64)
    ends = np.repeat(random.permutation(nodes).astype(np.int32), degrees)  # node numbers do not depend on degrees
    random.shuffle(ends)
    left, right = ends[: len(ends) // 2], ends[len(ends) // 2 : len(ends) // 2 * 2]
    no_loop = left != right
    left, right = left[no_loop], right[no_loop]
    ones = np.ones(2 * len(left), np.float32)
    links = (ones, (np.concatenate([left, right]), np.concatenate([right, left])))
    adjacency = _of_ones(sparse.coo_array(links, shape=(nodes, nodes)).tocsr())
    return AttributedGraph(adjacency, _zipf(random, nodes), np.arange(nodes), np.arange(nodes // NODES_PER_ATTRIBUTE))


def _zipf(random: np.random.Generator, nodes: int) -> sparse.csr_array:
    """Return the attributes of the nodes: 20 draws per node by Zipf's law; repeated draws count once."""
    total = nodes // NODES_PER_ATTRIBUTE
    drawn = ((total + 1.0) ** random.random(nodes * ATTRIBUTES_PER_NODE)).astype(np.int32) - 1
    places = random.permutation(total).astype(np.int32)[np.minimum(drawn, total - 1)]
    starts = np.arange(0, len(places) + 1, ATTRIBUTES_PER_NODE)
    return _of_ones(sparse.csr_array((np.ones(len(places), np.float32), places, starts), shape=(nodes, total)))


def _of_ones(matrix: sparse.csr_array) -> sparse.csr_array:
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
