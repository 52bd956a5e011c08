"""Vectors to files and back, one writer and one reader per suffix.

====================  ==========================================================  ==================
suffix                what a line or a member is                                  keeps provenance
====================  ==========================================================  ==================
``.npz``              arrays ``vectors``, ``ids``, ``provenance`` (JSON text)     yes
``.txt`` ``.w2v``     word2vec text: ``nodes dim``, then ``id v1 v2 …``           no
``.tsv``              a header ``id d0 d1 …``, then one node per line, by tabs    no
``.parquet``          columns ``id d0 d1 …``                                      yes
``.vec`` ``.emb``     word2vec text, read only                                    no
``.bin``              word2vec binary, read only                                  no
``.npy``              one array, read only; its ids in a file of their own        no
====================  ==========================================================  ==================

They are written block by block, so the whole table of vectors need never exist in memory. Text
holds the shortest decimal that reads back as the same float32.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from neural_brane.embedding import Embedding, tidy_ids
from neural_brane.errors import EmbeddingError
from neural_brane.io.atomic import atomic
from neural_brane.io.vector_text import (
    columns,
    frames,
    read_tsv,
    read_word2vec,
    read_word2vec_binary,
    typed,
    write_tsv,
    write_word2vec,
)

if TYPE_CHECKING:
    import polars

Blocks = Iterable[np.ndarray]


def write_vectors(
    path: str | Path, ids: Any, blocks: Blocks, *, dim: int, provenance: dict[str, Any] | None = None
) -> None:
    """Write vectors, given as blocks of rows in the order of `ids`, to a file of the kind its suffix says.

    The file appears under its name only when it is complete.
    """
    ids = tidy_ids(ids)
    check_target(path, ids)
    checked = _checked(blocks, len(ids), dim)
    with atomic(path) as temporary:
        _WRITERS[Path(path).suffix](Path(temporary), ids, checked, dim, json.dumps(provenance or {}))


def read_vectors(path: str | Path, *, ids: str | Path | None = None) -> Embedding:
    """Read a file of vectors; all-integer ids become integers, others stay strings.

    `ids` is a file with one id per line, in the order of the rows, for an .npy file; without it the ids are the
    rows' numbers, from 0. Other formats hold their own.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix)
    if reader is None:
        raise EmbeddingError(f"{path}: cannot tell its format; name a file ending in {_READABLE}")
    if not path.is_file():
        raise EmbeddingError(f"{path}: no such file; make one with 'brane embed SOURCE -o {path}'")
    if ids is not None and path.suffix != ".npy":
        raise EmbeddingError(f"{path}: holds its own ids; leave out {ids}, which goes with an .npy file")
    try:
        return reader(path) if ids is None else _read_npy(path, Path(ids))
    except UnicodeDecodeError as error:
        raise EmbeddingError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None
    except EmbeddingError as error:
        message = str(error)
        raise EmbeddingError(message if message.startswith(str(path)) else f"{path}: {message}") from None


def check_target(path: str | Path, ids: np.ndarray | None = None) -> None:
    """Refuse, before any work is done, a path that vectors with these ids cannot be written to."""
    path = Path(path)
    if path.suffix not in _WRITERS:
        raise EmbeddingError(f"{path}: cannot tell its format; name a file ending in {_SUFFIXES}")
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise EmbeddingError(f"{path}: '{folder}' is not a folder that can be written to; choose another")
    if path.is_dir():
        raise EmbeddingError(f"{path}: is a folder; name a file in it")
    if ids is None or ids.dtype.kind != "U" or path.suffix in (".npz", ".parquet"):
        return
    for node in ids.tolist():
        if path.suffix == ".tsv" and (not node or set(node) & {"\t", "\n", "\r"}):
            raise EmbeddingError(f"{path}: a .tsv file cannot hold id {node!r}; write .npz or .parquet instead")
        if path.suffix != ".tsv" and node.split() != [node]:
            raise EmbeddingError(
                f"{path}: word2vec text separates by spaces and cannot hold id {node!r}; "
                "write .tsv, .npz or .parquet instead"
            )


def _checked(blocks: Blocks, rows: int, dim: int) -> Iterator[np.ndarray]:
    """The blocks as contiguous float32, once they are known to be what was announced."""
    done = 0
    for block in blocks:
        if block.ndim != 2 or block.shape[1] != dim:
            raise EmbeddingError(f"a block of vectors has shape {block.shape}; (rows, {dim}) was announced")
        done += len(block)
        if done > rows:
            raise EmbeddingError(f"more vectors were given than the {rows} ids")
        yield np.ascontiguousarray(block, dtype="<f4")
    if done < rows:
        raise EmbeddingError(f"{done} vectors were given for {rows} ids")


# ------------------------------------------------------------------------------------------------ .npz


