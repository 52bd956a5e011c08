"""Vectors in NumPy's files: .npz, which keeps everything and can be mapped, and .npy with a file of ids beside it."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neural_brane.errors import EmbeddingError, PartError
from neural_brane.files import npz
from neural_brane.files.reading import check_file, check_npy, read_npy_header
from neural_brane.files.vectors import table as shared
from neural_brane.files.vectors.parts import finite_blocks, is_parts
from neural_brane.files.vectors.table import EVERYTHING, Content, VectorFormat, VectorTable, lacks, parse_ids
from neural_brane.graph.ids import as_ids


def write_npz(content: Content, path: Path) -> None:
    """Write the arrays `vectors` (block by block), `ids`, `provenance` and, if given, `made_from`."""
    arrays: dict[str, np.ndarray | npz.RowBlocks] = {
        "vectors": npz.RowBlocks(content.blocks, (len(content.ids), content.dim)),
        "ids": np.asarray(content.ids),
        "provenance": np.array(content.provenance),
    }
    if content.made_from is not None:
        arrays["made_from"] = np.asarray(content.made_from)
    npz.write_npz(path, arrays)


def read_members(path: Path, vectors: Callable[[npz.Npz], np.ndarray]) -> VectorTable:
    """Read an .npz file; the function `vectors` returns the vectors from the open archive."""
    with npz.open_npz(path, EmbeddingError, "arrays 'vectors' and 'ids'") as archive:
        if "adj_indptr" in archive:
            raise EmbeddingError(f"{path}: is a graph, not vectors; make them with 'brane embed {path} -o FILE'")
        for name in ("vectors", "ids"):
            if name not in archive:
                raise EmbeddingError(f"{path}: has no array '{name}', expected arrays 'vectors' and 'ids'")
        text = archive["provenance"] if "provenance" in archive else np.array("{}")
        provenance = shared.parse_provenance(path, text.item() if text.size == 1 else None)
        table = VectorTable(vectors(archive), archive["ids"], provenance)
        return table._replace(made_from=archive["made_from"]) if "made_from" in archive else table


def ids_beside(path: Path) -> Path:
    """Return the name of the file of ids beside an .npy file, such as vectors.ids.txt beside vectors.npy."""
    return path.with_suffix(".ids.txt")


def write_npy(content: Content, ids: Path, path: Path) -> None:
    """Write the vectors as one array, and the ids to a text file with one per line; the provenance is lost."""
    with open(path, "wb") as file, open(ids, "w", encoding="utf-8", newline="\n") as lines:
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(content.ids), content.dim)}
        np.lib.format.write_array_header_1_0(file, header)
        for nodes, block in content.with_ids():
            file.write(block.data)
            lines.writelines(f"{node}\n" for node in nodes.tolist())


def read_npy(path: Path, ids: Path | None = None) -> VectorTable:
    """Read one array; its ids come from the file `ids` or the file beside it, or are the row numbers."""
    check_npy(path, EmbeddingError)
    try:
        vectors = npz.read_npy(path)
    except npz.ObjectArrayError:
        raise EmbeddingError(f"{path}: contains Python objects, which are never read; save plain numbers") from None
    except npz.DAMAGE:
        raise EmbeddingError(f"{path}: not a readable .npy file, or cut off; write it with numpy.save") from None
    if vectors.ndim != 2:
        raise EmbeddingError(f"{path}: its array has shape {vectors.shape}; save one array of shape (nodes, dim)")
    if ids is None and not ids_beside(path).is_file():
        return VectorTable(vectors, np.arange(len(vectors)), {})
    ids = ids or ids_beside(path)
    if not ids.is_file():
        raise EmbeddingError(f"{path}: its file of ids {ids} does not exist; give a file with one id per line")
    check_file(ids, EmbeddingError)
    try:
        text = ids.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise EmbeddingError(f"{ids}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None
    lines = text.removesuffix("\n").split("\n") if text else []
    if len(lines) != len(vectors):
        raise EmbeddingError(f"{path}: has {len(vectors):,} rows, but {ids} has {len(lines):,}; give one id per row")
    return VectorTable(vectors, parse_ids(lines), {})


LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, name length and extra length of a member of a zip archive
NUMBERS = np.dtype("<f4")


def map_vectors(path: str | Path, *, check: bool = True) -> VectorTable:
    """Return an .npz file with its vectors mapped; `check` compares their checksum, which reads them all once."""
    path = Path(path)
    if is_parts(path):
        raise PartError(f"{path}: is a folder of parts; neural_brane.search.EmbeddingParts maps it")
    if path.suffix != ".npz":
        raise EmbeddingError(f"{path}: only .npz files can be mapped; write one with Embedding.load(…).save('v.npz')")
    if not path.is_file():
        raise EmbeddingError(f"{path}: no such file; make one with 'brane embed SOURCE -o {path}'")

    def mapped(archive: npz.Npz) -> np.ndarray:
        vectors = _mapped(path)
        if check:
            archive.verify("vectors")
            for _ in finite_blocks(path, vectors):
                pass
        return vectors

    table = read_members(path, mapped)
    return table._replace(ids=as_ids(table.ids, what=f"{path}: ids", error=EmbeddingError))


def _mapped(path: Path) -> np.ndarray:
    try:
        with zipfile.ZipFile(path) as archive:
            member = archive.getinfo("vectors.npy")
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError("they are compressed")
        with path.open("rb") as file:
            file.seek(member.header_offset)
            signature, name, extra = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
            if signature != b"PK\3\4":
                raise ValueError("the archive's directory has a wrong offset")
            begin = file.seek(name + extra, os.SEEK_CUR)
            shape, by_columns, kind = read_npy_header(file)
            if kind != NUMBERS or by_columns or len(shape) != 2:
                raise ValueError(f"they are {kind} of shape {shape}, not rows of float32")
            length, offset = shape[0] * shape[1] * NUMBERS.itemsize, file.tell()
            if length != member.file_size - (offset - begin) or offset + length > os.fstat(file.fileno()).st_size:
                raise ValueError("the file is cut off or damaged")
    except npz.DAMAGE as failure:
        advice = "write it again with Embedding.load(…).save('v.npz')"
        raise EmbeddingError(f"{path}: its vectors cannot be mapped ({failure}); {advice}") from None
    return np.memmap(path, NUMBERS, "r", offset, shape) if length else np.zeros(shape, NUMBERS)


FORMAT = VectorFormat(
    ".npz", "arrays vectors, ids and provenance", lambda path: read_members(path, lambda archive: archive["vectors"]),
    write_npz, keeps=EVERYTHING, checksums=True, number_bytes=4,
)  # fmt: skip
BARE = VectorFormat(
    ".npy", "one array; the ids, one per line, in NAME.ids.txt", read_npy, write_npy, refuses="with line ends",
    accepts=lacks("\n", "\r"), number_bytes=4, files=lambda path: [ids_beside(path), path], takes_ids=True,
)  # fmt: skip
