"""Match vectors and labels by id, split the labelled nodes at random, and collect repeated scores."""

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
from neural_brane.progress import Meter

Vectors: TypeAlias = "Embedding | np.ndarray"


@dataclass(frozen=True, slots=True)
class Repeats:
    """The values of a score, one per split or per run.

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
        """The sample standard deviation; 0 for a single value."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    def as_dict(self, each: str) -> dict[str, Any]:
        """Return the mean, the deviation and, under the key `each`, the values: plain values for JSON."""
        return {"mean": self.mean, "sd": self.sd, each: list(self.values)}


class Result:
    """The base class of results, which are dataclasses."""

    __slots__ = ()
    constants: ClassVar[dict[str, str]] = {}  # entries of the dict that are the same for all results of the class
    renamed: ClassVar[dict[str, str]] = {}  # keys of the dict, if they are not the names of the fields

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON; the scores come last."""
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
    """A result with several scores: one per training share, or one per length of lists."""

    __slots__ = ()
    scores: tuple[Any, ...]

    def at(self, value: float) -> Any:
        """Return the score at one training share, or of lists of one length."""
        name = fields(self.scores[0])[0].name
        known = [getattr(score, name) for score in self.scores]
        if value not in known:
            raise EmbeddingError(f"no score at {name}={value}; give one of {known}")
        return self.scores[known.index(value)]


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """The vectors of the labelled nodes in the order of the labels, and the ids of nodes without a label or vector."""

    vectors: np.ndarray  # (labelled, dim)
    labels: Any  # (labelled,) strings or floats, or `MultiLabels`
    ids: np.ndarray  # (labelled,)
    unlabelled: np.ndarray  # ids with a vector but no label
    missing: np.ndarray  # ids with a label but no vector


def match(embedding: Embedding, ids: np.ndarray, labels: Any, *, allow_missing: bool = False) -> Labelled:
    """Return the vectors of labelled nodes, found by id, so that the order of the vectors changes no score.

    Parameters
    ----------
    embedding, ids : Embedding, numpy.ndarray
        The vectors, and the ids (nodes,) of the labels. An integer id also matches its string.
    labels : numpy.ndarray or MultiLabels
        One label per id: strings ("" for none), numbers (NaN for none), or several labels.
    allow_missing : bool
        Leave out labelled nodes without a vector; by default they raise an error.

    Examples
    --------
    >>> e = Embedding([[1.0], [2.0]], ["b", "a"])
    >>> match(e, np.array(["a", "b"]), np.array(["x", "y"])).vectors.ravel().tolist()
    [2.0, 1.0]
    """
    has_label = are_labelled(labels)
    ids, labels = ids[has_label], labels[has_label]
    if not len(ids):
        raise EmbeddingError("no node has a label; give one label per line, as 'node<TAB>label'")
    rows = find_rows(embedding, ids, "labelled nodes", allow_missing=allow_missing)
    found = rows >= 0
    used = rows[found]
    if len(np.unique(used)) != len(used):
        raise EmbeddingError("a node has several labels; give one label per node")
    unlabelled = np.delete(embedding.ids, used)
    return Labelled(embedding.vectors[used], labels[found], ids[found], unlabelled, ids[~found])


def are_labelled(labels: Any) -> np.ndarray:
    """Return a mask (nodes,) of the nodes that have a label."""
    if isinstance(labels, MultiLabels):
        return labels.counts > 0
    return ~np.isnan(labels) if labels.dtype.kind == "f" else labels != ""


def find_rows(embedding: Embedding, ids: np.ndarray, what: str, *, allow_missing: bool = False) -> np.ndarray:
    """Return the row of each id's vector. A missing vector raises an error, or gives -1 if `allow_missing`."""
    rows = locate(embedding.ids, ids)
    missing = ids[rows < 0]
    if len(missing) == len(ids):
        raise EmbeddingError(
            f"the vectors (ids such as {first_ids(embedding.ids)}) and the {what} (such as {first_ids(ids)}) have no "
            "id in common; give vectors of the same graph (with a .npy file, also its ids: --ids)"
        )
    if len(missing) and not allow_missing:
        raise EmbeddingError(
            f"{len(missing):,} of {len(ids):,} {what} have no vector, such as {first_ids(missing)}; "
            "give vectors of the same graph, or allow missing vectors (--allow-missing)"
        )
    return rows


class Classes(NamedTuple):
    """The classes of nodes, and a mask of the nodes that have one."""

    labels: np.ndarray  # (nodes,) str, "" for none
    labelled: np.ndarray  # (nodes,) bool
    target: np.ndarray  # (labelled,) classes as numbers
    names: tuple[str, ...]

    @classmethod
    def from_labels(cls, labels: Any) -> Self:
        """Return the classes of labels (nodes,); raise an error if there are fewer than two."""
        labels = np.asarray(labels).astype(str)
        if labels.ndim != 1:
            raise EmbeddingError(f"labels have shape {labels.shape}; give one label per node")
        labelled = labels != ""
        names, target = np.unique(labels[labelled], return_inverse=True)
        check_several(len(names))
        return cls(labels, labelled, target, tuple(names.tolist()))

    def rows(self, vectors: Vectors) -> np.ndarray:
        """Return the vectors of the labelled nodes as float64."""
        return labelled_rows(vectors, self.labelled, "labels")

    def labels_at(self, rows: np.ndarray) -> np.ndarray:
        """Return one label per node: that of the labelled nodes at `rows`, and "" for all others."""
        places = np.flatnonzero(self.labelled)[rows]
        labels = np.zeros_like(self.labels)
        labels[places] = self.labels[places]
        return labels


