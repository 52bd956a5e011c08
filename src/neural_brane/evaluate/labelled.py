"""Labelled vectors matched by id, random splits of them, and scores measured several times."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias, cast

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.files.storage import atomic
from neural_brane.graph.ids import as_ids, locate, repeated
from neural_brane.graph.labels import MultiLabels
from neural_brane.kernels.threads import one_blas_thread

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


class Result:
    """A result whose fields `as_dict` gives under their names, or under those in `renamed`."""

    __slots__ = ()
    constants: ClassVar[dict[str, str]] = {}  # values for JSON that are the same for every result of the class
    renamed: ClassVar[dict[str, str]] = {}

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON; the scores come last."""
        record: dict[str, Any] = {}
        for one in fields(cast(Any, self)):
            value = getattr(self, one.name)
            if isinstance(value, Repeats):
                value = value.as_dict("splits")
            record[self.renamed.get(one.name, one.name)] = list(value) if isinstance(value, tuple) else value
        scores = record.pop("scores", None)
        more = {} if scores is None else {"scores": [score.as_dict() for score in scores]}
        return record | self.constants | more


class Scored(Result):
    """A result with several scores, each found by its first field: the training share, or the length of lists."""

    __slots__ = ()
    scores: tuple[Any, ...]

    def at(self, value: float) -> Any:
        """The score at one training share, or of lists of one length."""
        name = fields(self.scores[0])[0].name
        known = [getattr(score, name) for score in self.scores]
        if value not in known:
            raise EmbeddingError(f"no score at {name}={value}; there are {known}")
        return self.scores[known.index(value)]


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
    """Mark nodes that have a class, a number or at least one of several labels: (nodes,) bool."""
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
    """The rows that `kept` (nodes,) marks, in float64; `what` each node has one of, for the message."""
    table = np.asarray(vectors)
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


Pair = tuple[np.ndarray, np.ndarray]
NOTE = "split k trains on the first round(share * nodes) of orders[k], rows of ids, and is tested on the others"
TUNING_SEED = 1_000_003  # draws the tuning part; it is none of the small seeds of splits


def tuning_part(nodes: int, share: float) -> np.ndarray:
    """The rows of the labelled nodes that parameters may be tuned on: always the same ones for a `share`.

    They are drawn whatever their class: a draw by class would depend on the labels that tuning must not see.

    >>> tuning_part(10, 0.2).tolist() == tuning_part(10, 0.2).tolist()
    True
    """
    if not 0 <= share < 1:
        raise ParameterError(f"tuning={share}: the share to tune on must lie between 0 and 1, as in 0.2")
    return np.sort(np.random.default_rng(TUNING_SEED).permutation(nodes)[: round(share * nodes)])


