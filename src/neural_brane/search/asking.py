"""Nodes are asked about: the nearest ones and cosines, of vectors in memory or of parts in a folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from neural_brane.io.vector_parts import StoredColumn, StoredRows
from neural_brane.search.exact import compare, mean_vector, nearest_rows
from neural_brane.search.questions import as_answers, check_count, understand


def nearest_nodes(
    vectors: np.ndarray | StoredRows, ids: np.ndarray | StoredColumn, target: Any, k: Any, *, center: bool
) -> Any:
    """The `k` nodes nearest to ids or vectors, with their cosine, as `Embedding.nearest` gives them."""
    wanted = check_count(k)
    question = understand(target, ids, vectors.shape[1])
    mean = mean_vector(vectors) if center else None
    found = nearest_rows(vectors, question.queries(vectors), wanted, question.rows, center=mean)
    return as_answers(ids, found.rows, found.cosines, question.single)


def similarities(
    vectors: np.ndarray | StoredRows,
    ids: np.ndarray | StoredColumn,
    one: Any,
    other: Any,
    *,
    matrix: bool,
    center: bool,
) -> Any:
    """The cosines of ids or vectors, as `Embedding.similarity` gives them."""
    asked = [understand(target, ids, vectors.shape[1]) for target in (one, other)]
    mean = mean_vector(vectors) if center else np.zeros(vectors.shape[1], np.float32)
    tables = [question.queries(vectors) - mean for question in asked]
    cosines = compare(*tables, matrix=matrix)
    return float(cosines.item()) if asked[0].single and asked[1].single and not matrix else cosines