def check_several(labels: int) -> None:
    """Raise an error if there are fewer than two different labels."""
    if labels < 2:
        raise EmbeddingError(f"the nodes have {labels} different label(s); give labels of at least two kinds")


def labelled_rows(vectors: Vectors, labelled: np.ndarray, what: str) -> np.ndarray:
    """Return the rows of vectors that the mask `labelled` (nodes,) marks, as float64; `what` is for the message."""
    table = np.asarray(vectors)
    if table.ndim != 2 or len(table) != len(labelled):
        raise EmbeddingError(f"vectors have shape {table.shape} for {len(labelled)} {what}; give one row per node")
    table = table[labelled].astype(np.float64)
    check_finite(table)
    return table


LENGTH = 5.0  # root-mean-square length at which a classifier with the usual penalty, C = 1, works well


def equal_length(table: np.ndarray) -> np.ndarray:
    """Return vectors (nodes, dim) scaled by one factor to the root-mean-square length LENGTH.

    >>> equal_length(np.array([[1.0, 0.0], [0.0, 7.0]])).tolist()
    [[1.0, 0.0], [0.0, 7.0]]
    """
    size = float(np.sqrt(np.mean(np.sum(np.square(table), axis=1))))
    return table * (LENGTH / size) if size > 0 else table


def check_finite(table: np.ndarray) -> None:
    """Raise an error if a vector contains NaN or infinity."""
    bad = ~np.isfinite(table).all(axis=1)
    if bad.any():
        raise EmbeddingError(f"{bad.sum():,} of {len(table):,} vectors contain NaN or infinity; did training diverge?")


def first_ids(ids: np.ndarray) -> str:
    """Return the first few ids as text for a message."""
    return ", ".join(map(repr, ids[:3].tolist()))


Pair = tuple[np.ndarray, np.ndarray]
NOTE = "split k trains on the first round(share * nodes) of orders[k], rows of ids, and is tested on the others"
TUNING_SEED = 1_000_003  # seed of the tuning part; splits have smaller seeds


def tuning_part(nodes: int, share: float) -> np.ndarray:
    """Return the rows of the labelled nodes that parameters may be tuned on: a random `share`, always the same.

    The draw does not depend on the classes, because tuning must not see the labels of the other nodes.

    >>> tuning_part(10, 0.2).tolist() == tuning_part(10, 0.2).tolist()
    True
    """
    if not 0 <= share < 1:
        raise ParameterError(f"tuning={share} is not a share of the nodes; give at least 0 and less than 1, as in 0.2")
    return np.sort(np.random.default_rng(TUNING_SEED).permutation(nodes)[: round(share * nodes)])