def random_splits(
    classes: np.ndarray, train: float, *, splits: int = 10, seed: int = 0, stratify: bool = False, tuning: float = 0.0
) -> Iterator[Pair]:
    """Yield `splits` pairs (rows to train on, rows to test on) of nodes whose classes (nodes,) are given.

    Nodes are drawn at random, whatever their class, as the paper does; with `stratify`, every class is
    divided in the same proportion. The divisions depend on the arguments alone, so that all methods are scored
    on the same ones. Split k uses one shuffle at every share: its 30 % part lies within its 50 % part.

    tuning: the share of the nodes that parameters were tuned on. This `tuning_part` is trained on in every split, so
    that no label that tuning has seen is predicted; the rest of the training nodes is drawn at random.

    >>> [(len(a), len(b)) for a, b in random_splits(np.zeros(10), 0.3, splits=2)]
    [(3, 7), (3, 7)]
    """
    drawn = Splits.draw(np.arange(len(classes)), classes, splits=splits, seed=seed, stratify=stratify, tuning=tuning)
    yield from drawn.parts(train)


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Divisions that can be kept in a file, to score other methods and other programs on.

    >>> splits = Splits.draw(np.array(["a", "b", "c", "d"]), np.zeros(4), splits=1)
    >>> [[len(part) for part in pair] for pair in splits.parts(0.5)]
    [[2, 2]]
    """

    ids: np.ndarray  # (nodes,) the labelled nodes
    orders: np.ndarray  # (splits, nodes) int32: a shuffle of the nodes per split; its first part is trained on
    seed: int | None = None  # None where another program drew them
    stratify: bool = False
    tuning: float = 0.0  # the share of the nodes that parameters were tuned on: every order begins with them

    @classmethod
    def draw(
        cls,
        ids: np.ndarray,
        classes: np.ndarray,
        *,
        splits: int = 10,
        seed: int = 0,
        stratify: bool = False,
        tuning: float = 0.0,
    ) -> Self:
        """The divisions that `random_splits` yields, of nodes by their ids."""
        if splits < 1:
            raise ParameterError(f"splits={splits} makes no sense; give at least one")
        if seed < 0:
            raise ParameterError(f"seed={seed} makes no sense; give 0 or more")
        untuned = np.ones(len(classes), dtype=bool)
        untuned[tuning_part(len(classes), tuning)] = False
        orders = np.empty((splits, len(classes)), np.int32)
        for split in range(splits):
            order = np.random.default_rng((seed, split)).permutation(len(classes))
            if stratify:  # by the place of each node within its own class, from 0 to 1, which mixes classes evenly
                _, codes, counts = np.unique(classes[order], return_inverse=True, return_counts=True)
                place = np.empty(len(codes))
                places = [(np.arange(count) + 0.5) / count for count in counts]
                place[np.argsort(codes, kind="stable")] = np.concatenate(places)
                order = order[np.argsort(place, kind="stable")]
            orders[split] = order[np.argsort(untuned[order], kind="stable")]  # the tuning part comes first
        return cls(as_ids(ids, error=EmbeddingError), orders, seed, stratify, tuning)

    def __len__(self) -> int:
        return len(self.orders)

    def parts(self, train: float) -> Iterator[Pair]:
        """Yield, for each split, the rows to train on and the rows to test on."""
        nodes = len(self.ids)
        if not 0 < train < 1:
            raise ParameterError(f"train={train}: the share to train on must lie between 0 and 1, as in 0.3")
        size = round(train * nodes)
        if not 0 < size < nodes:
            raise ParameterError(f"train={train} of {nodes} labelled nodes leaves nothing to train on or to test on")
        if size < len(tuning_part(nodes, self.tuning)):
            raise ParameterError(
                f"train={train} is less than tuning={self.tuning}: nodes that were tuned on would be tested"
            )
        for order in self.orders:
            yield order[:size], order[size:]

    def in_order_of(self, ids: np.ndarray) -> Splits:
        """The same divisions, as rows of `ids`, which must be the same nodes in any order."""
        rows = locate(ids, self.ids)
        extra = ids[np.setdiff1d(np.arange(len(ids)), rows)]
        for found, what in ((self.ids[rows < 0], "of the splits have no label and vector"), (extra, "are in no split")):
            if len(found):
                some = name_some(found)
                raise EmbeddingError(f"{len(found):,} nodes {what}, such as {some}; draw splits of these nodes anew")
        return replace(self, ids=ids, orders=rows.astype(np.int32)[self.orders])

    def save(self, path: str | Path) -> None:
        """Write to a JSON file: `ids`, and `orders` that index them."""
        record = {"note": NOTE, "seed": self.seed, "stratify": self.stratify, "tuning": self.tuning}
        record |= {"ids": self.ids.tolist(), "orders": self.orders.tolist()}
        with atomic(path) as draft:
            draft.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; of another program's file, `ids` and `orders` are enough."""
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
            ids, orders = as_ids(record["ids"], error=EmbeddingError), np.array(record["orders"])
            seed, stratify = record.get("seed"), bool(record.get("stratify", False))
            tuning = float(record.get("tuning", 0.0))
        except FileNotFoundError:
            raise EmbeddingError(f"{path}: no such file; write one with --save-splits") from None
        except (ValueError, KeyError, TypeError) as error:
            raise EmbeddingError(f"{path}: not a JSON file of splits, with 'ids' and 'orders' ({error})") from None
        whole = orders.ndim == 2 and orders.dtype.kind == "i" and len(orders) > 0
        if not whole or any(not np.array_equal(np.sort(order), np.arange(len(ids))) for order in orders):
            raise EmbeddingError(f"{path}: every list of 'orders' must hold 0 to {len(ids) - 1}, each once, shuffled")
        if (twice := repeated(ids)) is not None:
            raise EmbeddingError(f"{path}: 'ids' list {twice!r} twice; each must be distinct")
        return cls(ids, orders.astype(np.int32), seed, stratify, tuning)


def splits_of(splits: int | Splits, nodes: int, seed: int, classes: np.ndarray | None = None, **options: Any) -> Splits:
    """Divisions of as many nodes as are labelled: those given, or new ones; options as `draw` takes them."""
    if not isinstance(splits, Splits):
        classes = np.zeros(nodes) if classes is None else classes
        return Splits.draw(np.arange(nodes), classes, splits=splits, seed=seed, **options)
    if len(splits.ids) != nodes:
        raise EmbeddingError(f"splits of {len(splits.ids)} nodes, {nodes} labelled vectors: draw splits of these nodes")
    return splits


def score_splits(
    splits: Splits, train: Sequence[float], score: Callable[[np.ndarray, np.ndarray], tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    """Yield each training share, and what `score` gives of the training and test rows of every split."""
    with one_blas_thread():  # the order of sums, and so the last bits, would follow the number of threads
        for share in train:
            yield share, *zip(*(score(*parts) for parts in splits.parts(share)), strict=True)
