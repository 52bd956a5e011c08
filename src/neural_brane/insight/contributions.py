"""Split an inner product of two vectors into the terms that each attribute and neighbour of one node adds."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol, Self, cast

import numpy as np
from scipy import sparse

from neural_brane.kernels.model import MAX, MEAN, Bags, Model, Settings
from neural_brane.kernels.reference import pool
from neural_brane.linalg.eigenvectors import Hops

# These parts of an inner product sum to it. The first four belong to the spectral part, the next two to the learned.
OWN_ATTRIBUTES = "own attributes"  # attributes of the node itself
OWN_LINKS = "own links"  # edges of the node itself
THEIR_ATTRIBUTES = "neighbours' attributes"  # attributes that come through a neighbour
THEIR_LINKS = "neighbours' links"
LEARNED_ATTRIBUTES = "learned attributes"  # table rows pooled by the learned part
LEARNED_NEIGHBOURS = "learned neighbours"
REST = "rest"  # caused by no attribute or neighbour: subtracted means, biases, rounding


class Terms(NamedTuple):
    """The numbers that k attributes, or k neighbours, add to inner products with t target vectors.

    rows: (k,) their numbers, distinct and increasing. values: (k, t) float64, what each adds to each inner product.
    """

    rows: np.ndarray
    values: np.ndarray

    @classmethod
    def sum(cls, several: Iterable[Self], targets: int) -> Self:
        """Return the terms of all rows in `several`, for `targets` target vectors; values of the same row are added."""
        listed = list(several)
        every = np.concatenate([np.empty(0, np.int64), *(terms.rows for terms in listed)])
        rows, places = np.unique(every, return_inverse=True)
        values = np.zeros((len(rows), targets))
        np.add.at(values, places, np.concatenate([np.empty((0, targets)), *(terms.values for terms in listed)]))
        return cls(rows, values)


class Contributions(NamedTuple):
    """The terms of the inner products of one node's vector with t target vectors.

    A term that comes through a neighbour is listed twice: under its attribute and under the neighbour. So the terms of
    the attributes sum to the parts of attributes, and the terms of the neighbours sum to all parts except "own
    attributes", "learned attributes" and "rest".

    Attributes
    ----------
    attributes, neighbours : Terms
        The terms of all that can shape the vector, even if they add nothing.
    parts : dict of str to ndarray, shape (t,)
        What each part adds; the parts sum to the inner products.
    """

    attributes: Terms
    neighbours: Terms
    parts: dict[str, np.ndarray]

    @classmethod
    def sum(cls, several: Iterable[Self], targets: int) -> Self:
        """Return the sum of the contributions of several parts of one vector, for `targets` target vectors."""
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
    """An explainer of the vectors of a model."""

    def contributions(self, row: int, targets: np.ndarray) -> Contributions:
        """Return the contributions to the inner products of the vector of node `row` with targets (t, dim)."""


class Surroundings:
    """The nodes within a few hops of one node (itself first, then its neighbours), and averages over neighbours."""

    def __init__(self, hops: Hops, row: int):
        self.hops, reach = hops, len(hops.weights) - 1
        rings = [np.array([row])]
        for _ in range(reach if hops.adjacency is not None else 0):
            seen = np.concatenate(rings)
            rings.append(np.setdiff1d(cast(sparse.csr_array, hops.adjacency)[rings[-1]].indices, seen))
        self.nodes = np.concatenate(rings)
        self.neighbours = rings[1] if reach else np.empty(0, np.int64)
        self.inner = len(self.nodes) - (len(rings[-1]) if reach else 0)  # number of nodes with all neighbours here

    @cached_property
    def averages(self) -> sparse.csr_array:
        """The matrix Â among these nodes; the outermost rows stay empty, because nothing uses their averages."""
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
        """The diagonal entry of Â at the node itself."""
        return float(self.averages[0, 0])

    @cached_property
    def steps(self) -> np.ndarray:
        """The entries of Â in the node's row at its neighbours, (neighbours,)."""
        return self.averages[[0]].toarray()[0, 1 : 1 + len(self.neighbours)]

    def reached(self, hop: int) -> np.ndarray:
        """Return the node's row of Âʰ, (nodes,)."""
        row = np.zeros(len(self.nodes))
        row[0] = 1
        for _ in range(hop):
            row = self.averages.T @ row
        return row

    def through(self, values: np.ndarray, hop: int) -> np.ndarray:
        """Return, for each neighbour, the part of the node's row of Âʰ values from paths that first leave to it.

        values: (nodes, t). Returns (neighbours, t). Paths that never leave the node add stayʰ times its own values.
        """
        passed = np.zeros((len(self.neighbours), values.shape[1]))
        for before in reversed(range(hop)):  # steps at the node before a path leaves it
            passed += self.stay**before * self.steps[:, None] * values[1 : 1 + len(self.neighbours)]
            values = self.averages @ values
        return passed

    def _places(self, rows: np.ndarray) -> np.ndarray:
        order = np.argsort(self.nodes)
        return order[np.searchsorted(self.nodes, rows, sorter=order)]


Directions = Sequence[Sequence[np.ndarray]]  # one table (columns, dim) per hop and part of X


