"""How many rows a rank asks for, for each triplet: counted on graphs, and foretold from their degrees.

`counted` draws triplets as training does and counts. `Shape` is a graph known by its degrees and by how often each
attribute occurs; `foretold` says from these alone what would be counted if nodes were joined at random. Of graphs that
are too large to be made it is all there is; beside the counts on smaller ones it shows how far it can be trusted.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane import AttributedGraph
from neural_brane.distributed.estimate import BatchRows, count_rows, distinct_rows, shares
from neural_brane.sampling.triplets import TripletSampler

NEGATIVE_POWER = 0.75
EXPONENT = 2.5  # of the power law: a node has d neighbours with a chance that falls as d ** -2.5
DEGREE, ATTRIBUTES_PER_NODE, NODES_PER_ATTRIBUTE = 20, 20, 10
LEVELS = 4_000  # kinds of nodes, or of attributes, by which a shape of any size is described
SHARES = 4  # of ranks, over which counts are averaged


class Shape(NamedTuple):
    """A graph by kinds of nodes and of attributes, each with how many there are of it."""

    degrees: np.ndarray  # neighbours of a node
    bags: np.ndarray  # attributes of a node
    nodes: np.ndarray  # how many such nodes
    frequencies: np.ndarray  # nodes that have an attribute
    attributes: np.ndarray  # how many such attributes

    @classmethod
    def of(cls, graph: AttributedGraph) -> "Shape":
        """The shape of a graph that is there; nodes without neighbours are never drawn."""
        degrees, bags = np.diff(graph.adjacency.indptr), np.diff(graph.attributes.indptr)
        kinds, nodes = np.unique(np.column_stack([degrees, bags]), axis=0, return_counts=True)
        frequencies, attributes = np.unique(
            np.bincount(graph.attributes.indices, minlength=graph.attributes.shape[1]), return_counts=True
        )
        return cls(*kinds.T, nodes, frequencies, attributes)

    def times(self, copies: float, degree: float = 1.0, bag: float = 1.0) -> "Shape":
        """So many such graphs, side by side, their degrees and bags multiplied by numbers."""
        scaled = self._replace(degrees=self.degrees * degree, bags=self.bags * bag, frequencies=self.frequencies * bag)
        return scaled._replace(nodes=self.nodes * copies, attributes=self.attributes * copies)

    def chances(self) -> np.ndarray:
        """How often a node of each kind is u, i and j of a triplet, on average: (3, kinds)."""
        linked = self.degrees > 0
        weights = np.where(linked, 1.0, 0.0), self.degrees, np.where(linked, self.degrees**NEGATIVE_POWER, 0.0)
        return np.stack([weight / (weight * self.nodes).sum() for weight in weights])


def foretold(shape: Shape, triplets: int) -> BatchRows:
    """What so many triplets name on average, if edges and attributes were dealt out at random by these numbers.

    A node is drawn at least once with chance 1 − exp(−draws), and its bag counts once. The entries of all bags then
    fall on rows in proportion to how often these occur, and a row counts once.
    """
    drawn = shape.nodes * -np.expm1(-triplets * shape.chances().sum(axis=0))
    entries = (drawn * shape.bags).sum(), (drawn * shape.degrees).sum()
    rows = named(shape.frequencies, shape.attributes, entries[0]), named(shape.degrees, shape.nodes, entries[1])
    return BatchRows(triplets, float(drawn.sum()), *map(float, entries), *rows)


def named(occurrences: np.ndarray, items: np.ndarray, entries: float) -> float:
    """How many of some items so many entries name, where each item occurs in proportion to a number."""
    total = (occurrences * items).sum()
    return float((items * -np.expm1(-entries * occurrences / total)).sum()) if total else 0.0


def unshared(shape: Shape) -> tuple[float, float]:
    """The rows of attributes and of neighbours for each triplet if no row were shared: the mean bags of u, i and j."""
    drawn = (shape.chances() * shape.nodes).sum(axis=0)
    return float((drawn * shape.bags).sum()), float((drawn * shape.degrees).sum())


def counted(graph: AttributedGraph, sampler: TripletSampler, triplets: int) -> BatchRows:
    """The mean over the shares of some ranks, of so many triplets each, as training draws them."""
    batch = sampler.draw(0, SHARES * triplets)
    found = [count_rows(graph.adjacency, graph.attributes, share) for share in shares(batch, SHARES)]
    return BatchRows(triplets, *np.mean(found, axis=0).tolist()[1:])


def asked(matrix: sparse.csr_array, batch: np.ndarray, ranks: int) -> np.ndarray:
    """How many rows of a table each rank asks of each owner, (ranks, ranks), in one batch.

    The table has a row for every column of the matrix; a rank owns ⌈rows / ranks⌉ of them that follow each other.
    """
    block = -(-matrix.shape[1] // ranks)
    rows = [distinct_rows(matrix, np.unique(share)) for share in shares(batch, ranks)]
    return np.stack([np.bincount(of_one // block, minlength=ranks) for of_one in rows])


def even(nodes: float) -> Shape:
    """Every node has 20 neighbours and 20 attributes, and every attribute 200 nodes."""
    attributes = nodes / NODES_PER_ATTRIBUTE
    one = np.ones(1)
    return Shape(
        DEGREE * one, ATTRIBUTES_PER_NODE * one, nodes * one, ATTRIBUTES_PER_NODE * nodes / attributes * one,
        attributes * one,
    )  # fmt: skip


def power_law(nodes: float) -> Shape:
    """Degrees by a power law with mean 20, up to nodes ** (1 / 1.5); attributes by Zipf's law."""
    degrees = _levels(_power_law_quantile, nodes)
    degrees = degrees._replace(values=degrees.values * DEGREE * nodes / (degrees.values * degrees.counts).sum())
    many = nodes / NODES_PER_ATTRIBUTE
    ranks = _bounds(many)
    counts = np.diff(ranks)
    occurrences = np.diff(np.log(ranks)) / counts  # of attribute number k in proportion to 1 / k
    frequencies = occurrences * ATTRIBUTES_PER_NODE * nodes / (occurrences * counts).sum()
    bags = np.full(len(degrees.values), float(ATTRIBUTES_PER_NODE))
    return Shape(degrees.values, bags, degrees.counts, frequencies, counts)


