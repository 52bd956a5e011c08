"""Vectors as NumPy's files: .npz with ids and provenance, and .npy, a bare array whose ids stand elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.io import npz
from neural_brane.io.claims import check_npy
from neural_brane.io.vector_table import VectorTable, parse_ids

LAYER = ("layer_weight", "layer_bias")  # the arrays of what scores pairs of vectors


def write_npz(
    path: Path,
    ids: np.ndarray,
    blocks: Iterable[np.ndarray],
    dim: int,
    provenance: str,
    layer: tuple[np.ndarray, np.ndarray] | None = None,
) -> None:
    """Write arrays `vectors`, `ids` and `provenance`, the first of them block by block, and a layer if there is one."""
    arrays: dict[str, np.ndarray | npz.Rows] = {"vectors": npz.Rows(blocks, (len(ids), dim))}
    arrays |= {"ids": ids, "provenance": np.array(provenance)} | dict(zip(LAYER, layer or (), strict=False))
    npz.write_npz(path, arrays)


def read_npz(path: Path) -> VectorTable:
    """Read the arrays `vectors` and `ids`, and `provenance` where there is one."""
    with npz.open_npz(path, EmbeddingError, "arrays 'vectors' and 'ids'") as archive:
        if "adj_indptr" in archive:
            raise EmbeddingError(f"{path}: is a graph, not vectors; make them with 'brane embed {path} -o FILE'")
        for name in ("vectors", "ids"):
            if name not in archive:
                raise EmbeddingError(f"{path}: has no array '{name}'; arrays 'vectors' and 'ids' were expected")
        layer = (archive[LAYER[0]], archive[LAYER[1]]) if all(name in archive for name in LAYER) else None
        provenance = archive["provenance"] if "provenance" in archive else np.array("{}")
        return VectorTable(archive["vectors"], archive["ids"], _parse_provenance(path, provenance), layer)


def _parse_provenance(path: Path, text: np.ndarray) -> dict[str, Any]:
    try:
        provenance = json.loads(text.item())
    except (ValueError, TypeError, RecursionError):
        provenance = None
    if not isinstance(provenance, dict):
        raise EmbeddingError(f"{path}: its array 'provenance' is not the JSON text of an object; leave it out")
    return provenance


def read_npy(path: Path, ids: Path | None = None) -> VectorTable:
    """Read one array; its ids are the lines of the file `ids`, or the rows' numbers where none is given."""
    check_npy(path, EmbeddingError)
    try:
        vectors = npz.read_npy(path)
    except npz.ObjectArrayError:
        raise EmbeddingError(
            f"{path}: holds Python objects, which are never read from a file; save plain numbers"
        ) from None
    except npz.DAMAGE:
        raise EmbeddingError(f"{path}: not a readable .npy file, or it is cut off; write it with numpy.save") from None
    if vectors.ndim != 2:
        raise EmbeddingError(f"{path}: holds no table; save one array of shape (nodes, dim)")
    if ids is None:
        return VectorTable(vectors, np.arange(len(vectors)), {})
    if not ids.is_file():
        raise EmbeddingError(f"{path}: there is no file of ids {ids}; give one with an id on each line")
    lines = ids.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if len(lines) != len(vectors):
        raise EmbeddingError(f"{path} has {len(vectors):,} rows, {ids} {len(lines):,} lines; give one id per row")
    return VectorTable(vectors, parse_ids([line.rstrip("\r") for line in lines]), {})