class SpectralReasons:
    """Contributions to the vectors of an SVD: x_u = Σ over hops h, nodes k and columns a of w_h (Âʰ)_uk X_ka V_ha.

    A term counts for its column, an attribute or a link, and for the first neighbour on its path from u. If the path
    never leaves u, only the column counts. A link of u itself counts for the neighbour at its other end.

    directions: V / w_h for every hop and every part of X, (columns, dim) float32. Computing them takes one pass over
    the graph; explaining a node then reads only the nodes within a few hops. mean: (dim,), subtracted from each vector.
    """

    def __init__(self, hops: Hops, directions: Directions, mean: np.ndarray):
        self.hops, self.directions, self.mean = hops, directions, mean

    def contributions(self, row: int, targets: np.ndarray) -> Contributions:
        """Return the contributions to the inner products of a node's row of M V with targets (t, dim)."""
        near = Surroundings(self.hops, row)
        kinds = [name for name in ("attributes", "links") if getattr(self.hops, name) is not None] or ["identity"]
        parts = (self._part(near, place, kind, targets) for place, kind in enumerate(kinds))
        found = Contributions.sum(parts, len(targets))
        return found._replace(parts=found.parts | {REST: -(targets @ self.mean)}) if self.hops.centred else found

    def _part(self, near: Surroundings, place: int, kind: str, targets: np.ndarray) -> Contributions:
        """Return the contributions of the part of X at number `place` in the directions."""
        columns, matrix = self._columns(near, kind)
        reached, kept = (np.zeros((len(columns), len(targets))) for _ in range(2))  # by all paths, and at the node
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
        """Return the columns of X that are not zero for the nodes nearby, and X at these nodes and columns."""
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
    """Contributions to a learned part y = f − centre; f pools a node's attributes and its neighbours.

    With max pooling, each coordinate counts for its winner, the row it was taken from. With sum or mean pooling, each
    row counts with what it adds, and all rows share the centre equally. Coordinates for which nothing was pooled, and a
    layer's bias, count as the rest.
    """

    model: Model
    bags: tuple[Bags, Bags]  # for attributes and for neighbours
    settings: Settings
    output: str  # pooled, hidden or released
    centre: np.ndarray

    def contributions(self, row: int, targets: np.ndarray) -> Contributions:
        """Return the contributions to the inner products of a node's learned part with targets (t, width)."""
        weights, centre, rest = self._before_output(row, targets.astype(np.float64))
        d1 = self.settings.attribute_dim
        width = self.model.weight.shape[1]
        table, others = self.model.attribute_table[:, :d1], self.model.neighbour_table[:, : width - d1]
        attributes, attribute_rest = self._terms(self.bags[0], table, row, weights[:, :d1], centre[:d1])
        neighbours, neighbour_rest = self._terms(self.bags[1], others, row, weights[:, d1:], centre[d1:])
        parts = {
            LEARNED_ATTRIBUTES: attributes.values.sum(axis=0),
            LEARNED_NEIGHBOURS: neighbours.values.sum(axis=0),
            REST: rest + attribute_rest + neighbour_rest,
        }
        return Contributions(attributes, neighbours, parts)

    def _before_output(self, row: int, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the weight of each pooled number (t, d1 + d2), the number subtracted from it, and the rest (t,)."""
        d1, weight = self.settings.attribute_dim, self.model.weight.astype(np.float64)
        if self.output == "pooled":
            return targets, self.centre.astype(np.float64), np.zeros(len(targets))
        if self.output == "hidden":
            active = weight @ self._pool(row) + self.model.bias > 0
            rest = targets @ (np.where(active, self.model.bias, 0) - self.centre)
            return targets[:, active] @ weight[active], np.zeros(weight.shape[1]), rest
        own = weight.shape[1] - d1  # output="released" joins the node's own table row and its pooled attributes
        rest = targets[:, :own] @ (self.model.neighbour_table[row, :own] - self.centre[:own])
        cut = self._pool(row)[:d1] <= 0  # the vector has zeros here
        rest -= targets[:, own:][:, cut] @ self.centre[own:][cut]
        weights = np.hstack([np.where(cut, 0, targets[:, own:]), np.zeros((len(targets), own))])
        return weights, np.append(self.centre[own:], np.zeros(own)), rest

    def _pool(self, row: int) -> np.ndarray:
        d1, width = self.settings.attribute_dim, self.model.weight.shape[1]
        tables = self.model.attribute_table[:, :d1], self.model.neighbour_table[:, : width - d1]
        node, how = np.array([row]), (self.settings.pooling, self.settings.zero_floor)
        return np.hstack(
            [pool(bags, table, node, *how)[0][0] for bags, table in zip(self.bags, tables, strict=True)]
        ).astype(np.float64)

    def _terms(
        self, bags: Bags, table: np.ndarray, row: int, weights: np.ndarray, centre: np.ndarray
    ) -> tuple[Terms, np.ndarray]:
        """Return the terms of the rows in a node's bag, and the rest (t,); weights (t, d) multiply their numbers."""
        rows = bags.indices[bags.indptr[row] : bags.indptr[row + 1]].astype(np.int64)
        if self.settings.pooling != MAX:
            share = 1 / len(rows) if len(rows) else 0.0
            entries = table[rows].astype(np.float64)
            if self.settings.pooling == MEAN:
                entries = entries * share
            rest = np.zeros(len(weights)) if len(rows) else -weights @ centre
            return Terms(rows, (entries - share * centre) @ weights.T), rest
        pooled, winner = (one[0] for one in pool(bags, table, np.array([row]), MAX, self.settings.zero_floor))
        values, won = np.zeros((len(rows), len(weights))), winner >= 0
        added = (weights * (pooled - centre)).T  # (d, t)
        np.add.at(values, np.searchsorted(rows, winner[won]), added[won])
        return Terms(rows, values), added[~won].sum(axis=0)
