"""Several labels a node: which nodes have which, as a sparse table of yes and no."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.missing import is_missing


@dataclass(frozen=True, slots=True, eq=False)
class MultiLabels:
    """Any number of labels for each node; a node without one is not labelled.

    >>> labels = MultiLabels.of([["net", "text"], [], ["text"]])
    >>> labels.names, labels.counts.tolist()
    (('net', 'text'), [2, 0, 1])
    """

    members: sparse.csr_array  # (nodes, labels) bool, sorted, without stored False
    names: tuple[str, ...]

    @classmethod
    def of(cls, labels: Any, names: Sequence[str] | None = None) -> Self:
        """From a list of labels per node, or a table (nodes, labels), sparse or not, whose entries are 0 or 1.

        names: of the columns of a table; without them they are 0, 1, 2, …
        """
        if isinstance(labels, cls):
            return labels
        if sparse.issparse(labels) or (isinstance(labels, np.ndarray) and labels.ndim == 2):
            return cls._of_table(labels, names)
        lists = [_pieces(some, node) for node, some in enumerate(labels)]
        rows = np.repeat(np.arange(len(lists)), [len(some) for some in lists])
        return cls.of_pairs(rows, np.array([piece for some in lists for piece in some], dtype=str), len(lists))

    @classmethod
    def of_pairs(cls, rows: np.ndarray, labels: np.ndarray, nodes: int) -> Self:
        """From a label for each of `rows`, which may hold a row many times."""
        names, columns = np.unique(labels, return_inverse=True)
        table = sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(nodes, len(names)))
        return cls(_sorted(table.tocsr()), tuple(names.tolist()))

    @classmethod
    def _of_table(cls, table: Any, names: Sequence[str] | None) -> Self:
        members = sparse.csr_array(table)
        if not np.isin(members.data, (0, 1)).all():
            raise GraphError("a table of labels must hold 0 and 1 alone: whether a node has a label or has it not")
        named = tuple(map(str, range(members.shape[1]) if names is None else names))
        if len(set(named)) != members.shape[1] or len(named) != members.shape[1]:
            raise GraphError(f"{len(named)} names of {members.shape[1]} labels: give each column a name of its own")
        return cls(_sorted(members.astype(bool)), named)

    def __len__(self) -> int:
        return self.members.shape[0]

    def __getitem__(self, rows: Any) -> MultiLabels:
        """The labels of some nodes; all names are kept."""
        return MultiLabels(self.members[rows], self.names)

    @property
    def counts(self) -> np.ndarray:
        """How many labels each node has."""
        return np.diff(self.members.indptr)

    def without_unused(self) -> MultiLabels:
        """The same, without the labels that no node has."""
        used = np.flatnonzero(np.bincount(self.members.indices, minlength=len(self.names)))
        return MultiLabels(self.members[:, used], tuple(self.names[at] for at in used))

    def digest(self) -> str:
        """A short hash of who has what."""
        hashed = hashlib.sha256(repr(self.names).encode())
        for array in (self.members.indptr, self.members.indices):
            hashed.update(array.astype(np.int64).tobytes())
        return hashed.hexdigest()[:16]


def _pieces(some: Any, node: int) -> list[str]:
    """The labels of one node as words."""
    if isinstance(some, str) or not isinstance(some, Iterable):
        if is_missing(some):
            return []
        raise GraphError(f"labels of node {node} are {some!r}; give a list, as in [{some!r}]")
    return [str(piece) for piece in some if not is_missing(piece) and str(piece) != ""]


def _sorted(table: sparse.csr_array) -> sparse.csr_array:
    """Each label once for each node, in the order of columns."""
    table.sum_duplicates()
    table.eliminate_zeros()
    table.sort_indices()
    table.data[:] = True
    return table
