"""Vectors as Parquet: columns `id d0 d1 …`, with the provenance in the file's metadata, and a checksum.

Polars writes no checksums, and a damaged file can end the whole process when it is read. So the SHA-256 of the file
stands before its last part, the footer, where other programs do not look, and is compared before Polars sees the file.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.io.trial import why_unreadable
from neural_brane.io.vector_table import VectorTable, as_frames, column_names
from neural_brane.memory import require_memory

if TYPE_CHECKING:
    import polars

MARK = b"neural-brane sha256 1:"  # what stands before the digest; 1 is the version of this format
RECORD = len(MARK) + 2 * hashlib.sha256().digest_size  # bytes of the mark and the digest


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
    if found.hexdigest().encode() != expected:
        raise EmbeddingError(
            f"{path}: the file is damaged, cut off or changed: it is not what its checksum says; make it again, or "
            "copy it anew"
        )
    return True


def _try(path: Path) -> None:
    """Refuse a file of another program that Polars cannot read, or that would end the process which reads it."""
    with open(path, "rb") as file:
        if reason := why_unreadable("Parquet", file):
            raise _unreadable(path, reason)


def _unreadable(path: Path, reason: str) -> EmbeddingError:
    return EmbeddingError(f"{path}: not a readable Parquet file, or it is damaged ({reason}); make it again")


def read_parquet(path: Path) -> VectorTable:
    """Read a column `id` and, as the vectors, all other columns."""
    import polars

    if not _has_checksum(path):
        _try(path)
    try:
        scanned = polars.scan_parquet(path)
        numbers = scanned.select(polars.len()).collect().item() * len(scanned.collect_schema())
        require_memory(8 * numbers, f"{path}: reading {numbers:,} numbers", "use a machine with more memory")
        table = polars.read_parquet(path)
        provenance = json.loads(polars.read_parquet_metadata(path).get("provenance", "{}"))
    except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError, ValueError) as error:
        raise _unreadable(path, str(error).partition("\n")[0]) from None
    if "id" not in table.columns or table.width < 2:
        raise EmbeddingError(f"{path}: has columns {table.columns[:4]}; 'id' and then the numbers were expected")
    if sum(missing := table.null_count().row(0)):
        column = table.columns[np.flatnonzero(missing)[0]]
        raise EmbeddingError(f"{path}: column '{column}' has missing values; give every node an id and all its numbers")
    ids = table.drop_in_place("id")
    vectors = np.empty(table.shape, dtype=np.float32)
    for column, series in enumerate(table):
        if not series.dtype.is_numeric():
            raise EmbeddingError(f"{path}: column '{series.name}' holds {series.dtype}, not numbers")
        vectors[:, column] = series.to_numpy()
    return VectorTable(vectors, ids.to_numpy(), provenance)
