"""Take an inner product of two vectors apart into what one of them was made of."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, Self, cast

import numpy as np
from scipy import sparse

from neural_brane.kernels.model import MAX, MEAN, Bags, Model, Settings
from neural_brane.kernels.reference import pool
from neural_brane.linalg.eigenvectors import Hops

# An inner product of two vectors, taken apart into what one of them was made of.

# The parts of an inner product: they sum to it.
OWN_ATTRIBUTES = "own attributes"  # of the spectral part, that the node has itself
OWN_LINKS = "own links"  # of the spectral part: whom the node is linked to
THEIR_ATTRIBUTES = "neighbours' attributes"  # of the spectral part, that come through a neighbour
THEIR_LINKS = "neighbours' links"
LEARNED_ATTRIBUTES = "learned attributes"  # rows that the learned part pools
LEARNED_NEIGHBOURS = "learned neighbours"
REST = "rest"  # what no attribute and no neighbour brings: means that were subtracted, biases, rounding


class Terms(NamedTuple):
    """What some attributes, or some neighbours, add to inner products with t vectors."""

    rows: np.ndarray  # (k,) distinct, increasing
    values: np.ndarray  # (k, t) float64

    @classmethod
    def sum(cls, several: Iterable[Self], targets: int) -> Self:
        """All of them together; what the same row adds is added up."""
        listed = list(several)
        every = np.concatenate([np.empty(0, np.int64), *(terms.rows for terms in listed)])
        rows, places = np.unique(every, return_inverse=True)
        values = np.zeros((len(rows), targets))
        np.add.at(values, places, np.concatenate([np.empty((0, targets)), *(terms.values for terms in listed)]))
        return cls(rows, values)


class Contributions(NamedTuple):
    """What adds up to the inner products of one node's vector with t others.

    The parts sum to them. An attribute that comes through a neighbour counts to both: to the attribute, as what is
    told, and to the neighbour, as who tells it. So the attributes sum to the parts of attributes, and the neighbours
    to all parts but `own attributes`, `learned attributes` and `rest`.
    """

    attributes: Terms  # every attribute that the vector could have been made of, even if it adds nothing
    neighbours: Terms
    parts: dict[str, np.ndarray]  # (t,) by name

    @classmethod
    def sum(cls, several: Iterable[Self], targets: int) -> Self:
        """Those of several columns of the same vector."""
        listed = list(several)
        parts: dict[str, np.ndarray] = {}
        for one in listed:
            for name, values in one.parts.items():
                parts[name] = parts.get(name, 0) + values
        return cls(
            Terms.sum((one.attributes for one in listed), targets),
            Terms.sum((one.neighbours for one in listed), targets),
            parts,
        )


class Reasons(Protocol):
    """What a model was made of, as far as it takes to explain it."""

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """What adds up to the inner products of a node's vector with targets (t, dim)."""


# The nodes within some hops of one, and averages over neighbours among them.


class Surroundings:
    """All that a node's row of M is made of. Position 0 is the node itself, its neighbours come next."""

    def __init__(self, hops: Hops, row: int):
        self.hops, reach = hops, len(hops.weights) - 1
        rings = [np.array([row])]
        for _ in range(reach if hops.adjacency is not None else 0):
            seen = np.concatenate(rings)
            rings.append(np.setdiff1d(cast(sparse.csr_array, hops.adjacency)[rings[-1]].indices, seen))
        self.nodes = np.concatenate(rings)
        self.neighbours = rings[1] if reach else np.empty(0, np.int64)
        self.inner = len(self.nodes) - (len(rings[-1]) if reach else 0)  # nodes all of whose neighbours are here

    @cached_property
    def averages(self) -> sparse.csr_array:
        """Â among these nodes; the rows of the outermost are empty, for nobody asks for their averages."""
        scale, diagonal = cast(tuple[np.ndarray, np.ndarray], self.hops.averages)
        inner = self.nodes[: self.inner]
        near = cast(sparse.csr_array, self.hops.adjacency)[inner]
        values = near.data * np.repeat(scale[inner], np.diff(near.indptr))
        indptr = np.pad(near.indptr, (0, len(self.nodes) - self.inner), mode="edge")
        size = (len(self.nodes),) * 2
        steps = sparse.csr_array((values, self._places(near.indices), indptr), shape=size)
        stays = np.pad(diagonal[inner], (0, len(self.nodes) - self.inner))
        return (steps + sparse.diags_array(stays, shape=size)).tocsr()

    @cached_property
    def stay(self) -> float:
        """What Â leaves where it was, at the node itself."""
        return float(self.averages[0, 0])

    @cached_property
    def steps(self) -> np.ndarray:
        """What Â takes from each neighbour."""
        return self.averages[[0]].toarray()[0, 1 : 1 + len(self.neighbours)]

    def reached(self, hop: int) -> np.ndarray:
        """The node's row of Âʰ."""
        row = np.zeros(len(self.nodes))
        row[0] = 1
        for _ in range(hop):
            row = self.averages.T @ row
        return row

    def through(self, values: np.ndarray, hop: int) -> np.ndarray:
        """What each neighbour passes on to the node's row of Âʰ values: of all ways, those that leave the node to it.

        values (nodes, t); returns (neighbours, t). What never leaves the node is stayʰ of its own values.
        """
        passed = np.zeros((len(self.neighbours), values.shape[1]))
        for before in reversed(range(hop)):  # steps that a way stays at the node before it leaves
            passed += self.stay**before * self.steps[:, None] * values[1 : 1 + len(self.neighbours)]
            values = self.averages @ values
        return passed

    def _places(self, rows: np.ndarray) -> np.ndarray:
        order = np.argsort(self.nodes)
        return order[np.searchsorted(self.nodes, rows, sorter=order)]


