"""Random divisions of the labelled nodes into a training and a test part, the same for every method compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import name_some
from neural_brane.files.storage import atomic
from neural_brane.graph.ids import as_ids, locate, repeated
from neural_brane.kernels.threads import one_blas_thread

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
    options: dict[str, Any] = {"splits": splits, "seed": seed, "stratify": stratify, "tuning": tuning}
    yield from Splits.draw(np.arange(len(classes)), classes, **options).parts(train)


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
            if stratify:
                order = order[np.argsort(place_in_class(classes[order]), kind="stable")]
            orders[split] = order[np.argsort(untuned[order], kind="stable")]  # the tuning part comes first
        return cls(as_ids(ids, error=EmbeddingError), orders, seed, stratify, tuning)

    def __len__(self) -> int:
        return len(self.orders)

    def parts(self, train: float) -> Iterator[Pair]:
        """Yield, for each split, the rows to train on and the rows to test on."""
        size = _size(len(self.ids), train, self.tuning)
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
        with atomic(path) as draft:
            lists = {"ids": self.ids.tolist(), "orders": self.orders.tolist()}
            text = json.dumps(record | lists, separators=(",", ":"))
            draft.write_text(text + "\n", encoding="utf-8")

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
    """Yield each training share, and the values of every score over the splits.

    score: gives the scores of one split, from the rows to train on and those to test on.
    """
    with one_blas_thread():  # the order of sums, and so the last bits, would follow the number of threads
        for share in train:
            yield share, *zip(*(score(*parts) for parts in splits.parts(share)), strict=True)


def _size(nodes: int, train: float, tuning: float) -> int:
    """The number of nodes to train on."""
    if not 0 < train < 1:
        raise ParameterError(f"train={train}: the share to train on must lie between 0 and 1, as in 0.3")
    size = round(train * nodes)
    if not 0 < size < nodes:
        raise ParameterError(f"train={train} of {nodes} labelled nodes leaves nothing to train on or to test on")
    if size < len(tuning_part(nodes, tuning)):
        raise ParameterError(f"train={train} is less than tuning={tuning}: nodes that were tuned on would be tested")
    return size


def place_in_class(classes: np.ndarray) -> np.ndarray:
    """The place of each node within its own class, from 0 to 1: sorting by it interleaves the classes evenly."""
    _, codes, counts = np.unique(classes, return_inverse=True, return_counts=True)
    place = np.empty(len(codes))
    place[np.argsort(codes, kind="stable")] = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    return place
