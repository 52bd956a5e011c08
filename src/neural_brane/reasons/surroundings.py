"""The nodes within some hops of one, and averages over neighbours among them."""

from functools import cached_property
from typing import cast

import numpy as np
from scipy import sparse

from neural_brane.linalg.hops import Hops


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
