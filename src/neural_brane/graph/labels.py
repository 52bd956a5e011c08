"""Labels of nodes: one label per node, or several."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.frames import by_index, is_series
from neural_brane.graph.ids import as_array, as_ids, is_missing, locate


def node_labels(labels: Any, ids: np.ndarray) -> np.ndarray | None:
    """Return one string per id, "" for None, NaN, NaT and masked values, or None if no labels are given."""
    if labels is None:
        return None
    if is_series(labels):
        labels = by_index(labels, ids, "labels").to_numpy(dtype=object)
    elif isinstance(labels, Mapping):
        places = locate(ids, as_ids(list(labels)))
        if (places < 0).any():
            unknown = list(labels)[int(np.argmin(places))]
            raise GraphError(f"labels name node {unknown!r}, which is not in the graph; add it to ids or drop it")
        given = dict(zip(places.tolist(), labels.values(), strict=True))
        labels = [given.get(place) for place in range(len(ids))]
    hidden = np.ma.getmaskarray(labels) if np.ma.isMaskedArray(labels) else False
    array = as_array(np.ma.getdata(labels) if np.ma.isMaskedArray(labels) else labels, "labels")
    if array.shape != (len(ids),):
        raise GraphError(f"labels have shape {array.shape} for {len(ids)} nodes; give one label per node")
    missing = hidden | (array != array if array.dtype.kind in "fmMc" else np.zeros(len(ids), bool))
    if array.dtype == object:
        missing = hidden | np.array([is_missing(value) for value in array], dtype=bool)
    if count := sum(value is not None for value in array[missing].tolist()) if array.dtype == object else missing.sum():
        warnings.warn(f"{count} of the {len(ids)} labels are NaN, NaT or masked, so they are ignored", stacklevel=2)
    words = np.full(len(ids), "", dtype=object)
    words[~missing] = _spell(array[~missing])
    return words.astype(str)


def _spell(labels: np.ndarray) -> list[str]:
    """Return labels, none of which is missing, as strings."""
    if labels.dtype == object and len(labels) and all(isinstance(value, Real) for value in labels):
        labels = np.array([value if isinstance(value, int) else float(value) for value in labels])
    kind = labels.dtype.kind
    if kind == "c" or (kind == "f" and np.isinf(labels).any()):
        raise GraphError(f"labels are {labels.dtype} with complex or infinite numbers; give names or whole numbers")
    if kind == "S":
        try:
            return [label.decode() for label in labels.tolist()]
        except UnicodeDecodeError as error:
            raise GraphError(f"labels are bytes that are not UTF-8 ({error}); decode them first") from None
    if kind == "f" and (labels == np.floor(labels)).all():
        return [f"{label:.0f}" for label in labels.tolist()]
    return [str(label) for label in (labels.astype(str) if kind in "mM" else labels).tolist()]


@dataclass(frozen=True, slots=True, eq=False)
class MultiLabels:
    """Any number of labels per node, as a sparse matrix of booleans.

    >>> labels = MultiLabels.from_labels([["net", "text"], [], ["text"]])
    >>> labels.names, labels.counts.tolist()
    (('net', 'text'), [2, 0, 1])
    """

    members: sparse.csr_array  # (nodes, labels) bool, True if a node has a label; sorted, stores no False
    names: tuple[str, ...]

    @classmethod
    def from_labels(cls, labels: Any, names: Sequence[str] | None = None) -> Self:
        """Return labels from a list per node, or a matrix (nodes, labels) of 0 and 1 with the names of its columns."""
        if isinstance(labels, cls):
            return labels
        if sparse.issparse(labels) or (isinstance(labels, np.ndarray) and labels.ndim == 2):
            members = sparse.csr_array(labels)
            if not np.isin(members.data, (0, 1)).all():
                raise GraphError("entries of a matrix of labels must be 0 or 1, where 1 means that the node has it")
            named = tuple(map(str, range(members.shape[1]) if names is None else names))
            if len(set(named)) != members.shape[1] or len(named) != members.shape[1]:
                raise GraphError(f"{len(named)} names for {members.shape[1]} labels; give one distinct name per column")
            return cls(_sorted(members.astype(bool)), named)
        lists = [_labels_of(node, given) for node, given in enumerate(labels)]
        rows = np.repeat(np.arange(len(lists)), [len(own) for own in lists])
        return cls.from_pairs(rows, np.array([label for own in lists for label in own], dtype=str), len(lists))

    @classmethod
    def from_pairs(cls, rows: np.ndarray, labels: np.ndarray, nodes: int) -> Self:
        """Return labels given as pairs of a row and a label; a row may occur many times."""
        names, columns = np.unique(labels, return_inverse=True)
        table = sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(nodes, len(names)))
        return cls(_sorted(table.tocsr()), tuple(names.tolist()))

    def __len__(self) -> int:
        return self.members.shape[0]

    def __getitem__(self, rows: Any) -> MultiLabels:
        """Return the labels of some nodes, with all names."""
        return MultiLabels(self.members[rows], self.names)

    @property
    def counts(self) -> np.ndarray:
        """The number of labels of each node."""
        return np.diff(self.members.indptr)

    def without_unused(self) -> MultiLabels:
        """Return the same labels of nodes, without the names of labels that no node has."""
        used = np.flatnonzero(np.bincount(self.members.indices, minlength=len(self.names)))
        return MultiLabels(self.members[:, used], tuple(self.names[at] for at in used))

    def digest(self) -> str:
        """Return 16 hexadecimal digits that change if a node's labels change."""
        hashed = hashlib.sha256(repr(self.names).encode())
        for array in (self.members.indptr, self.members.indices):
            hashed.update(array.astype(np.int64).tobytes())
        return hashed.hexdigest()[:16]


def _labels_of(node: int, given: Any) -> list[str]:
    """Return the labels of one node as strings."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        if is_missing(given):
            return []
        raise GraphError(f"labels of node {node} are {given!r}; give a list, such as [{given!r}]")
    return [str(label) for label in given if not is_missing(label) and str(label) != ""]


def _sorted(table: sparse.csr_array) -> sparse.csr_array:
    """Return the table in canonical form, changed in place: every label once per node, in the order of columns."""
    table.sum_duplicates()
    table.eliminate_zeros()
    table.sort_indices()
    table.data[:] = True
    return table
