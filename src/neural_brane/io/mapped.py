"""Vectors that stay in their file: memory-mapped, so that only what is looked at is read."""

from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

from neural_brane.errors import EmbeddingError, PartError
from neural_brane.graph.ids import as_ids
from neural_brane.io import npz
from neural_brane.io.vector_arrays import read_members
from neural_brane.io.vector_parts import is_parts
from neural_brane.io.vector_table import VectorTable

LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a member of a zip archive; its name and extra field follow
NUMBERS = np.dtype("<f4")


def map_vectors(path: str | Path, *, check: bool = True) -> VectorTable:
    """The vectors of an .npz file, mapped; its ids and the rest are read.

    `check` reads the whole file once and compares it with its checksums; without it a million vectors are there in
    milliseconds, and a damaged file may go unnoticed.
    """
    path = Path(path)
    if is_parts(path):
        raise PartError(
            f"{path}: is a folder of parts; neural_brane.search.EmbeddingParts searches it without reading all"
        )
    if path.suffix != ".npz":
        raise EmbeddingError(f"{path}: only .npz files can be mapped; write one with Embedding.load(…).save('v.npz')")
    if not path.is_file():
        raise EmbeddingError(f"{path}: no such file; make one with 'brane embed SOURCE -o {path}'")

    def mapped(archive: npz.Npz) -> np.ndarray:
        if check:
            archive.verify("vectors")
        return _mapped(path)

    table = read_members(path, mapped)
    return table._replace(ids=as_ids(table.ids, what=f"{path}: ids", error=EmbeddingError))


def _mapped(path: Path) -> np.ndarray:
    try:
        shape, offset = _find(path, "vectors.npy")
    except npz.DAMAGE as failure:
        raise EmbeddingError(
            f"{path}: its vectors cannot be mapped ({failure}); write it again with Embedding.load(…).save('v.npz')"
        ) from None
    if 0 in shape:
        return np.zeros(shape, NUMBERS)
    return np.memmap(path, NUMBERS, "r", offset, shape)


def _find(path: Path, member: str) -> tuple[tuple[int, int], int]:
    """The shape of an uncompressed table of float32 in an archive, and the place in the file where it begins."""
    with zipfile.ZipFile(path) as archive:
        about = archive.getinfo(member)
    if about.compress_type != zipfile.ZIP_STORED:
        raise ValueError("they are compressed")
    with path.open("rb") as file:
        file.seek(about.header_offset)
        mark, name, extra = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
        if mark != b"PK\3\4":
            raise ValueError("the archive's directory leads elsewhere")
        begin = file.seek(name + extra, os.SEEK_CUR)
        shape = _read_shape(file)
        length = shape[0] * shape[1] * NUMBERS.itemsize
        if length != about.file_size - (file.tell() - begin) or file.tell() + length > os.fstat(file.fileno()).st_size:
            raise ValueError("the file is cut off or damaged")
        return shape, file.tell()


def _read_shape(file: IO[bytes]) -> tuple[int, int]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, kind = read(file)
    if kind != NUMBERS or by_columns or len(shape) != 2:
        raise ValueError(f"they are {kind}{', by columns' if by_columns else ''}, shape {shape}, not rows of float32")
    return shape[0], shape[1]
