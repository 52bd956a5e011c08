"""Vectors as Parquet: a column `id` and one of arrays, `vector`, with the provenance as metadata, and a checksum.

Arrow, pandas, Polars and DuckDB take the column as vectors. A file whose name ends in `.columns.parquet` has a column
for each number instead, `d0 d1 …`, as files of earlier versions do; both are read.

Polars writes no checksums, and a damaged file can end the whole process when it is read. So the SHA-256 of the file
stands before its last part, the footer, where other programs do not look, and is compared before Polars sees the file.
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
from neural_brane.files.vectors.table import (
    MADE_FROM,
    MARK,
    PROVENANCE,
    RECORD,
    Content,
    VectorFormat,
    VectorTable,
    as_frames,
    check_digest,
    column_names,
    parse_provenance,
)
from neural_brane.graph.lazy import pl
from neural_brane.graph.memory import require_memory

ROW_GROUP = 16_384  # rows that are written, and can be read, together


def write_parquet(content: Content, path: Path) -> None:
    """Write the columns `id` and `vector`, an array of `dim` numbers, and `made_from` where it is known."""
    schema: dict[str, Any] = {"id": pl.Int64 if content.ids.dtype.kind == "i" else pl.String}
    schema["vector"] = pl.Array(pl.Float32, content.dim)
    if content.made_from is not None:
        schema["made_from"] = pl.String
    write_frames(path, schema, _vector_frames(content), content.provenance)


def write_columns(content: Content, path: Path) -> None:
    """Write the columns `id d0 d1 …`, for programs that know no columns of arrays."""
    schema: dict[str, Any] = {"id": pl.Int64 if content.ids.dtype.kind == "i" else pl.String}
    schema |= dict.fromkeys(column_names(content.dim), pl.Float32)
    write_frames(path, schema, as_frames(content), content.provenance)


def _vector_frames(content: Content) -> Iterator[pl.DataFrame]:
    done = 0
    for ids, block in content.with_ids():
        frame = pl.DataFrame({"id": ids, "vector": pl.Series(block, dtype=pl.Array(pl.Float32, content.dim))})
        if content.made_from is not None:
            frame = frame.with_columns(pl.Series("made_from", content.made_from[done : done + len(block)]))
        done += len(block)
        yield frame


def write_frames(path: Path, schema: dict[str, Any], frames: Iterator[pl.DataFrame], provenance: str) -> None:
    """Write frames through Polars' streaming engine, so that the whole table is never in memory; then the checksum."""
    from polars.io.plugins import register_io_source

    failure: list[Exception] = []

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        try:
            yield from frames
        except Exception as error:  # Polars would wrap it in an error of its own
            failure.append(error)
            raise

    # An open file, not its name: given a name, Polars makes the file from a thread of its own, even after a failure.
    with open(path, "wb") as file:
        try:
            register_io_source(source, schema=schema).sink_parquet(
                file, compression="uncompressed", row_group_size=ROW_GROUP, metadata={"provenance": provenance}
            )
        except Exception as error:
            if failure:
                raise failure[0] from None
            raise OSError(str(error)) from None  # the frames are sound, so the file is what failed
    _add_checksum(path)


def _add_checksum(path: Path) -> None:
    """Put the mark and the digest of all other bytes before the footer, whose length stands before the last 4 bytes."""
    with open(path, "r+b") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(-8, 2)
        length = int.from_bytes(file.read(4), "little")
        place = file.seek(-8 - length, 2)
        footer = file.read()
        file.seek(place)
        file.write(MARK + digest.encode() + footer)


def _has_checksum(path: Path) -> bool:
    """Whether a file has a digest; refuse one whose bytes are not those that its digest was made of."""
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
    check_digest(path, found.hexdigest(), expected)
    return True


def _unreadable(path: Path, reason: str) -> EmbeddingError:
    return EmbeddingError(f"{path}: not a readable Parquet file, or it is damaged ({reason}); make it again")


