"""Vectors in Parquet files: a column `id`, a column `vector` of arrays, the provenance as metadata, and a checksum.

Arrow, pandas, Polars and DuckDB read the column as vectors. A file named `.columns.parquet` has one column per number
instead, `d0 d1 …`, like files from earlier versions. Both are read.

Polars writes no checksums, and a damaged file can crash the process that reads it. So our files contain their SHA-256
before the footer, where other programs do not look. It is compared before Polars opens the file.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.files.trial import why_unreadable
from neural_brane.files.vectors import table as shared
from neural_brane.files.vectors.table import MARK, PROVENANCE, RECORD, Content, VectorFormat, VectorTable, unreadable
from neural_brane.graph.lazy import pl
from neural_brane.graph.memory import require_memory

ROW_GROUP = 16_384  # rows of one row group


def write_parquet(content: Content, path: Path) -> None:
    """Write the columns `id`, `vector` (arrays of `dim` numbers) and, if it is known, `made_from`."""
    schema: dict[str, Any] = {"id": pl.Int64 if content.ids.dtype.kind == "i" else pl.String}
    schema["vector"] = pl.Array(pl.Float32, content.dim)
    if content.made_from is not None:
        schema["made_from"] = pl.String
    write_frames(path, schema, _vector_frames(content), content.provenance)


def write_columns(content: Content, path: Path) -> None:
    """Write the columns `id d0 d1 …`, for programs without columns of arrays."""
    schema: dict[str, Any] = {"id": pl.Int64 if content.ids.dtype.kind == "i" else pl.String}
    schema |= dict.fromkeys(shared.column_names(content.dim), pl.Float32)
    write_frames(path, schema, shared.as_frames(content), content.provenance)


def _vector_frames(content: Content) -> Iterator[pl.DataFrame]:
    done = 0
    for ids, block in content.with_ids():
        frame = pl.DataFrame({"id": ids, "vector": pl.Series(block, dtype=pl.Array(pl.Float32, content.dim))})
        if content.made_from is not None:
            frame = frame.with_columns(pl.Series("made_from", content.made_from[done : done + len(block)]))
        done += len(block)
        yield frame


def write_frames(path: Path, schema: dict[str, Any], frames: Iterator[pl.DataFrame], provenance: str) -> None:
    """Write frames with Polars' streaming engine, so that the whole table is never in memory; then add the checksum."""
    from polars.io.plugins import register_io_source

    failure: list[Exception] = []

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        try:
            yield from frames
        except Exception as error:  # Polars would wrap it in another error
            failure.append(error)
            raise

    # Polars gets an open file, because from a name it would create the file in another thread, even after a failure.
    with open(path, "wb") as file:
        try:
            register_io_source(source, schema=schema).sink_parquet(
                file, compression="uncompressed", row_group_size=ROW_GROUP, metadata={"provenance": provenance}
            )
        except Exception as error:
            if failure:
                raise failure[0] from None
            raise OSError(str(error)) from None  # the frames did not fail, so writing the file did
    _add_checksum(path)


def _add_checksum(path: Path) -> None:
    """Insert the mark and the digest of all other bytes before the footer."""
    with open(path, "r+b") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")  # the length of the footer precedes the last 4 bytes
        place = file.seek(-8 - length, 2)
        footer = file.read()
        file.seek(place)
        file.write(MARK + digest.encode() + footer)


def _has_checksum(path: Path) -> bool:
    """Return whether a file contains its digest; raise an error if the digest does not match."""
    with open(path, "rb") as file:
        if not file.seek(0, 2):
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            place = content.rfind(MARK)
            if place < 0:
                return False
            found = hashlib.sha256()
            with memoryview(content) as view, view[:place] as before, view[place + RECORD :] as after:
                found.update(before)
                found.update(after)
            expected = content[place + len(MARK) : place + RECORD]
    shared.check_digest(path, found.hexdigest(), expected)
    return True


