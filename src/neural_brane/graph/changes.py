"""Compare a graph with an earlier one: nodes that are new, and what changed around the others."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.attributed import AttributedGraph
from neural_brane.graph.ids import locate

# Nodes that a graph lacks, as another graph has them: their attributes by name, their links by id.

FROM_NOTHING, FROM_ATTRIBUTES, FROM_LINKS, FROM_BOTH = "nothing", "attributes", "links", "attributes and links"


@dataclass(frozen=True, slots=True)
class Newcomers:
    """The nodes of one graph that a known graph lacks, and what ties them to it."""

    known: AttributedGraph
    given: AttributedGraph
    places: np.ndarray  # of every node of `given` among the known ones; -1 for newcomers
    rows: np.ndarray  # the newcomers, as positions in `given`; what follows has a row for each
    attributes: sparse.csr_array  # under the known graph's columns
    links: sparse.csr_array  # to known nodes
    among: sparse.csr_array  # to other newcomers

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def made_from(self) -> np.ndarray:
        """Say in words what is known of each newcomer; a link to another newcomer counts if that one has attributes."""
        described = np.diff(self.attributes.indptr) > 0
        others = self.among @ described.astype(np.float32) - self.among.diagonal() * described  # not a node itself
        linked = (np.diff(self.links.indptr) > 0) | (others > 0)
        words = np.array([FROM_NOTHING, FROM_ATTRIBUTES, FROM_LINKS, FROM_BOTH])
        return words[described + 2 * linked]

    def together(self) -> AttributedGraph:
        """Join the newcomers to the known graph, after its own nodes."""
        known = self.known
        adjacency = sparse.block_array([[known.adjacency, self.links.T], [self.links, self.among]], format="csr")
        attributes = sparse.vstack([known.attributes, self.attributes], format="csr")
        ids = np.concatenate([known.ids.astype(str), self.given.ids[self.rows].astype(str)])
        return AttributedGraph(adjacency, attributes, ids, known.attribute_names)


def find_newcomers(known: AttributedGraph, given: AttributedGraph) -> Newcomers:
    """Tell the nodes of a graph that a known graph lacks from those that it has.

    Attributes that the known graph lacks are left out, with a warning that counts them; so are nodes that are known
    and bring other attributes. Newcomers that share neither attributes nor links with the known graph are refused,
    unless there are others.
    """
    places = locate(known.ids, given.ids)
    rows = np.flatnonzero(places < 0)
    attributes = align(given, known.attribute_names)
    differ = _differ(known.attributes, attributes, places, np.arange(attributes.shape[1]))
    differ &= np.diff(attributes.indptr) > 0  # ends of links need not bring theirs again
    if differ.any():
        warnings.warn(
            f"{np.count_nonzero(differ):,} nodes of graph '{given.name}' (such as {given.ids[differ][0].item()!r}) "
            "are known by their ids and have other attributes than those learned from; they keep the vectors learned. "
            "Give nodes that are others other ids",
            stacklevel=3,
        )
    links = given.adjacency[rows]
    at = places[links.indices]
    newcomers = Newcomers(
        known, given, places, rows, attributes[rows],
        _take(links, at >= 0, at, len(known)),
        _take(links, at < 0, np.searchsorted(rows, links.indices), len(rows)),
    )  # fmt: skip
    _tell_strangers(newcomers)
    return newcomers


def align(graph: AttributedGraph, names: np.ndarray) -> sparse.csr_array:
    """Put a graph's attributes under the columns of names; leave out those without a column, with a warning."""
    places = locate(names, graph.attribute_names)
    if np.array_equal(places, np.arange(len(names))):
        return graph.attributes
    if unknown := np.count_nonzero(places < 0):
        warnings.warn(
            f"{unknown:,} of the {len(places):,} attributes of graph '{graph.name}' were not learned from and are "
            "left out",
            stacklevel=4,
        )
    at = places[graph.attributes.indices]
    return _take(graph.attributes, at >= 0, at, len(names))


def _take(matrix: sparse.csr_array, kept: np.ndarray, columns: np.ndarray, width: int) -> sparse.csr_array:
    """Take some entries of a matrix, under other columns."""
    before = np.concatenate([[0], np.cumsum(kept)])
    taken = sparse.csr_array(
        (matrix.data[kept], columns[kept].astype(np.int32), before[matrix.indptr]), shape=(matrix.shape[0], width)
    )
    taken.sort_indices()
    return taken


def _tell_strangers(newcomers: Newcomers) -> None:
    """Warn of newcomers of which nothing is known; refuse a graph that has no others."""
    strangers = newcomers.rows[newcomers.made_from == FROM_NOTHING]
    if len(strangers) == 0:
        return
    first, name = newcomers.given.ids[strangers[0]].item(), newcomers.given.name
    if len(strangers) == len(newcomers.places):
        raise GraphError(
            f"no node of graph '{name}' (such as {first!r}) has an attribute that was learned from or a link to a node "
            "that is known; give attributes by the names that were learned from, or links to known ids"
        )
    warnings.warn(
        f"{len(strangers):,} nodes of graph '{name}' (such as {first!r}) have neither an attribute that was learned "
        "from nor a link to a known node; their vectors tell nothing",
        stacklevel=4,
    )


# What has become of a graph: its nodes matched by id, its attributes by name, and what changed around each node.


@dataclass(frozen=True)
class Changes:
    """A graph before and after nodes, links and attributes were added or removed."""

    before: AttributedGraph
    after: AttributedGraph
    nodes: np.ndarray  # of every node after, its place among those before; -1 for a new one
    attributes: np.ndarray  # the same for attributes

    @cached_property
    def new(self) -> np.ndarray:
        """Tell which nodes of the later graph are new."""
        return self.nodes < 0

    @cached_property
    def touched(self) -> np.ndarray:
        """Tell which nodes of the later graph are new, or have other attributes or links than before."""
        return (
            self.new
            | _differ(self.before.attributes, self.after.attributes, self.nodes, self.attributes)
            | _differ(self.before.adjacency, self.after.adjacency, self.nodes, self.nodes)
        )


def find_changes(before: AttributedGraph, after: AttributedGraph) -> Changes:
    """Match the nodes and attributes of two graphs; refuse two that have no node in common."""
    changes = Changes(
        before, after, locate(before.ids, after.ids), locate(before.attribute_names, after.attribute_names)
    )
    if changes.new.all():
        raise GraphError(
            f"no node of graph '{after.name}' (such as {after.ids[0].item()!r}) is among the {len(before):,} learned "
            f"from (such as {before.ids[0].item()!r}), so there is nothing to go on from; give the changed graph with "
            "the ids it had before, or learn anew with fit(graph)"
        )
    return changes


def carry(table: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Copy the rows of a table at these places; a row of zeros where there is none."""
    if len(table) == 0:
        return np.zeros((len(places), *table.shape[1:]), table.dtype)
    rows: np.ndarray = table[places]
    rows[places < 0] = 0
    return rows


def _differ(before: sparse.csr_array, after: sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Tell which later rows have other entries than their earlier row, by sums in which columns have random weights."""
    weights = np.random.default_rng(0).random(before.shape[1])
    matched = np.full(len(columns), np.inf)  # a new column differs from all
    matched[columns >= 0] = weights[columns[columns >= 0]]
    # Each row's entries times the weights of their columns, added up.
    sums_before, sums_after = before.astype(np.float64) @ weights, after.astype(np.float64) @ matched
    known = rows >= 0
    differ = np.zeros(len(rows), bool)
    differ[known] = ~np.isclose(sums_after[known], sums_before[rows[known]], rtol=1e-9, atol=0)
    return differ
