"""Vectors to files and back; the suffix says which format.

====================  ==========================================================  ==========  =========
suffix                what a line or a member is                                  provenance  checksums
====================  ==========================================================  ==========  =========
``.npz``              arrays ``vectors``, ``ids``, ``provenance`` (JSON text)     yes         yes
``.parquet``          columns ``id d0 d1 …``                                      yes         yes
``.txt`` ``.w2v``     word2vec text: ``nodes dim``, then ``id v1 v2 …``           no          no
``.tsv``              a header ``id d0 d1 …``, then one node per line, by tabs    no          no
``.csv``              the same by commas, ids quoted where they must be           no          no
``.vec`` ``.emb``     word2vec text, read only                                    no          no
``.bin``              word2vec binary, read only                                  no          no
``.npy``              one array, read only; its ids in a file of their own        no          no
====================  ==========================================================  ==========  =========

Vectors are written block by block, so the whole table need never exist in memory. Text holds the shortest
decimal that reads back as the same float32.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.graph.ids import as_ids
from neural_brane.io.atomic import atomic, check_space, check_target
from neural_brane.io.vector_arrays import read_npy, read_npz, write_npz
from neural_brane.io.vector_parquet import read_parquet, write_parquet
from neural_brane.io.vector_table import VectorTable
from neural_brane.io.vector_text import (
    read_csv,
    read_tsv,
    read_word2vec,
    read_word2vec_binary,
    write_csv,
    write_tsv,
    write_word2vec,
)

WRITERS: dict[str, Callable[[Path, np.ndarray, Iterable[np.ndarray], int, str], None]] = {
    ".npz": write_npz,
    ".txt": write_word2vec,
    ".w2v": write_word2vec,
    ".tsv": write_tsv,
    ".csv": write_csv,
    ".parquet": write_parquet,
}
READERS: dict[str, Callable[[Path], VectorTable]] = {
    ".npz": read_npz,
    ".txt": read_word2vec,
    ".w2v": read_word2vec,
    ".tsv": read_tsv,
    ".csv": read_csv,
    ".parquet": read_parquet,
    ".vec": read_word2vec,
    ".emb": read_word2vec,
    ".bin": read_word2vec_binary,
    ".npy": read_npy,
}
_WRITABLE = ".npz, .txt or .w2v (word2vec text), .tsv, .csv or .parquet"
_READABLE = f"{_WRITABLE}; .vec or .emb (word2vec text), .bin (word2vec binary) or .npy"

Blocks = Iterable[np.ndarray] | Callable[[], Iterable[np.ndarray]]


class VectorFile:
    """A file that vectors will be written to.

    Make it before the work: the constructor refuses a suffix without a format and a folder that cannot be
    written to. `check_ids` refuses ids that the format cannot hold and `check_size` vectors that the disk cannot,
    as soon as they are known.
    """

    def __init__(self, path: str | Path):
        self.path = check_target(path, WRITERS, _WRITABLE, EmbeddingError)
        self._checked: np.ndarray | None = None  # the ids that were found to fit

    def check_ids(self, ids: np.ndarray) -> None:
        """Refuse ids that the format cannot hold; those that were checked before are not checked again."""
        if ids is self._checked:
            return
        text = ids.dtype.kind == "U" and self.path.suffix in (".tsv", ".txt", ".w2v")
        for node in ids.tolist() if text else ():
            if self.path.suffix == ".tsv" and (not node or set(node) & {"\t", "\n", "\r"}):
                raise EmbeddingError(
                    f"{self.path}: a .tsv file cannot hold id {node!r}; write .csv, .npz or .parquet instead"
                )
            if self.path.suffix != ".tsv" and node.split() != [node]:
                raise EmbeddingError(
                    f"{self.path}: word2vec text separates by spaces and cannot hold id {node!r}; "
                    "write .csv, .npz or .parquet instead"
                )
        self._checked = ids

    def check_size(self, ids: np.ndarray, dim: int) -> None:
        """Refuse vectors of `dim` numbers that the disk has no room for."""
        check_space(self.path, expected_size(self.path.suffix, ids, dim), EmbeddingError)

    def write(
        self,
        ids: Any,
        blocks: Blocks,
        *,
        dim: int,
        provenance: dict[str, Any] | None = None,
        layer: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        """Write vectors, given as blocks of rows (k, dim) in the order of `ids`.

        The file appears under its name only when it is complete. If it cannot be written (the disk is full, the folder
        gone), an .npz file elsewhere gets the vectors and the error names it; that takes blocks which can be had
        again: a list of them, or a function that gives them. layer: the weight and bias of what scores pairs of the
        vectors; an .npz file keeps them, the other formats hold vectors alone.
        """
        ids = as_ids(ids, error=EmbeddingError)
        self.check_ids(ids)
        known = json.dumps(provenance or {})

        def write(path: Path) -> None:
            checked = _check_blocks(blocks() if callable(blocks) else blocks, len(ids), dim)
            with atomic(path) as draft:
                if path.suffix == ".npz":
                    write_npz(draft, ids, checked, dim, known, layer)
                else:
                    WRITERS[path.suffix](draft, ids, checked, dim, known)

        try:
            write(self.path)
        except OSError as failure:
            can_repeat = callable(blocks) or iter(blocks) is not blocks
            kept = _keep_elsewhere(write, self.path.stem) if can_repeat else None
            raise EmbeddingError(_not_written(self.path, failure, kept)) from failure


def expected_size(suffix: str, ids: np.ndarray, dim: int) -> int:
    """The bytes that a file of vectors will have, about: text takes some twelve for each number."""
    text = suffix not in (".npz", ".parquet")
    return len(ids) * (dim * (12 if text else 4) + ids.dtype.itemsize) + 4096


def _keep_elsewhere(write: Callable[[Path], None], stem: str) -> Path | None:
    """Write an .npz file to the first folder that takes it: for temporary files, the current one, or the user's own."""
    for parent in (tempfile.gettempdir, Path.cwd, Path.home):
        with suppress(OSError, RuntimeError):  # full too, gone, not to be written to, or nobody's home
            folder = Path(tempfile.mkdtemp(prefix="brane-", dir=parent()))
            try:
                write(folder / f"{stem}.npz")
                return folder / f"{stem}.npz"
            except OSError:
                folder.rmdir()
    return None