def random_splits(
    classes: np.ndarray, train: float, *, splits: int = 10, seed: int = 0, stratify: bool = False, tuning: float = 0.0
) -> Iterator[Pair]:
    """Yield random splits of nodes as pairs of arrays: rows to train on, rows to test on.

    The splits depend only on the arguments, so all methods are scored on the same splits. Split k uses the same
    shuffle at every share: its 30 % of training nodes are among its 50 %.

    Parameters
    ----------
    classes, train : numpy.ndarray, float
        Class of each node (nodes,), and share of the nodes to train on.
    splits, seed : int
        Number of splits, and seed of the random numbers.
    stratify : bool
        Divide every class in the same proportion. By default the draw does not depend on the class, as in the paper.
    tuning : float
        Share of the nodes that parameters were tuned on. Every split trains on them, so none of them is predicted.

    Examples
    --------
    >>> [(len(a), len(b)) for a, b in random_splits(np.zeros(10), 0.3, splits=2)]
    [(3, 7), (3, 7)]
    """
    drawn = Splits.draw(np.arange(len(classes)), classes, splits=splits, seed=seed, stratify=stratify, tuning=tuning)
    yield from drawn.parts(train)


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Splits into training and test nodes, which can be saved to score other methods and programs on the same splits.

    >>> splits = Splits.draw(np.array(["a", "b", "c", "d"]), np.zeros(4), splits=1)
    >>> [[len(rows) for rows in pair] for pair in splits.parts(0.5)]
    [[2, 2]]
    """

    ids: np.ndarray  # (nodes,) the labelled nodes
    orders: np.ndarray  # (splits, nodes) int32: one shuffle of the nodes per split; the first ones are training nodes
    seed: int | None = None  # None if another program drew the splits
    stratify: bool = False
    tuning: float = 0.0  # share of the nodes that parameters were tuned on; every order begins with these nodes

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
        """Return the splits that `random_splits` yields for the nodes with these ids and classes."""
        if splits < 1:
            raise ParameterError(f"splits={splits} makes no sense; give at least one")
        if seed < 0:
            raise ParameterError(f"seed={seed} makes no sense; give 0 or more")
        untuned = np.ones(len(classes), dtype=bool)
        untuned[tuning_part(len(classes), tuning)] = False
        orders = np.empty((splits, len(classes)), np.int32)
        for split in range(splits):
            order = np.random.default_rng((seed, split)).permutation(len(classes))
            if stratify:  # sort by the position of each node in its class, from 0 to 1, which mixes classes evenly
                _, codes, counts = np.unique(classes[order], return_inverse=True, return_counts=True)
                place = np.empty(len(codes))
                places = [(np.arange(count) + 0.5) / count for count in counts]
                place[np.argsort(codes, kind="stable")] = np.concatenate(places)
                order = order[np.argsort(place, kind="stable")]
            orders[split] = order[np.argsort(untuned[order], kind="stable")]  # tuning nodes come first
        return cls(as_ids(ids, error=EmbeddingError), orders, seed, stratify, tuning)

    def __len__(self) -> int:
        return len(self.orders)

    def parts(self, train: float) -> Iterator[Pair]:
        """Yield the rows to train on and the rows to test on, for every split; `train` is the share to train on."""
        nodes = len(self.ids)
        if not 0 < train < 1:
            raise ParameterError(f"train={train} is not a share of the nodes; give a number between 0 and 1, as in 0.3")
        size = round(train * nodes)
        if not 0 < size < nodes:
            raise ParameterError(f"train={train} of {nodes} labelled nodes leaves no training or test node; change it")
        if size < len(tuning_part(nodes, self.tuning)):
            raise ParameterError(f"train={train} is less than tuning={self.tuning}; train on all tuning nodes and more")
        for order in self.orders:
            yield order[:size], order[size:]

    def align_labels(self, ids: np.ndarray) -> Splits:
        """Return the same splits as rows of `ids`, which must be the same nodes in any order."""
        rows = locate(ids, self.ids)
        extra = ids[np.setdiff1d(np.arange(len(ids)), rows)]
        for found, what in ((self.ids[rows < 0], "of the splits have no label and vector"), (extra, "are in no split")):
            if len(found):
                raise EmbeddingError(f"{len(found):,} nodes {what}, such as {first_ids(found)}; draw new splits")
        return replace(self, ids=ids, orders=rows.astype(np.int32)[self.orders])

    def save(self, path: str | Path) -> None:
        """Write the splits to a JSON file with the keys `ids` and `orders`, which are positions in `ids`."""
        record = {"note": NOTE, "seed": self.seed, "stratify": self.stratify, "tuning": self.tuning}
        record |= {"ids": self.ids.tolist(), "orders": self.orders.tolist()}
        with atomic(path) as draft:
            draft.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return splits read from a JSON file of `save` or of another program; it needs only `ids` and `orders`."""
        try:
            record = json.loads(Path(path).read_text(encoding="utf-8"))
            ids, orders = as_ids(record["ids"], error=EmbeddingError), np.array(record["orders"])
            seed, stratify = record.get("seed"), bool(record.get("stratify", False))
            tuning = float(record.get("tuning", 0.0))
        except FileNotFoundError:
            raise EmbeddingError(f"{path}: no such file; write one with --save-splits") from None
        except (ValueError, KeyError, TypeError) as error:
            raise EmbeddingError(f"{path}: not a JSON file with 'ids' and 'orders' ({error})") from None
        whole = orders.ndim == 2 and orders.dtype.kind == "i" and len(orders) > 0
        if not whole or any(not np.array_equal(np.sort(order), np.arange(len(ids))) for order in orders):
            raise EmbeddingError(f"{path}: every list of 'orders' must contain each of 0 to {len(ids) - 1} once")
        if (twice := repeated(ids)) is not None:
            raise EmbeddingError(f"{path}: 'ids' contain {twice!r} twice; all must be distinct")
        return cls(ids, orders.astype(np.int32), seed, stratify, tuning)


def as_splits(splits: int | Splits, nodes: int, seed: int, classes: np.ndarray | None = None, **options: Any) -> Splits:
    """Return splits of the labelled nodes: the given ones, or new ones if `splits` is their number."""
    if not isinstance(splits, Splits):
        classes = np.zeros(nodes) if classes is None else classes
        return Splits.draw(np.arange(nodes), classes, splits=splits, seed=seed, **options)
    if len(splits.ids) != nodes:
        raise EmbeddingError(f"splits of {len(splits.ids)} nodes for {nodes} labelled vectors; draw new splits")
    return splits


def score_splits(
    splits: Splits, train: Sequence[float], score: Callable[[np.ndarray, np.ndarray], tuple[Any, ...]], meter: Meter
) -> Iterator[tuple[Any, ...]]:
    """Yield each training share, followed by a tuple for each value that `score` returns: its values in all splits."""
    with one_blas_thread():  # else the order of sums, and so the last bits, would depend on the number of threads
        for share in train:
            values = []
            for rows, held_out in splits.parts(share):
                values.append(score(rows, held_out))
                meter.advance()
            yield share, *zip(*values, strict=True)
