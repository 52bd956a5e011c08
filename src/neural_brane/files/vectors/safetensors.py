"""Vectors in safetensors files: the tensor `embeddings`, and `ids`, integers or the bytes of a JSON list of strings."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.files import tensors
from neural_brane.files.reading import check_file
from neural_brane.files.storage import parse_json
from neural_brane.files.vectors.table import EVERYTHING, MADE_FROM, Content, VectorFormat, VectorTable

KIND = tensors.FileKind(
    "file of vectors", "1", EmbeddingError, "make it again, or copy it again",
    "read it with the version of neural-brane that wrote it", "vectors",
)  # fmt: skip
VECTORS, IDS = "embeddings", "ids"


def write_safetensors(content: Content, path: Path) -> None:
    """Write the header, the vectors block by block, the other arrays and the checksum."""
    ids = np.asarray(content.ids)
    others = {IDS: ids if ids.dtype.kind == "i" else _as_bytes(ids)}
    if content.made_from is not None:
        others[MADE_FROM] = _as_bytes(np.asarray(content.made_from))
    shaped = np.broadcast_to(np.float32(0), (len(content.ids), content.dim))  # has the shape but takes no memory
    about = {"provenance": json.loads(content.provenance)}
    with open(path, "wb") as file:
        tensors.write_parts(file, KIND, about, {VECTORS: shaped} | others, chain(content.blocks, others.values()))


def _as_bytes(texts: np.ndarray) -> np.ndarray:
    return np.frombuffer(json.dumps(texts.tolist(), ensure_ascii=False).encode(), np.uint8)


def read_safetensors(path: Path) -> VectorTable:
    """Read the tensor `embeddings`, or the only table of another program's file; without ids, use row numbers."""
    check_file(path, EmbeddingError)
    header = tensors.list_arrays(path, EmbeddingError)
    if header.metadata.keys() & {"checksum", "about", "kind"}:
        about, arrays = tensors.read(path, KIND)
        provenance = about.get("provenance", {})
    else:
        provenance, arrays = {}, tensors.read_arrays(path, header)
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    name = VECTORS if VECTORS in tables else tables[0] if len(tables) == 1 else None
    if name is None:
        raise EmbeddingError(f"{path}: has tensors {list(arrays)[:4]}, expected '{VECTORS}' of shape (nodes, dim)")
    ids = arrays.get(IDS, np.arange(len(arrays[name])))
    made_from = _texts(path, MADE_FROM, arrays[MADE_FROM]) if MADE_FROM in arrays else None
    ids = _texts(path, IDS, ids) if ids.dtype == np.uint8 else ids
    return VectorTable(arrays[name], ids, provenance, made_from)


def _texts(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    """Return the strings (nodes,) that a tensor of bytes contains as JSON text."""
    try:
        texts: Any = parse_json(array.tobytes())
    except ValueError:
        texts = None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise EmbeddingError(f"{path}: its tensor '{name}' is not the JSON text of a list of strings; write it again")
    return np.array(texts, dtype=str)


FORMAT = VectorFormat(
    ".safetensors", "tensors embeddings and ids", read_safetensors, write_safetensors, keeps=EVERYTHING,
    checksums=True, number_bytes=4,
)  # fmt: skip
