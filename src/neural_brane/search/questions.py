"""What a search is asked: ids of nodes or vectors, one or several; and how its answers are put."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.graph.ids import as_ids, locate
from neural_brane.graph.unknown import about_unknown
from neural_brane.io.vector_parts import StoredColumn, StoredRows

LOOKED_AT = 1_000_000  # ids in parts among which those are looked for that look like an unknown one
Answer = list[tuple[Any, float]]  # ids with their cosine, best first


class Question(NamedTuple):
    """What is asked: rows of nodes, or vectors; `single` if the answer is one list and not a list of lists."""

    rows: np.ndarray | None  # (asked,) int64
    vectors: np.ndarray | None  # (asked, dim) float32
    single: bool

    def queries(self, table: np.ndarray | StoredRows) -> np.ndarray:
        """The vectors that are asked about; those of nodes are found in the table."""
        return table[self.rows] if self.vectors is None else self.vectors


def understand(asked: Any, ids: np.ndarray | StoredColumn, dim: int) -> Question:
    """Tell ids from vectors: a flat list of strings, or of integers where ids are integers, is a list of ids."""
    if isinstance(asked, str | int | np.integer):
        return Question(find_rows(ids, [asked]), None, True)
    array = _as_array(asked)
    if array.ndim == 1 and (array.dtype.kind in "UO" or (array.dtype.kind in "iu" and ids.dtype.kind == "i")):
        return Question(find_rows(ids, asked), None, False)
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiu":
        raise EmbeddingError(f"{asked!r} is neither a node's id nor a vector of {dim} numbers")
    if array.shape[-1] != dim:
        raise EmbeddingError(f"a vector of {dim} numbers is needed, not shape {array.shape}")
    vectors = array.astype(np.float32).reshape(-1, dim)
    if not np.isfinite(vectors).all():
        raise EmbeddingError("the vector holds NaN or infinity, and so has no direction; give finite numbers")
    return Question(None, vectors, array.ndim == 1)


def _as_array(asked: Any) -> np.ndarray:
    try:
        return np.asarray(asked)
    except ValueError:  # lists of different lengths
        return np.empty((), object)


def find_rows(ids: np.ndarray | StoredColumn, wanted: Any) -> np.ndarray:
    """The rows of nodes, by their ids; one that is unknown is refused."""
    asked = as_ids(wanted, error=EmbeddingError)
    if len(asked) == 0:
        return np.empty(0, np.int64)
    if asked.dtype.kind != ids.dtype.kind:
        raise unknown(ids, asked[0].item())
    if isinstance(ids, StoredColumn):
        distinct, places = np.unique(asked, return_inverse=True)
        rows = ids.find(distinct)[places]
    else:
        rows = np.flatnonzero(ids == asked[0]) if len(asked) == 1 else locate(ids, asked)
    if len(rows) != len(asked) or rows.min() < 0:
        raise unknown(ids, asked[rows < 0][0].item() if len(rows) else asked[0].item())
    return rows


def unknown(ids: np.ndarray | StoredColumn, node: Any) -> EmbeddingError:
    """The error that says which ids there are, and which of them (of parts, the first) look like the one given."""
    return EmbeddingError(about_unknown(ids[:LOOKED_AT] if isinstance(ids, StoredColumn) else ids, node))


def check_count(k: Any) -> int:
    """The number of neighbours that is asked for, refused where it makes no sense."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise EmbeddingError(f"k={k!r} makes no sense; give a whole number from 1, as in k=10")
    return int(k)


def as_answers(
    ids: np.ndarray | StoredColumn, rows: Sequence[np.ndarray] | np.ndarray, cosines: Iterable[np.ndarray], single: bool
) -> Any:
    """Rows and cosines as lists of ids with their cosine: one list for one question, else a list of lists."""
    if isinstance(ids, StoredColumn):  # read once, for all questions
        found = np.unique(np.concatenate([np.empty(0, np.int64), *rows]))
        found = found[found >= 0]
        ids, rows = ids[found], [np.where(one < 0, -1, np.searchsorted(found, one)) for one in rows]
    answers = [_as_answer(ids, *one) for one in zip(rows, cosines, strict=True)]
    return answers[0] if single else answers


def _as_answer(ids: np.ndarray, rows: np.ndarray, cosines: np.ndarray) -> Answer:
    found = rows >= 0
    return list(zip(ids[rows[found]].tolist(), cosines[found].tolist(), strict=True))
