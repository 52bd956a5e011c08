"""Take an inner product of two vectors apart into terms: what each attribute and neighbour of one of them adds."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, Self, cast

import numpy as np
from scipy import sparse

from neural_brane.kernels.model import MAX, MEAN, Bags, Model, Settings
from neural_brane.kernels.reference import pool
from neural_brane.linalg.eigenvectors import Hops

# The parts of an inner product: they sum to it. The first four are of the spectral part, the next two of the learned.
OWN_ATTRIBUTES = "own attributes"  # the node has them itself
OWN_LINKS = "own links"  # the neighbours that the node is linked to
THEIR_ATTRIBUTES = "neighbours' attributes"  # they come through a neighbour
THEIR_LINKS = "neighbours' links"
LEARNED_ATTRIBUTES = "learned attributes"  # rows that the learned part pools
LEARNED_NEIGHBOURS = "learned neighbours"
REST = "rest"  # due to no attribute and no neighbour: means that were subtracted, biases, rounding


class Terms(NamedTuple):
    """The terms of some attributes, or of some neighbours, in inner products with t vectors."""

    rows: np.ndarray  # (k,) distinct, increasing
    values: np.ndarray  # (k, t) float64

    @classmethod
    def sum(cls, several: Iterable[Self], targets: int) -> Self:
        """Add up the terms of several; the values of the same row are summed."""
        listed = list(several)
        every = np.concatenate([np.empty(0, np.int64), *(terms.rows for terms in listed)])
        rows, places = np.unique(every, return_inverse=True)
        values = np.zeros((len(rows), targets))
        np.add.at(values, places, np.concatenate([np.empty((0, targets)), *(terms.values for terms in listed)]))
        return cls(rows, values)


class Contributions(NamedTuple):
    """The terms of the inner products of one node's vector with t others.

    The parts sum to them. A term that comes through a neighbour is listed twice: under the attribute, and under the
    neighbour that brings it. So the attributes sum to the parts of attributes, and the neighbours to all parts but
    `own attributes`, `learned attributes` and `rest`.
    """

    attributes: Terms  # every attribute that the vector could have been made of, even if it adds nothing
    neighbours: Terms
    parts: dict[str, np.ndarray]  # (t,) by name

    @classmethod
    def sum(cls, several: Iterable[Self], targets: int) -> Self:
        """Add up the contributions of several parts of the same vector."""
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
    """Explains the vectors of a model."""

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """The contributions to the inner products of a node's vector with targets (t, dim)."""


class Surroundings:
    """The nodes within some hops of one, and averages over neighbours among them.

    Position 0 is the node itself, its neighbours come next.
    """

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
        """Â among these nodes; the rows of the outermost stay empty, because nothing uses their averages."""
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
        """The entry of Â that keeps what is at the node itself."""
        return float(self.averages[0, 0])

    @cached_property
    def steps(self) -> np.ndarray:
        """(neighbours,) the entries of Â that take from each neighbour."""
        return self.averages[[0]].toarray()[0, 1 : 1 + len(self.neighbours)]

    def reached(self, hop: int) -> np.ndarray:
        """The node's row of Âʰ."""
        row = np.zeros(len(self.nodes))
        row[0] = 1
        for _ in range(hop):
            row = self.averages.T @ row
        return row

    def through(self, values: np.ndarray, hop: int) -> np.ndarray:
        """Sum, for each neighbour, over the paths of the node's row of Âʰ values that leave the node to it.

        values (nodes, t); returns (neighbours, t). Paths that never leave the node add stayʰ of its own values.
        """
        passed = np.zeros((len(self.neighbours), values.shape[1]))
        for before in reversed(range(hop)):  # steps that a path stays at the node before it leaves
            passed += self.stay**before * self.steps[:, None] * values[1 : 1 + len(self.neighbours)]
            values = self.averages @ values
        return passed

    def _places(self, rows: np.ndarray) -> np.ndarray:
        order = np.argsort(self.nodes)
        return order[np.searchsorted(self.nodes, rows, sorter=order)]


Directions = Sequence[Sequence[np.ndarray]]  # for every hop, a table (columns, dim) for every part of X


class SpectralReasons:
    """Contributions to vectors that an SVD made: x_u = Σ over hops h, nodes k and columns a of w_h (Âʰ)_uk X_ka V_ha.

    A term belongs to its column, an attribute or a link, and to the first neighbour on its path of hops from u. A path
    that stays at u ends at u's own columns. An own link belongs to the neighbour that it leads to.

    directions: V / w_h for every hop and every part of X, (columns, dim) float32. They take one pass over the graph;
    after that a node costs what lies within the hops around it.
    """

    def __init__(self, hops: Hops, directions: Directions):
        self.hops, self.directions = hops, directions

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """The contributions to the inner products of a node's row of M V with targets (t, dim)."""
        near = Surroundings(self.hops, row)
        kinds = [name for name in ("attributes", "links") if getattr(self.hops, name) is not None] or ["identity"]
        parts = (self._part(near, place, kind, targets) for place, kind in enumerate(kinds))
        return Contributions.sum(parts, len(targets))

    def _part(self, near: Surroundings, place: int, kind: str, targets: np.ndarray) -> Contributions:
        """The terms of one part of X, whose directions stand at `place`: its columns, and the neighbours on the way."""
        columns, matrix = self._columns(near, kind)
        reached, kept = (np.zeros((len(columns), len(targets))) for _ in range(2))  # over all paths, and at the node
        passed = np.zeros((len(near.neighbours), len(targets)))
        for hop, weight in enumerate(self.hops.weights):
            if not weight:
                continue
            projected = weight**2 * (self.directions[hop][place][columns].astype(np.float64) @ targets.T)
            reached += (near.reached(hop) @ matrix)[:, None] * projected
            own = matrix[[0]].toarray()[0][:, None] * projected
            kept += (near.stay**hop if hop else 1.0) * own
            passed += near.through(matrix @ projected, hop)
        neighbours = Terms(near.neighbours, passed)
        if kind == "attributes":
            parts = {OWN_ATTRIBUTES: kept.sum(axis=0), THEIR_ATTRIBUTES: passed.sum(axis=0)}
            return Contributions(Terms(columns, reached), Terms.sum([neighbours], len(targets)), parts)
        linked = np.flatnonzero(matrix[[0]].toarray()[0])
        none = Terms(np.empty(0, np.int64), np.empty((0, len(targets))))
        parts = {OWN_LINKS: kept.sum(axis=0), THEIR_LINKS: passed.sum(axis=0)}
        links = Terms(columns[linked], kept[linked])
        return Contributions(none, Terms.sum([neighbours, links], len(targets)), parts)

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


class PooledReasons(NamedTuple):
    """Contributions to a learned part y = scale · (f − centre), f pooled from a node's attributes and its neighbours.

    With max pooling a coordinate belongs to its winner, the one row it was taken from. With sum or mean pooling all
    rows share it, each by what it adds, and share the centre equally. A coordinate for which nothing was pooled, and
    what a layer's bias adds, go to the rest.
    """

    model: Model
    bags: tuple[Bags, Bags]  # of attributes and of neighbours
    settings: Settings
    output: str  # pooled, hidden or released
    centre: np.ndarray
    scale: float

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """The contributions to the inner products of a node's learned part with targets (t, width)."""
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
        """The weight of each pooled number for the targets (t, d1 + d2), what is subtracted from it, and the rest."""
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
        """The terms of the rows of a node's bag, by the weights `asked` (t, d) of their numbers, and the rest."""
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
