"""Vectors as data frames, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neural_brane.errors import DependencyError, EmbeddingError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def to_pandas(ids: np.ndarray, vectors: np.ndarray) -> pd.DataFrame:
    """A pandas data frame: columns d0, d1, …, and the ids as its index."""
    try:
        import pandas as pd
    except ImportError as error:
        raise DependencyError("pandas is not installed; run: pip install pandas, or use to_polars") from error
    columns = [f"d{at}" for at in range(vectors.shape[1])]
    return pd.DataFrame(vectors, index=pd.Index(ids, name="id"), columns=columns)


def to_polars(ids: np.ndarray, vectors: np.ndarray) -> pl.DataFrame:
    """A polars data frame: columns id, d0, d1, …"""
    import polars as pl

    return pl.DataFrame({"id": ids} | {f"d{at}": column for at, column in enumerate(vectors.T)})


def from_polars(frame: pl.DataFrame, id: str) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of a polars data frame of numbers, and the ids in its column `id`."""
    if id not in frame.columns:
        raise EmbeddingError(f"the frame has no column '{id}' for ids; give id=, one of {', '.join(frame.columns[:5])}")
    return frame.drop(id).to_numpy(), frame[id].to_numpy()
