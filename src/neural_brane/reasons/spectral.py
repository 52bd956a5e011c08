"""Contributions to vectors that an SVD made: a node's vector is its row of M times the directions V."""

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from scipy import sparse

from neural_brane.linalg.hops import Hops
from neural_brane.reasons.contributions import (
    OWN_ATTRIBUTES,
    OWN_LINKS,
    THEIR_ATTRIBUTES,
    THEIR_LINKS,
    Contributions,
    Terms,
)
from neural_brane.reasons.surroundings import Surroundings

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