def read_parquet(path: Path) -> VectorTable:
    """Read a column `id` and, as the vectors, a column of arrays or lists; else all other columns, a number in each."""
    if not _has_checksum(path):  # a file of another program, which could end the process that reads it
        with open(path, "rb") as file:
            if reason := why_unreadable("Parquet", file):
                raise _unreadable(path, reason)
    try:
        scanned = pl.scan_parquet(path)
        schema = scanned.collect_schema()
        width = sum(getattr(kind, "size", 1) for kind in schema.values())  # an array's numbers
        numbers = scanned.select(pl.len()).collect().item() * width
        require_memory(8 * numbers, f"{path}: reading {numbers:,} numbers", "use a machine with more memory")
        table = pl.read_parquet(path)
        text = pl.read_parquet_metadata(path).get("provenance", "{}")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise _unreadable(path, str(error).partition("\n")[0]) from None
    if "id" not in table.columns or table.width < 2:
        raise EmbeddingError(f"{path}: has columns {table.columns[:4]}; 'id' and then the numbers were expected")
    ids = _complete(path, table.drop_in_place("id"))
    made_from = None
    if nested := [series for series in table if series.dtype.is_nested()]:
        vectors = vectors_of(path, nested)
        if "made_from" in table.columns and table["made_from"].dtype == pl.String:
            made_from = _complete(path, table["made_from"]).to_numpy().astype(str)
    else:
        vectors = np.empty(table.shape, dtype=np.float32)
        for column, series in enumerate(table):
            if not _complete(path, series).dtype.is_numeric():
                raise EmbeddingError(f"{path}: column '{series.name}' holds {series.dtype}, not numbers")
            vectors[:, column] = series.to_numpy()
    return VectorTable(vectors, ids.to_numpy(), parse_provenance(path, text), made_from=made_from)


def _complete(path: Path, series: pl.Series) -> pl.Series:
    """Refuse a column with missing values."""
    if series.null_count():
        raise EmbeddingError(
            f"{path}: column '{series.name}' has missing values; give every node an id and all its numbers"
        )
    return series


def vectors_of(path: Path, nested: list[pl.Series]) -> np.ndarray:
    """Vectors that stand in one column: `vector`, or the only one of arrays or lists."""
    chosen = [series for series in nested if series.name == "vector"] or nested
    if len(chosen) > 1:
        names = ", ".join(f"'{series.name}'" for series in chosen)
        raise EmbeddingError(f"{path}: columns {names} could all be the vectors; name one of them 'vector'")
    series = _complete(path, chosen[0])
    if not isinstance(series.dtype, pl.Array | pl.List) or not series.dtype.inner.is_numeric():
        raise EmbeddingError(f"{path}: column '{series.name}' holds {series.dtype}, not vectors of numbers")
    lists = series.arr.to_list() if isinstance(series.dtype, pl.Array) else series
    lengths = lists.list.len().unique().to_list() if len(lists) else [getattr(series.dtype, "size", 1)]
    if len(lengths) != 1 or not lengths[0]:
        raise EmbeddingError(
            f"{path}: column '{series.name}' holds vectors of {min(lengths)} to {max(lengths)} numbers; "
            "give all of them as many, at least one"
        )
    numbers = _complete(path, lists.explode())
    return numbers.to_numpy().astype(np.float32, copy=False).reshape(len(series), lengths[0])


FORMAT = VectorFormat(
    ".parquet",
    "columns id and vector, an array of float32",
    read_parquet,
    write_parquet,
    keeps=(PROVENANCE, MADE_FROM),
    checksums=True,
    number_bytes=5,
)
COLUMNS = VectorFormat(
    ".columns.parquet",
    "columns id, d0, d1, …, one for each number",
    read_parquet,
    write_columns,
    keeps=(PROVENANCE,),
    checksums=True,
    number_bytes=4,
)