def _not_written(path: Path, failure: OSError, kept: Path | None) -> str:
    """What to say of vectors that could not be written where they should be."""
    reason = failure.strerror or str(failure)
    if kept is None:
        return f"{path}: could not be written ({reason}), nor could a file elsewhere; make room and run it again"
    change = (
        "move it where you want it"
        if path.suffix == ".npz"
        else f'turn it into {path.suffix}: python -c "from neural_brane import Embedding; '
        f'Embedding.load({str(kept)!r}).save({str(path)!r})"'
    )
    return f"{path}: could not be written ({reason}); the vectors are kept in {kept}: make room, and {change}"


def read_vectors(path: str | Path, *, ids: str | Path | None = None) -> VectorTable:
    """Read a file of vectors; ids become integers if all of them are, else they stay strings.

    `ids` is a file with one id per line, in the order of the rows, for an .npy file; without it the ids are the
    rows' numbers, from 0. Other formats hold their own.
    """
    path = Path(path)
    if path.suffix not in READERS:
        raise EmbeddingError(f"{path}: cannot tell its format; name a file ending in {_READABLE}")
    if not path.is_file():
        raise EmbeddingError(f"{path}: no such file; make one with 'brane embed SOURCE -o {path}'")
    if ids is not None and path.suffix != ".npy":
        raise EmbeddingError(f"{path}: holds its own ids; leave out {ids}, which goes with an .npy file")
    try:
        table = READERS[path.suffix](path) if ids is None else read_npy(path, Path(ids))
    except UnicodeDecodeError as error:
        raise EmbeddingError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None
    table = table._replace(ids=as_ids(table.ids, what=f"{path}: ids", error=EmbeddingError))
    _check_finite(path, table)
    return table


def _check_finite(path: Path, table: VectorTable) -> None:
    """Refuse vectors with numbers that no distance can be had from."""
    if table.vectors.dtype.kind == "f" and not (finite := np.isfinite(table.vectors)).all():
        row = int(np.argwhere(~finite)[0][0]) + 1
        raise EmbeddingError(f"{path}: vector {row} holds NaN or infinity; give finite numbers, or remove it")


def _check_blocks(blocks: Iterable[np.ndarray], rows: int, dim: int) -> Iterator[np.ndarray]:
    """Yield the blocks as contiguous float32; refuse other shapes, and more or fewer rows than there are ids."""
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
