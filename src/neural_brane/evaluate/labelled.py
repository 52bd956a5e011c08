"""Vectors beside the labels of the same nodes, matched by id; and scores measured several times."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, cast

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.graph.ids import locate
from neural_brane.graph.labels import MultiLabels

Vectors: TypeAlias = "Embedding | np.ndarray"

# A score measured several times, and results made of such scores.


@dataclass(frozen=True, slots=True)
class Repeats:
    """The values of a score, one per split or per start.

    >>> f1 = Repeats((0.5, 0.75))
    >>> f1.mean, f1.values
    (0.625, (0.5, 0.75))
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(np.mean(self.values))

    @property
    def sd(self) -> float:
        """The standard deviation of the sample; 0 for one value."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    def as_dict(self, each: str) -> dict[str, Any]:
        """Mean, deviation and, under the name of what was repeated, the values themselves: for JSON."""
        return {"mean": self.mean, "sd": self.sd, each: list(self.values)}


class Scored:
    """A result with several scores, each found by its first field: the training share, or the length of lists."""

    __slots__ = ()
    scores: tuple[Any, ...]
    constants: ClassVar[dict[str, str]] = {}  # values for JSON that are the same for every result of the class

    def at(self, value: float) -> Any:
        """The score at one training share, or of lists of one length."""
        name = fields(self.scores[0])[0].name
        known = [getattr(score, name) for score in self.scores]
        if value not in known:
            raise EmbeddingError(f"no score at {name}={value}; there are {known}")
        return self.scores[known.index(value)]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; the scores come last."""
        record = {one.name: getattr(self, one.name) for one in fields(cast(Any, self)) if one.name != "scores"}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in record.items()}
        return plain | self.constants | {"scores": [score.as_dict() for score in self.scores]}


# Vectors beside the labels of the same nodes, matched by id and never by position.


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """The vectors of the labelled nodes, in the order of the labels, and the ids of nodes that lack one of the two."""

    vectors: np.ndarray  # (labelled, dim)
    labels: Any  # of each a class (str), a number (float) or, in `MultiLabels`, several
    ids: np.ndarray  # (labelled,)
    unlabelled: np.ndarray  # ids that have a vector and no label
    missing: np.ndarray  # ids that have a label and no vector


def match(embedding: Embedding, ids: np.ndarray, labels: Any, *, allow_missing: bool = False) -> Labelled:
    """Find the vector of each labelled node by its id.

    Rows are in the order of `ids`, so the order of the vectors' file changes no score. Integer ids match strings that
    spell them. A label whose node has no vector is an error unless `allow_missing`.
    labels: an array of classes ("" for none) or of numbers (NaN for none), or `MultiLabels`.

    >>> e = Embedding([[1.0], [2.0]], ["b", "a"])
    >>> match(e, np.array(["a", "b"]), np.array(["x", "y"])).vectors.ravel().tolist()
    [2.0, 1.0]
    """
    has_label = are_labelled(labels)
    ids, labels = ids[has_label], labels[has_label]
    if not len(ids):
        raise EmbeddingError("no node has a label; give labels as lines of 'node<TAB>label'")
    rows = find_rows(embedding, ids, "labelled nodes", allow_missing=allow_missing)
    found = rows >= 0
    used = rows[found]
    if len(np.unique(used)) != len(used):
        raise EmbeddingError("a node has several labels; give one label per node")
    unlabelled = np.delete(embedding.ids, used)
    return Labelled(embedding.vectors[used], labels[found], ids[found], unlabelled, ids[~found])


def are_labelled(labels: Any) -> np.ndarray:
    """Mark the nodes that have a class, a number or at least one of several labels: (nodes,) bool."""
    if isinstance(labels, MultiLabels):
        return labels.counts > 0
    return ~np.isnan(labels) if labels.dtype.kind == "f" else labels != ""


def find_rows(embedding: Embedding, ids: np.ndarray, what: str, *, allow_missing: bool = False) -> np.ndarray:
    """Find the row of each id's vector; a missing one is an error, or with `allow_missing` -1."""
    rows = locate(embedding.ids, ids)
    missing = ids[rows < 0]
    if len(missing) == len(ids):
        raise EmbeddingError(
            f"no id in common: vectors have {name_some(embedding.ids)}, {what} have {name_some(ids)}; "
            "give vectors of the same graph (a bare .npy needs its ids: --ids)"
        )
    if len(missing) and not allow_missing:
        raise EmbeddingError(
            f"{len(missing):,} of {len(ids):,} {what} have no vector, such as {name_some(missing)}; "
            "give vectors of the same graph, or allow missing nodes (--allow-missing)"
        )
    return rows


class Classes(NamedTuple):
    """The classes of nodes, and which nodes have one."""

    labels: np.ndarray  # (nodes,) str, "" for none
    kept: np.ndarray  # (nodes,) bool: those that have one
    target: np.ndarray  # (labelled,) their classes as numbers
    names: tuple[str, ...]

    @classmethod
    def of(cls, labels: Any) -> Self:
        """Two classes at least, of labels in the order of the nodes."""
        labels = np.asarray(labels).astype(str)
        if labels.ndim != 1:
            raise EmbeddingError(f"labels of shape {labels.shape}: give one row and one label per node")
        kept = labels != ""
        names, target = np.unique(labels[kept], return_inverse=True)
        if len(names) < 2:
            raise EmbeddingError(f"{len(names)} class(es) among the labels; at least two are needed to tell apart")
        return cls(labels, kept, target, tuple(names.tolist()))

    def rows(self, vectors: Vectors) -> np.ndarray:
        """The vectors of the labelled nodes, in float64."""
        return vectors_of(vectors, self.kept, "labels")

    def only(self, part: np.ndarray) -> np.ndarray:
        """The labels of some of the labelled nodes, by their rows; "" for all other nodes."""
        shown = np.flatnonzero(self.kept)[part]
        labels = np.zeros_like(self.labels)
        labels[shown] = self.labels[shown]
        return labels


def vectors_of(vectors: Vectors, kept: np.ndarray, what: str) -> np.ndarray:
    """The rows to keep, in float64, of vectors that must be as many as there are nodes.

    kept: (nodes,) bool. what: what each node has one of, for the message.
    """
    table = vectors.vectors if isinstance(vectors, Embedding) else np.asarray(vectors)
    if table.ndim != 2 or len(table) != len(kept):
        raise EmbeddingError(f"vectors {table.shape} and {len(kept)} {what}: give one row per node, in the same order")
    table = table[kept].astype(np.float64)
    check_finite(table)
    return table


def check_finite(table: np.ndarray) -> None:
    """Refuse vectors that hold NaN or infinity."""
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise EmbeddingError(f"{bad.sum():,} of {len(table):,} vectors hold NaN or infinity; did training diverge?")


def name_some(ids: np.ndarray) -> str:
    """The first few ids, for a message."""
    return ", ".join(map(repr, ids[:3].tolist()))