# Contributions to vectors that an SVD made: a node's vector is its row of M times the directions V.

Directions = Sequence[Sequence[np.ndarray]]  # for every hop, a table (columns, dim) for every part of X


class SpectralReasons:
    """The terms of x_u = Σ over hops h, nodes k and columns a of w_h (Âʰ)_uk X_ka V_ha.

    A term is the column's, an attribute or a link, and the neighbour's by whom it comes: the first node that the way
    of its hops enters from u. A way that stays at u tells u's own. An own link is the neighbour's whom it leads to.

    directions: V / w_h for every hop and every part of X, (columns, dim) float32. They take one pass over the graph;
    after that a node costs what lies within the hops around it.
    """

    def __init__(self, hops: Hops, directions: Directions):
        self.hops, self.directions = hops, directions

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """What adds up to the inner products of a node's row of M V with targets (t, dim)."""
        near = Surroundings(self.hops, row)
        return Contributions.sum((self._part(near, at, targets) for at in self._parts()), len(targets))

    def _parts(self) -> Iterator[tuple[int, str]]:
        """The parts of X with the place of their directions."""
        names = [name for name in ("attributes", "links") if getattr(self.hops, name) is not None]
        yield from enumerate(names or ["identity"])

    def _part(self, near: Surroundings, at: tuple[int, str], targets: np.ndarray) -> Contributions:
        """The terms of one part of X: its columns, and the neighbours by whom they come."""
        place, kind = at
        columns, matrix = self._columns(near, kind)
        told, kept = (np.zeros((len(columns), len(targets))) for _ in range(2))  # by all, and by the node itself
        passed = np.zeros((len(near.neighbours), len(targets)))
        for hop, weight in enumerate(self.hops.weights):
            if not weight:
                continue
            projected = weight**2 * (self.directions[hop][place][columns].astype(np.float64) @ targets.T)
            told += (near.reached(hop) @ matrix)[:, None] * projected
            own = matrix[[0]].toarray()[0][:, None] * projected
            kept += (near.stay**hop if hop else 1.0) * own
            passed += near.through(matrix @ projected, hop)
        neighbours = Terms(near.neighbours, passed)
        if kind == "attributes":
            parts = {OWN_ATTRIBUTES: kept.sum(axis=0), THEIR_ATTRIBUTES: passed.sum(axis=0)}
            return Contributions(Terms(columns, told), Terms.sum([neighbours], len(targets)), parts)
        linked = np.flatnonzero(matrix[[0]].toarray()[0])
        nobody = Terms(np.empty(0, np.int64), np.empty((0, len(targets))))
        parts = {OWN_LINKS: kept.sum(axis=0), THEIR_LINKS: passed.sum(axis=0)}
        links = Terms(columns[linked], kept[linked])
        return Contributions(nobody, Terms.sum([neighbours, links], len(targets)), parts)

    def _columns(self, near: Surroundings, kind: str) -> tuple[np.ndarray, sparse.csr_array]:
        """The columns of X that nodes around have, and these nodes' rows of them."""
        if kind == "identity":
            return near.nodes, sparse.eye_array(len(near.nodes), format="csr")
        if kind == "attributes":
            rows = cast(sparse.csr_array, self.hops.attributes)[near.nodes].astype(np.float64)
        else:
            scale, weights = cast(tuple[np.ndarray, np.ndarray], self.hops.links)
            rows = cast(sparse.csr_array, self.hops.adjacency)[near.nodes].astype(np.float64)
            rows.data *= np.repeat(scale[near.nodes], np.diff(rows.indptr)) * weights[rows.indices]
        columns, places = np.unique(rows.indices, return_inverse=True)
        shape = (len(near.nodes), len(columns))
        return columns, sparse.csr_array((rows.data, places, rows.indptr), shape=shape)


