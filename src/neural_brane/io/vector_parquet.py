"""Vectors as Parquet: columns `id d0 d1 …`, with the provenance in the file's metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.io.vector_table import VectorTable, as_frames, column_names
from neural_brane.memory import require_memory

if TYPE_CHECKING:
    import polars


def write_parquet(path: Path, ids: np.ndarray, blocks: Iterable[np.ndarray], dim: int, provenance: str) -> None:
    """Write the blocks through Polars' streaming engine, so that the whole table is never in memory."""
    import polars
    from polars.io.plugins import register_io_source

    schema: dict[str, Any] = {"id": polars.Int64 if ids.dtype.kind == "i" else polars.String}
    schema |= dict.fromkeys(column_names(dim), polars.Float32)
    failure: list[Exception] = []

    def source(*_: Any) -> Iterator[polars.DataFrame]:
        try:
            yield from as_frames(ids, blocks)
        except Exception as error:  # Polars would wrap it in an error of its own
            failure.append(error)
            raise

    # An open file, not its name: given a name, Polars makes the file from a thread of its own, even after a failure.
    with open(path, "wb") as file:
        try:
            register_io_source(source, schema=schema).sink_parquet(
                file, compression="uncompressed", row_group_size=16_384, metadata={"provenance": provenance}
            )
        except Exception as error:
            raise (failure[0] if failure else error) from None


def read_parquet(path: Path) -> VectorTable:
    """Read a column `id` and, as the vectors, all other columns."""
    import polars

    try:
        scanned = polars.scan_parquet(path)
        numbers = scanned.select(polars.len()).collect().item() * len(scanned.collect_schema())
        require_memory(8 * numbers, f"{path}: reading {numbers:,} numbers", "use a machine with more memory")
        table = polars.read_parquet(path)
        provenance = json.loads(polars.read_parquet_metadata(path).get("provenance", "{}"))
    except (polars.exceptions.PolarsError, ValueError) as error:
        raise EmbeddingError(f"{path}: not a readable Parquet file ({error})") from None
    if "id" not in table.columns or table.width < 2:
        raise EmbeddingError(f"{path}: has columns {table.columns[:4]}; 'id' and then the numbers were expected")
    ids = table.drop_in_place("id")
    vectors = np.empty(table.shape, dtype=np.float32)
    for column, series in enumerate(table):
        if not series.dtype.is_numeric():
            raise EmbeddingError(f"{path}: column '{series.name}' holds {series.dtype}, not numbers")
        vectors[:, column] = series.to_numpy()
    return VectorTable(vectors, ids.to_numpy(), provenance)
