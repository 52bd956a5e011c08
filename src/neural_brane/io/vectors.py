"""Vectors to files and back; the suffix says which format.

===========================  ===============================================================  ==========  =========
suffix                       what a line, a member or a file is                               provenance  checksums
===========================  ===============================================================  ==========  =========
``.npz``                     arrays ``vectors``, ``ids``, ``provenance`` (JSON text)          yes         yes
``.parquet``                 columns ``id`` and ``vector``, an array of ``dim`` float32       yes         yes
``.columns.parquet``         columns ``id d0 d1 …``                                           yes         yes
``.safetensors``             tensors ``embeddings`` and ``ids`` (strings as JSON)             yes         yes
``.h5ad``                    AnnData's HDF5: ``X``, names of ``obs``, ``uns``                 yes         yes
``.txt .w2v .vec .emb``      word2vec text: ``nodes dim``, then ``id v1 v2 …``                no          no
``.bin``                     word2vec binary: ``nodes dim``, then id, space, float32          no          no
``.tsv``                     a header ``id d0 d1 …``, then one node per line, by tabs         no          no
``.csv``                     the same by commas, ids quoted where they must be                no          no
``.npy``                     one array; its ids are the lines of ``NAME.ids.txt`` beside it   no          no
``.pgvector``                PostgreSQL's COPY: ``id<TAB>[v1,v2,…]``                          no          no
``.projector``               a folder for TensorBoard's projector: two tables and a config    yes         no
a folder                     parts with a manifest, see `neural_brane.io.vector_parts`        yes         yes
===========================  ===============================================================  ==========  =========

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
from neural_brane.io.atomic import atomic_together, check_space, check_target, check_writable
from neural_brane.io.vector_arrays import read_npy
from neural_brane.io.vector_formats import FORMATS, LAYER, MADE_FROM, NAMES, PROVENANCE, VectorFormat, find_format
from neural_brane.io.vector_parts import StoredColumn, read_whole
from neural_brane.io.vector_projector import CONFIG, read_projector
from neural_brane.io.vector_table import Content, VectorTable

CHECKED_IDS = 1 << 17  # ids that are checked at a time
Blocks = Iterable[np.ndarray] | Callable[[], Iterable[np.ndarray]]


class VectorFile:
    """A file that vectors will be written to; some formats write others beside it, or a folder.

    Make it before the work: the constructor refuses a suffix without a format, a folder that cannot be written to and
    a format whose package is not installed. `check_ids` refuses ids that the format cannot hold and `check_size`
    vectors that the disk cannot, as soon as they are known.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        found = find_format(self.path)
        if found is None or not found.folder:
            check_target(path, FORMATS, NAMES, EmbeddingError)
        self._format: VectorFormat = found or FORMATS[self.path.suffix]
        if self._format.folder and self.path.exists() and not self.path.is_dir():
            raise EmbeddingError(f"{path}: is a file, and {self.path.suffix} is a folder of files; remove it")
        if self._format.require is not None:
            self._format.require()
        for file in self.files:
            check_writable(file, EmbeddingError)
        self._checked: np.ndarray | StoredColumn | None = None  # the ids that were found to fit

    @property
    def files(self) -> list[Path]:
        """All files that will be written."""
        return self._format.files(self.path)

    def usage(self, ids: np.ndarray | StoredColumn, dim: int) -> str:
        """What people can do with the file, where its format has a program of its own; else nothing."""
        return self._format.usage(self.path, ids, dim) if self._format.usage else ""

    def lost(
        self,
        provenance: dict[str, Any] | None,
        layer: tuple[np.ndarray, np.ndarray] | None = None,
        made_from: np.ndarray | StoredColumn | None = None,
    ) -> list[str]:
        """What of this the format has no place for, in words."""
        given = {PROVENANCE: bool(provenance), LAYER: layer is not None, MADE_FROM: made_from is not None}
        return [what for what, there in given.items() if there and what not in self._format.keeps]

    def check_ids(self, ids: np.ndarray | StoredColumn) -> None:
        """Refuse ids that the format cannot hold; those that were checked before are not checked again."""
        if ids is self._checked:
            return
        holds = self._format.holds
        if holds is None or ids.dtype.kind != "U":
            return
        for at in range(0, len(ids), CHECKED_IDS):
            for node in ids[at : at + CHECKED_IDS].tolist():
                if not holds(node):
                    raise EmbeddingError(
                        f"{self.path}: {self._format.limit} cannot hold id {node!r}; write .csv, .npz or .parquet "
                        "instead"
                    )
        self._checked = ids

    def check_size(self, ids: np.ndarray | StoredColumn, dim: int) -> None:
        """Refuse vectors of `dim` numbers that the disk has no room for."""
        check_space(self.path, expected_size(self._format, ids, dim), EmbeddingError)

    def write(
        self,
        ids: Any,
        blocks: Blocks,
        *,
        dim: int,
        provenance: dict[str, Any] | None = None,
        layer: tuple[np.ndarray, np.ndarray] | None = None,
        made_from: np.ndarray | StoredColumn | None = None,
    ) -> None:
        """Write vectors, given as blocks of rows (k, dim) in the order of `ids`.

        The file appears under its name only when it is complete. If it cannot be written (the disk is full, the folder
        gone), an .npz file elsewhere gets the vectors and the error names it; that takes blocks which can be had
        again: a list of them, or a function that gives them. layer: the weight and bias of what scores pairs of the
        vectors. made_from: a word per node. `lost` tells which of these a format cannot keep.
        """
        ids = ids if isinstance(ids, StoredColumn) else as_ids(ids, error=EmbeddingError)
        self.check_ids(ids)
        known = json.dumps(provenance or {})

        def write(path: Path) -> None:
            checked = _check_blocks(blocks() if callable(blocks) else blocks, len(ids), dim)
            _write(path, Content(ids, checked, dim, known, layer, made_from))

        try:
            write(self.path)
        except OSError as failure:
            can_repeat = callable(blocks) or iter(blocks) is not blocks
            kept = _keep_elsewhere(write, self.path.stem.removesuffix(".columns")) if can_repeat else None
            raise EmbeddingError(_not_written(self.path, failure, kept)) from failure