# Contributions to the learned part of a vector: the rows that pooling took its numbers from.


class PooledReasons(NamedTuple):
    """A learned part y = scale · (f − centre), f pooled from a node's attributes and from its neighbours.

    With max pooling a coordinate is its winner's: the one row it was taken from. With sum or mean pooling it is shared
    by all rows, each with what it adds, and the centre by all equally. A coordinate for which nothing was pooled, and
    what a layer's bias adds, is nobody's: the rest.
    """

    model: Model
    bags: tuple[Bags, Bags]  # of attributes and of neighbours
    settings: Settings
    output: str  # pooled, hidden or released
    centre: np.ndarray
    scale: float

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """What adds up to the inner products of a node's learned part with targets (t, width)."""
        asked, centre, rest = self._before_output(row, float(self.scale) * targets.astype(np.float64))
        d1 = self.settings.attribute_dim
        width = self.model.weight.shape[1]
        table, others = self.model.attribute_table[:, :d1], self.model.neighbour_table[:, : width - d1]
        attributes, left = self._terms(self.bags[0], table, row, asked[:, :d1], centre[:d1])
        neighbours, left_too = self._terms(self.bags[1], others, row, asked[:, d1:], centre[d1:])
        parts = {
            LEARNED_ATTRIBUTES: attributes.values.sum(axis=0),
            LEARNED_NEIGHBOURS: neighbours.values.sum(axis=0),
            REST: rest + left + left_too,
        }
        return Contributions(attributes, neighbours, parts)

    def _before_output(self, row: int, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What each pooled number counts for the targets (t, d1 + d2), what is subtracted from it, and the rest."""
        d1, weight = self.settings.attribute_dim, self.model.weight.astype(np.float64)
        if self.output == "pooled":
            return targets, self.centre.astype(np.float64), np.zeros(len(targets))
        if self.output == "hidden":
            active = weight @ self._pool(row) + self.model.bias > 0
            rest = targets @ (np.where(active, self.model.bias, 0) - self.centre)
            return targets[:, active] @ weight[active], np.zeros(weight.shape[1]), rest
        own = weight.shape[1] - d1  # released: a row of the node's own, which no neighbour gives, then attributes
        rest = targets[:, :own] @ (self.model.neighbour_table[row, :own] - self.centre[:own])
        cut = self._pool(row)[:d1] <= 0  # such numbers are zero in the vector, whatever was pooled
        rest -= targets[:, own:][:, cut] @ self.centre[own:][cut]
        asked = np.hstack([np.where(cut, 0, targets[:, own:]), np.zeros((len(targets), own))])
        return asked, np.append(self.centre[own:], np.zeros(own)), rest

    def _pool(self, row: int) -> np.ndarray:
        d1, width = self.settings.attribute_dim, self.model.weight.shape[1]
        tables = self.model.attribute_table[:, :d1], self.model.neighbour_table[:, : width - d1]
        node, how = np.array([row]), (self.settings.pooling, self.settings.zero_floor)
        return np.hstack(
            [pool(bags, table, node, *how)[0][0] for bags, table in zip(self.bags, tables, strict=True)]
        ).astype(np.float64)

    def _terms(
        self, bags: Bags, table: np.ndarray, row: int, asked: np.ndarray, centre: np.ndarray
    ) -> tuple[Terms, np.ndarray]:
        """What each row of a node's bag adds, asked (t, d) being what a number counts, and what nobody does."""
        rows = bags.indices[bags.indptr[row] : bags.indptr[row + 1]].astype(np.int64)
        if self.settings.pooling != MAX:
            share = 1 / len(rows) if len(rows) else 0.0
            entries = table[rows].astype(np.float64)
            if self.settings.pooling == MEAN:
                entries = entries * share
            left = np.zeros(len(asked)) if len(rows) else -asked @ centre
            return Terms(rows, (entries - share * centre) @ asked.T), left
        pooled, winner = (found[0] for found in pool(bags, table, np.array([row]), MAX, self.settings.zero_floor))
        values, won = np.zeros((len(rows), len(asked))), winner >= 0
        added = (asked * (pooled - centre)).T  # (d, t)
        np.add.at(values, np.searchsorted(rows, winner[won]), added[won])
        return Terms(rows, values), added[~won].sum(axis=0)