def read_parquet(path: Path) -> VectorTable:
    """Read the ids from the column `id` and the vectors from a column of arrays or lists, or from all other columns."""
    if not _has_checksum(path):  # a file from another program, which could crash this process
        with open(path, "rb") as file:
            if reason := why_unreadable("Parquet", file):
                raise unreadable(path, "Parquet", reason)
    try:
        scanned = pl.scan_parquet(path)
        schema = scanned.collect_schema()
        width = sum(getattr(kind, "size", 1) for kind in schema.values())  # arrays have a size
        numbers = scanned.select(pl.len()).collect().item() * width
        require_memory(8 * numbers, f"{path}: reading {numbers:,} numbers", "use a machine with more memory")
        table = pl.read_parquet(path)
        text = pl.read_parquet_metadata(path).get("provenance", "{}")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise unreadable(path, "Parquet", str(error).partition("\n")[0]) from None
    if "id" not in table.columns or table.width < 2:
        raise EmbeddingError(f"{path}: has columns {table.columns[:4]}, expected 'id' and columns of numbers")
    ids = _complete(path, table.drop_in_place("id"))
    made_from = None
    if nested := [series for series in table if series.dtype.is_nested()]:
        vectors = vectors_of(path, nested)
        if "made_from" in table.columns and table["made_from"].dtype == pl.String:
            made_from = _complete(path, table["made_from"]).to_numpy().astype(str)
    else:
        shared.check_titles(path, table.columns)
        vectors = np.empty(table.shape, dtype=np.float32)
        for column, series in enumerate(table):
            if not _complete(path, series).dtype.is_numeric():
                raise EmbeddingError(f"{path}: column '{series.name}' has type {series.dtype}, expected numbers")
            vectors[:, column] = series.to_numpy()
    return VectorTable(vectors, ids.to_numpy(), shared.parse_provenance(path, text), made_from=made_from)


def _complete(path: Path, series: pl.Series) -> pl.Series:
    """Return a column; raise an error if it has missing values."""
    if series.null_count():
        raise EmbeddingError(f"{path}: column '{series.name}' has missing values; give each node an id and all numbers")
    return series


def vectors_of(path: Path, nested: list[pl.Series]) -> np.ndarray:
    """Return the vectors (rows, dim) from the column `vector`, or from the only column of arrays or lists."""
    chosen = [series for series in nested if series.name == "vector"] or nested
    if len(chosen) > 1:
        names = ", ".join(f"'{series.name}'" for series in chosen)
        raise EmbeddingError(f"{path}: columns {names} could each be the vectors; name one of them 'vector'")
    series = _complete(path, chosen[0])
    if not isinstance(series.dtype, pl.Array | pl.List) or not series.dtype.inner.is_numeric():
        raise EmbeddingError(f"{path}: column '{series.name}' has type {series.dtype}, expected vectors of numbers")
    lists = series.arr.to_list() if isinstance(series.dtype, pl.Array) else series
    lengths = lists.list.len().unique().to_list() if len(lists) else [getattr(series.dtype, "size", 1)]
    if len(lengths) != 1 or not lengths[0]:
        found = f"{path}: column '{series.name}' has vectors of {min(lengths)} to {max(lengths)} numbers;"
        raise EmbeddingError(f"{found} give all vectors the same length, at least one")
    numbers = _complete(path, lists.explode())
    return numbers.to_numpy().astype(np.float32, copy=False).reshape(len(series), lengths[0])


FORMAT = VectorFormat(
    ".parquet", "columns id and vector, an array of float32", read_parquet, write_parquet,
    keeps=(PROVENANCE, shared.MADE_FROM), checksums=True, number_bytes=5,
)  # fmt: skip
COLUMNS = VectorFormat(
    ".columns.parquet", "columns id, d0, d1, …: one column per number", read_parquet, write_columns,
    keeps=(PROVENANCE,), checksums=True, number_bytes=4,
)  # fmt: skip