def _write(path: Path, content: Content) -> None:
    """Write the files of a format; a folder that was made for them goes with them if that fails."""
    form = find_format(path)
    if form is None:
        raise EmbeddingError(f"{path}: cannot tell its format; name a file ending in {NAMES}")
    new = form.folder and not path.exists()
    try:
        with atomic_together(form.files(path)) as drafts:
            form.write(content, *drafts)
    except BaseException:
        if new:
            with suppress(OSError):
                path.rmdir()
        raise


def expected_size(form: VectorFormat, ids: np.ndarray | StoredColumn, dim: int) -> int:
    """The bytes that a file of vectors will have, about: text takes some twelve for each number."""
    return int(len(ids) * (dim * form.number_bytes + ids.dtype.itemsize + form.id_bytes)) + 4096


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
    change = "move it where you want it" if path.suffix == ".npz" else f"turn it: brane convert '{kept}' -o '{path}'"
    return f"{path}: could not be written ({reason}); the vectors are kept in {kept}: make room, and {change}"


def read_vectors(path: str | Path, *, ids: str | Path | None = None) -> VectorTable:
    """Read a file of vectors; ids become integers if all of them are, else they stay strings.

    `ids` is a file with one id per line, in the order of the rows, for an .npy file; without it they are read from
    the file NAME.ids.txt beside it, or else are the rows' numbers, from 0. Other formats hold their own, as does a
    folder of parts.
    """
    path = Path(path)
    form = find_format(path)
    read = form.read if form is not None else None
    if path.is_dir() and read is not read_projector:
        read = read_projector if (path / CONFIG).is_file() else read_whole
    if path.suffix == ".brane":
        raise EmbeddingError(
            f"{path}: is a model, not vectors; give the file that 'brane embed … -o FILE' wrote, or save "
            "load_model(…).embedding_"
        )
    if read is None:
        raise EmbeddingError(f"{path}: cannot tell its format; name a file ending in {NAMES}")
    if not (path.is_dir() if read in (read_projector, read_whole) else path.is_file()):
        raise EmbeddingError(f"{path}: no such file; make one with 'brane embed SOURCE -o {path}'")
    if path.is_file() and path.stat().st_size == 0:
        raise EmbeddingError(f"{path}: is empty; write the vectors again")
    if ids is not None and path.suffix != ".npy":
        raise EmbeddingError(f"{path}: holds its own ids; leave out {ids}, which goes with an .npy file")
    try:
        table = read(path) if ids is None else read_npy(path, Path(ids))
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
