"""A folder of vectors in one piece, and one piece of vectors as a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError, PartError
from neural_brane.io.atomic import check_writable
from neural_brane.io.manifest import MANIFEST
from neural_brane.io.vector_parts.columns import StoredColumn, StoredRows
from neural_brane.io.vector_parts.format import Kind
from neural_brane.io.vector_parts.reading import BLOCK_ROWS, open_parts
from neural_brane.io.vector_parts.writing import PartWriter, check_replaceable, finish
from neural_brane.io.vector_table import VectorTable
from neural_brane.memory import require_memory

MOST_PARTS = 99_999


def read_whole(folder: Path) -> VectorTable:
    """Read all vectors of a folder into memory, compared with their checksums."""
    parts = open_parts(folder)
    size = parts.nodes * (4 * parts.dim + parts.ids.dtype.itemsize)
    require_memory(
        size,
        f"{folder}: reading {parts.nodes:,} vectors of {parts.dim} numbers",
        "search them where they are with 'brane nearest' or neural_brane.search.EmbeddingParts",
    )
    parts.check()
    vectors = np.empty((parts.nodes, parts.dim), np.float32)
    for at in range(0, parts.nodes, BLOCK_ROWS):
        vectors[at : at + BLOCK_ROWS] = parts.vectors[at : at + BLOCK_ROWS]
    made_from = None if parts.made_from is None else np.asarray(parts.made_from)
    return VectorTable(vectors, np.asarray(parts.ids), parts.provenance, parts.layer, made_from)


def finite_blocks(path: Path, vectors: np.ndarray | StoredRows, rows: int = BLOCK_ROWS) -> Iterator[np.ndarray]:
    """The vectors of a file or folder, some rows at a time; NaN and infinity, which have no distance, are refused."""
    for at in range(0, len(vectors), rows):
        block = vectors[at : at + rows]
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            row = at + int(np.argmin(finite)) + 1
            raise EmbeddingError(f"{path}: vector {row} holds NaN or infinity; give finite numbers, or remove it")
        yield block


def write_parts(
    folder: Path,
    ids: np.ndarray | StoredColumn,
    vectors: np.ndarray | StoredRows,
    *,
    parts: int,
    kind: Kind = "npy",
    provenance: dict[str, Any] | None = None,
    layer: Any = None,
    made_from: np.ndarray | StoredColumn | None = None,
    tell: Callable[[int], object] | None = None,
) -> None:
    """Write vectors as a folder of so many parts, of about as many nodes each; some rows are read at a time.

    tell: a function that is called with the number of rows after each block.
    """
    check_folder(folder, parts)
    bounds = [len(ids) * part // parts for part in range(parts + 1)]
    for part, (first, end) in enumerate(pairwise(bounds)):
        with PartWriter(folder, part, first, end - first, vectors.shape[1], kind) as out:
            for at in range(first, end, BLOCK_ROWS):
                span = slice(at, min(at + BLOCK_ROWS, end))
                out.write(ids[span], vectors[span], None if made_from is None else made_from[span])
                if tell is not None:
                    tell(span.stop - at)
    finish(folder, parts, provenance=provenance, layer=layer)


def check_folder(folder: Path, parts: int) -> Path:
    """Refuse, before the work, a number of parts that makes no sense and a path that can be no folder of them.

    Returns the path of the manifest.
    """
    if not 1 <= parts <= MOST_PARTS:
        raise PartError(f"{parts} parts make no sense; give a number from 1 to {MOST_PARTS:,}")
    if folder.exists() and not folder.is_dir():
        raise PartError(f"{folder}: names a file, and parts are written to a folder; name a folder")
    check_replaceable(folder)
    check_writable(folder / MANIFEST, PartError)
    return folder / MANIFEST
