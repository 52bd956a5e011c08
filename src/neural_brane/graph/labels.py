"""Labels of nodes: one class each, or several."""

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

# Labels of any kind into one string per node, "" where a node has none.


def node_labels(labels: Any, ids: np.ndarray) -> np.ndarray | None:
    """Return one string per id, "" where there is none.

    None, NaN, NaT and what an array masks are no labels; those that are not None are counted in a warning. Whole
    numbers that are stored as floats, as beside NaN, are spelled as whole numbers.
    """
    if labels is None:
        return None
    if is_series(labels):
        labels = by_index(labels, ids, "labels").to_numpy(dtype=object)
    elif isinstance(labels, Mapping):
        places = locate(ids, as_ids(list(labels)))
        if (places < 0).any():
            stranger = list(labels)[int(np.argmin(places))]
            raise GraphError(f"labels name node {stranger!r}, which the graph lacks; add it to ids or drop it")
        given = dict(zip(places.tolist(), labels.values(), strict=True))
        labels = [given.get(place) for place in range(len(ids))]
    hidden = np.ma.getmaskarray(labels) if np.ma.isMaskedArray(labels) else False
    array = as_array(np.ma.getdata(labels) if np.ma.isMaskedArray(labels) else labels, "labels")
    if array.shape != (len(ids),):
        raise GraphError(f"labels have shape {array.shape} for {len(ids)} nodes; give one label per node")
    missing = hidden | (array != array if array.dtype.kind in "fmMc" else np.zeros(len(ids), bool))
    if array.dtype == object:
        missing = hidden | np.array([is_missing(value) for value in array], dtype=bool)
    if told := sum(value is not None for value in array[missing].tolist()) if array.dtype == object else missing.sum():
        warnings.warn(
            f"{told} of the {len(ids)} labels are NaN, NaT or masked: these nodes are taken to have none", stacklevel=2
        )
    words = np.full(len(ids), "", dtype=object)
    words[~missing] = _spell(array[~missing])
    return words.astype(str)


def _spell(labels: np.ndarray) -> list[str]:
    """Labels that are all there, as words."""
    if labels.dtype == object and len(labels) and all(isinstance(value, Real) for value in labels):
        labels = np.array([value if isinstance(value, int) else float(value) for value in labels])
    kind = labels.dtype.kind
    if kind == "c" or (kind == "f" and np.isinf(labels).any()):
        raise GraphError(f"labels are {labels.dtype} and hold complex or infinite numbers; give names or whole numbers")
    if kind == "S":
        try:
            return [label.decode() for label in labels.tolist()]
        except UnicodeDecodeError as error:
            raise GraphError(f"labels are bytes that are not UTF-8 ({error}); decode them first") from None
    if kind == "f" and (labels == np.floor(labels)).all():
        return [f"{label:.0f}" for label in labels.tolist()]
    return [str(label) for label in (labels.astype(str) if kind in "mM" else labels).tolist()]


# Several labels a node: which nodes have which, as a sparse table of yes and no.


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
            members = sparse.csr_array(labels)
            if not np.isin(members.data, (0, 1)).all():
                raise GraphError("a table of labels must hold 0 and 1 alone: whether a node has a label or has it not")
            named = tuple(map(str, range(members.shape[1]) if names is None else names))
            if len(set(named)) != members.shape[1] or len(named) != members.shape[1]:
                raise GraphError(f"{len(named)} names of {members.shape[1]} labels: give each column a name of its own")
            return cls(_sorted(members.astype(bool)), named)
        lists = [_pieces(some, node) for node, some in enumerate(labels)]
        rows = np.repeat(np.arange(len(lists)), [len(some) for some in lists])
        return cls.of_pairs(rows, np.array([piece for some in lists for piece in some], dtype=str), len(lists))

    @classmethod
    def of_pairs(cls, rows: np.ndarray, labels: np.ndarray, nodes: int) -> Self:
        """From a label for each of `rows`, which may hold a row many times."""
        names, columns = np.unique(labels, return_inverse=True)
        table = sparse.coo_array((np.ones(len(rows), bool), (rows, columns)), shape=(nodes, len(names)))
        return cls(_sorted(table.tocsr()), tuple(names.tolist()))

    def __len__(self) -> int:
        return self.members.shape[0]

    def __getitem__(self, rows: Any) -> MultiLabels:
        """The labels of some nodes; all names are kept."""
        return MultiLabels(self.members[rows], self.names)

    @property
    def counts(self) -> np.ndarray:
        """Count the labels of each node."""
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
