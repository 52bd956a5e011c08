"""Vectors as NumPy's files: .npz with ids and provenance, and .npy, a bare array whose ids stand elsewhere."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.io.claims import check_npy, check_npz
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
    header = {"descr": "<f4", "fortran_order": False, "shape": (len(ids), dim)}
    with zipfile.ZipFile(path, "w") as archive:
        with _open_member(archive, "vectors") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(block.data)
        others = {"ids": ids, "provenance": np.array(provenance)} | dict(zip(LAYER, layer or (), strict=False))
        for name, content in others.items():
            with _open_member(archive, name) as file:
                np.lib.format.write_array(file, content, allow_pickle=False)


def _open_member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    # A ZipInfo carries a fixed date: the same vectors give the same file, byte for byte.
    return archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True)


def read_npz(path: Path) -> VectorTable:
    """Read the arrays `vectors` and `ids`, and `provenance` where there is one."""
    check_npz(path, EmbeddingError)
    try:
        with np.load(path, allow_pickle=False) as archive:
            if "adj_indptr" in archive:
                raise EmbeddingError(f"{path}: is a graph, not vectors; make them with 'brane embed {path} -o FILE'")
            provenance = json.loads(archive["provenance"].item()) if "provenance" in archive else {}
            weight, bias = (archive.get(name) for name in LAYER)
            layer = None if weight is None or bias is None else (weight, bias)
            return VectorTable(archive["vectors"], archive["ids"], provenance, layer)
    except KeyError as error:
        raise EmbeddingError(f"{path}: {error.args[0]}; arrays 'vectors' and 'ids' were expected") from None
    except (ValueError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise EmbeddingError(f"{path}: not a readable .npz of vectors ({error})") from None


def read_npy(path: Path, ids: Path | None = None) -> VectorTable:
    """Read one array; its ids are the lines of the file `ids`, or the rows' numbers where none is given."""
    check_npy(path, EmbeddingError)
    try:
        vectors = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise EmbeddingError(f"{path}: not a readable .npy file ({error})") from None
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2:
        raise EmbeddingError(f"{path}: holds no table; save one array of shape (nodes, dim)")
    if ids is None:
        return VectorTable(vectors, np.arange(len(vectors)), {})
    if not ids.is_file():
        raise EmbeddingError(f"{path}: there is no file of ids {ids}; give one with an id on each line")
    lines = ids.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if len(lines) != len(vectors):
        raise EmbeddingError(f"{path} has {len(vectors):,} rows, {ids} {len(lines):,} lines; give one id per row")
    return VectorTable(vectors, parse_ids([line.rstrip("\r") for line in lines]), {})