def _write_npz(path: Path, ids: np.ndarray, blocks: Iterator[np.ndarray], dim: int, provenance: str) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (len(ids), dim)}
    with zipfile.ZipFile(path, "w") as archive:
        with _member(archive, "vectors") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(block.data)
        for name, content in (("ids", ids), ("provenance", np.array(provenance))):
            with _member(archive, name) as file:
                np.lib.format.write_array(file, content, allow_pickle=False)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    # A ZipInfo carries a fixed date: the same vectors give the same file, byte for byte.
    return archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True)


def _read_npz(path: Path) -> Embedding:
    try:
        with np.load(path, allow_pickle=False) as archive:
            if "adj_indptr" in archive:
                raise EmbeddingError(f"{path}: is a graph, not vectors; make them with 'brane embed {path} -o FILE'")
            vectors, ids = archive["vectors"], archive["ids"]
            provenance = json.loads(archive["provenance"].item()) if "provenance" in archive else {}
    except KeyError as error:
        raise EmbeddingError(f"{path}: {error.args[0]}; arrays 'vectors' and 'ids' were expected") from None
    except (ValueError, TypeError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise EmbeddingError(f"{path}: not a readable .npz of vectors ({error})") from None
    return Embedding(vectors, ids, provenance)


# ------------------------------------------------------------------------------------------------ .npy


def _read_npy(path: Path, ids: Path | None = None) -> Embedding:
    try:
        vectors = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise EmbeddingError(f"{path}: not a readable .npy file ({error})") from None
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2:
        raise EmbeddingError(f"{path}: holds no table; save one array of shape (nodes, dim)")
    if ids is None:
        return Embedding(vectors, np.arange(len(vectors)))
    if not ids.is_file():
        raise EmbeddingError(f"{path}: there is no file of ids {ids}; give one with an id on each line")
    names = ids.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    if len(names) != len(vectors):
        raise EmbeddingError(f"{path} has {len(vectors):,} rows, {ids} {len(names):,} lines; give one id per row")
    return Embedding(vectors, typed([name.rstrip("\r") for name in names]))


# --------------------------------------------------------------------------------------------- .parquet


def _write_parquet(path: Path, ids: np.ndarray, blocks: Iterator[np.ndarray], dim: int, provenance: str) -> None:
    import polars
    from polars.io.plugins import register_io_source

    schema: dict[str, Any] = {"id": polars.Int64 if ids.dtype.kind == "i" else polars.String}
    schema |= dict.fromkeys(columns(dim), polars.Float32)
    failure: list[Exception] = []

    def source(*_: Any) -> Iterator[polars.DataFrame]:
        try:
            yield from frames(ids, blocks)
        except Exception as error:  # polars would wrap it in an error of its own
            failure.append(error)
            raise

    # An open file, not its name: polars would make the file from a thread of its own, even after a failure here.
    with open(path, "wb") as file:
        try:
            register_io_source(source, schema=schema).sink_parquet(
                file, compression="uncompressed", row_group_size=16_384, metadata={"provenance": provenance}
            )
        except Exception as error:
            raise (failure[0] if failure else error) from None


def _read_parquet(path: Path) -> Embedding:
    import polars

    try:
        table = polars.read_parquet(path)
        provenance = json.loads(polars.read_parquet_metadata(path).get("provenance", "{}"))
    except (polars.exceptions.PolarsError, ValueError) as error:
        raise EmbeddingError(f"{path}: not a readable Parquet file ({error})") from None
    if "id" not in table.columns or table.width < 2:
        raise EmbeddingError(f"{path}: has columns {table.columns[:4]}; 'id' and then the numbers were expected")
    ids = table.drop_in_place("id")
    vectors = np.empty(table.shape, dtype=np.float32)
    for column, series in enumerate(table):
        if not series.dtype.is_numeric():
            raise EmbeddingError(f"{path}: column '{series.name}' holds {series.dtype}, not numbers")
        vectors[:, column] = series.to_numpy()
    return Embedding(vectors, ids.to_numpy(), provenance)


_Writer = Callable[[Path, np.ndarray, Iterator[np.ndarray], int, str], None]
_WRITERS: dict[str, _Writer] = {
    ".npz": _write_npz,
    ".txt": write_word2vec,
    ".w2v": write_word2vec,
    ".tsv": write_tsv,
    ".parquet": _write_parquet,
}
_READERS: dict[str, Callable[[Path], Embedding]] = {
    ".npz": _read_npz,
    ".txt": read_word2vec,
    ".w2v": read_word2vec,
    ".tsv": read_tsv,
    ".parquet": _read_parquet,
    ".vec": read_word2vec,
    ".emb": read_word2vec,
    ".bin": read_word2vec_binary,
    ".npy": _read_npy,
}
_SUFFIXES = ".npz, .txt or .w2v (word2vec text), .tsv or .parquet"
_READABLE = f"{_SUFFIXES}; .vec or .emb (word2vec text), .bin (word2vec binary) or .npy"
