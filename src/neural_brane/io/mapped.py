"""Vectors as they lie on the disk: a large file opens in moments, and takes no memory until its rows are looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.graph.ids import as_ids
from neural_brane.io import npz
from neural_brane.io.vector_arrays import LAYER, parse_provenance
from neural_brane.io.vector_table import VectorTable
from neural_brane.io.vectors import read_vectors

BLOCK_ROWS = 65_536  # looked at together: a few MB


def map_vectors(path: str | Path) -> VectorTable:
    """Map the vectors of an .npz file that holds them uncompressed as float32, and read those of any other file.

    The same files are refused as by `read_vectors`, with the same words.
    """
    path = Path(path)
    if path.suffix == ".npz" and path.is_file():
        with npz.open_npz(path, EmbeddingError, "arrays 'vectors' and 'ids'") as archive:
            table = _mapped(path, archive) if {"vectors", "ids"} <= set(archive.names) else None
        if table is not None:
            return table
    return read_vectors(path)


def _mapped(path: Path, archive: npz.Npz) -> VectorTable | None:
    """The arrays of an .npz file, the vectors as they lie; None where they cannot be had so."""
    vectors = archive.map("vectors")
    if vectors is None or vectors.dtype != np.dtype("<f4") or vectors.ndim != 2:
        return None
    for at in range(0, len(vectors), BLOCK_ROWS):
        if not (finite := np.isfinite(vectors[at : at + BLOCK_ROWS]).all(axis=1)).all():
            row = at + int(np.argmin(finite)) + 1
            raise EmbeddingError(f"{path}: vector {row} holds NaN or infinity; give finite numbers, or remove it")
    layer = (archive[LAYER[0]], archive[LAYER[1]]) if all(name in archive for name in LAYER) else None
    provenance = parse_provenance(path, archive["provenance"]) if "provenance" in archive else {}
    ids = as_ids(archive["ids"], what=f"{path}: ids", error=EmbeddingError)
    return VectorTable(vectors, ids, provenance, layer)
