"""Compare a graph with an earlier one: find new nodes, and nodes whose attributes or links changed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.attributed import AttributedGraph
from neural_brane.graph.ids import locate

FROM_NOTHING, FROM_ATTRIBUTES, FROM_LINKS, FROM_BOTH = "nothing", "attributes", "links", "attributes and links"


@dataclass(frozen=True, slots=True)
class Newcomers:
    """Newcomers, which are the nodes of a given graph that are not in a known graph, and their attributes and links."""

    known: AttributedGraph
    given: AttributedGraph
    places: np.ndarray  # (nodes of `given`,) positions in the known graph; -1 for newcomers
    rows: np.ndarray  # (newcomers,) their positions in `given`
    attributes: sparse.csr_array  # (newcomers, attributes of the known graph)
    links: sparse.csr_array  # (newcomers, nodes of the known graph)
    among: sparse.csr_array  # (newcomers, newcomers), their links to each other

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def made_from(self) -> np.ndarray:
        """The source of each newcomer's vector, in words; a link to another newcomer counts if that has attributes."""
        described = np.diff(self.attributes.indptr) > 0
        others = self.among @ described.astype(np.float32) - self.among.diagonal() * described  # without self-loops
        linked = (np.diff(self.links.indptr) > 0) | (others > 0)
        words = np.array([FROM_NOTHING, FROM_ATTRIBUTES, FROM_LINKS, FROM_BOTH])
        return words[described + 2 * linked]

    def together(self) -> AttributedGraph:
        """Return a graph of the known nodes, followed by the newcomers."""
        known = self.known
        adjacency = sparse.block_array([[known.adjacency, self.links.T], [self.links, self.among]], format="csr")
        attributes = sparse.vstack([known.attributes, self.attributes], format="csr")
        ids = np.concatenate([known.ids.astype(str), self.given.ids[self.rows].astype(str)])
        return AttributedGraph(adjacency, attributes, ids, known.attribute_names)


def find_newcomers(known: AttributedGraph, given: AttributedGraph) -> Newcomers:
    """Return a graph's nodes that a known graph lacks; warn of unknown or changed attributes, refuse empty nodes."""
    places = locate(known.ids, given.ids)
    rows = np.flatnonzero(places < 0)
    attributes = align(given, known.attribute_names)
    differ = _differ(known.attributes, attributes, places, np.arange(attributes.shape[1]))
    differ &= np.diff(attributes.indptr) > 0  # a known node may be given only as the end of an edge
    if differ.any():
        warnings.warn(
            f"{np.count_nonzero(differ):,} nodes of graph '{given.name}' (such as {given.ids[differ][0].item()!r}) "
            "have the id of a known node but other attributes; they keep the vector of the known node. If they are "
            "other nodes, give them other ids",
            stacklevel=3,
        )
    links = given.adjacency[rows]
    at = places[links.indices]
    newcomers = Newcomers(
        known, given, places, rows, attributes[rows],
        _take(links, at >= 0, at, len(known)),
        _take(links, at < 0, np.searchsorted(rows, links.indices), len(rows)),
    )  # fmt: skip
    _check_strangers(newcomers)
    return newcomers


def align(graph: AttributedGraph, names: np.ndarray) -> sparse.csr_array:
    """Return a graph's attributes (nodes, names) with the given names as columns; warn if it has others."""
    places = locate(names, graph.attribute_names)
    if np.array_equal(places, np.arange(len(names))):
        return graph.attributes
    if unknown := np.count_nonzero(places < 0):
        found = f"{unknown:,} of the {len(places):,} attributes of graph '{graph.name}' are left out:"
        warnings.warn(f"{found} the method was not fitted to them", stacklevel=4)
    at = places[graph.attributes.indices]
    return _take(graph.attributes, at >= 0, at, len(names))


def _take(matrix: sparse.csr_array, kept: np.ndarray, columns: np.ndarray, width: int) -> sparse.csr_array:
    """Return a matrix of `width` columns with the entries that `kept` marks, moved to the given columns."""
    before = np.concatenate([[0], np.cumsum(kept)])
    taken = sparse.csr_array(
        (matrix.data[kept], columns[kept].astype(np.int32), before[matrix.indptr]), shape=(matrix.shape[0], width)
    )
    taken.sort_indices()
    return taken


def _check_strangers(newcomers: Newcomers) -> None:
    """Warn of newcomers without known attributes and links; raise an error if all nodes are such newcomers."""
    strangers = newcomers.rows[newcomers.made_from == FROM_NOTHING]
    if len(strangers) == 0:
        return
    first, name = newcomers.given.ids[strangers[0]].item(), newcomers.given.name
    if len(strangers) == len(newcomers.places):
        raise GraphError(
            f"no node of graph '{name}' (such as {first!r}) has a known attribute or a link to a known node; give "
            "attributes with the names, or links to the ids, of the graph that the method was fitted to"
        )
    warnings.warn(
        f"{len(strangers):,} nodes of graph '{name}' (such as {first!r}) have neither a known attribute nor a link to "
        "a known node; their vectors mean nothing",
        stacklevel=4,
    )


@dataclass(frozen=True)
class Changes:
    """A graph before and after nodes, links and attributes were added or removed."""

    before: AttributedGraph
    after: AttributedGraph
    nodes: np.ndarray  # (nodes after,) their positions in the earlier graph; -1 for new nodes
    attributes: np.ndarray  # (attributes after,) their positions in the earlier graph; -1 for new attributes

    @cached_property
    def new(self) -> np.ndarray:
        """A mask of the nodes of the later graph that are new."""
        return self.nodes < 0

    @cached_property
    def touched(self) -> np.ndarray:
        """A mask of the nodes of the later graph that are new or have other attributes or links than before."""
        return (
            self.new
            | _differ(self.before.attributes, self.after.attributes, self.nodes, self.attributes)
            | _differ(self.before.adjacency, self.after.adjacency, self.nodes, self.nodes)
        )


def find_changes(before: AttributedGraph, after: AttributedGraph) -> Changes:
    """Return the changes between two graphs; raise an error if they have no node in common."""
    attributes = locate(before.attribute_names, after.attribute_names)
    changes = Changes(before, after, locate(before.ids, after.ids), attributes)
    if changes.new.all():
        found = f"no node of graph '{after.name}' (such as {after.ids[0].item()!r}) is in the earlier graph of"
        earlier = f"{len(before):,} nodes (such as {before.ids[0].item()!r}), so its training cannot be continued;"
        raise GraphError(f"{found} {earlier} give the changed graph the same ids, or start again with fit(graph)")
    return changes


def carry(table: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the rows of a table at the given positions, and a row of zeros for each position -1."""
    if len(table) == 0:
        return np.zeros((len(places), *table.shape[1:]), table.dtype)
    rows: np.ndarray = table[places]
    rows[places < 0] = 0
    return rows


def _differ(before: sparse.csr_array, after: sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return a mask of the later rows that have other entries than before: their sums with random weights differ."""
    weights = np.random.default_rng(0).random(before.shape[1])
    matched = np.full(len(columns), np.inf)  # a row with an entry in a new column differs from its earlier row
    matched[columns >= 0] = weights[columns[columns >= 0]]
    sums_before, sums_after = before.astype(np.float64) @ weights, after.astype(np.float64) @ matched
    known = rows >= 0
    differ = np.zeros(len(rows), bool)
    differ[known] = ~np.isclose(sums_after[known], sums_before[rows[known]], rtol=1e-9, atol=0)
    return differ
