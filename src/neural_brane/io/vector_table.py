"""Vectors as every format reads and writes them: rows of numbers, an id for each, and where they came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import polars


class VectorTable(NamedTuple):
    """What a file of vectors holds."""

    vectors: np.ndarray  # (nodes, dim)
    ids: np.ndarray  # (nodes,) integers or strings
    provenance: dict[str, Any]  # what made the vectors; empty where the format cannot say
    layer: tuple[np.ndarray, np.ndarray] | None = None  # weight and bias of what scores pairs; only .npz keeps it


def parse_ids(words: list[str]) -> np.ndarray:
    """Return integers where every word is one as Python would write it ('007' is not), else the words."""
    try:
        numbers = [int(word) for word in words]
        if all(str(number) == word for number, word in zip(numbers, words, strict=True)):
            return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return np.array(words, dtype=str)


def column_names(dim: int) -> list[str]:
    """The titles of a vector's columns: d0, d1, ..."""
    return [f"d{i}" for i in range(dim)]


def as_frames(ids: np.ndarray, blocks: Iterable[np.ndarray]) -> Iterator[polars.DataFrame]:
    """Turn blocks of vectors into data frames with the columns id, d0, d1, ..."""
    import polars

    done = 0
    for block in blocks:
        names = polars.Series("id", ids[done : done + len(block)])
        yield polars.DataFrame([names, *map(polars.Series, column_names(block.shape[1]), block.T)])
        done += len(block)