class _Levels(NamedTuple):
    values: np.ndarray
    counts: np.ndarray


def _bounds(many: float) -> np.ndarray:
    """From 1 to so many items, the first ones alone, later ones in ever larger groups."""
    return np.unique(np.concatenate([np.arange(1, 101), np.geomspace(100, many + 1, LEVELS)]))


def _levels(quantile, many: float) -> _Levels:
    """Values of items that are sorted by size, the largest first, in groups."""
    bounds = _bounds(many)
    middle = np.sqrt(bounds[:-1] * bounds[1:]) - 0.5  # items are numbered from 1
    return _Levels(quantile(middle / many), np.diff(bounds))


def _power_law_quantile(share: np.ndarray) -> np.ndarray:
    """What is exceeded by this share of the nodes, but for a factor."""
    return share ** (-1 / (EXPONENT - 1))


def power_law_graph(nodes: int, seed: int = 0) -> AttributedGraph:
    """A graph of that shape: ends of edges are joined at random; pairs that are drawn twice count once."""
    random = np.random.default_rng(seed)
    wanted = _power_law_quantile((np.arange(nodes) + 0.5) / nodes)
    wanted *= DEGREE * nodes / wanted.sum()
    degrees = np.floor(wanted + random.random(nodes)).astype(np.int64)
    ends = np.repeat(random.permutation(nodes).astype(np.int32), degrees)  # so that numbers say nothing of degrees
    random.shuffle(ends)
    left, right = ends[: len(ends) // 2], ends[len(ends) // 2 : len(ends) // 2 * 2]
    apart = left != right
    left, right = left[apart], right[apart]
    ones = np.ones(2 * len(left), np.float32)
    links = (ones, (np.concatenate([left, right]), np.concatenate([right, left])))
    adjacency = _of_ones(sparse.coo_array(links, shape=(nodes, nodes)).tocsr())
    return AttributedGraph(adjacency, _zipf(random, nodes), np.arange(nodes), np.arange(nodes // NODES_PER_ATTRIBUTE))


def _zipf(random: np.random.Generator, nodes: int) -> sparse.csr_array:
    """Twenty draws for each node by Zipf's law; what is drawn twice counts once."""
    many = nodes // NODES_PER_ATTRIBUTE
    drawn = ((many + 1.0) ** random.random(nodes * ATTRIBUTES_PER_NODE)).astype(np.int32) - 1
    places = random.permutation(many).astype(np.int32)[np.minimum(drawn, many - 1)]
    starts = np.arange(0, len(places) + 1, ATTRIBUTES_PER_NODE)
    return _of_ones(sparse.csr_array((np.ones(len(places), np.float32), places, starts), shape=(nodes, many)))


def _of_ones(matrix: sparse.csr_array) -> sparse.csr_array:
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
