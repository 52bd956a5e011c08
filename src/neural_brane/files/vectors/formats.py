"""Read and write vectors, block by block, in files; the suffix of a file chooses its format."""

from __future__ import annotations

import json
import pkgutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.files import vectors
from neural_brane.files.reading import check_file
from neural_brane.files.storage import atomic_together, check_space, check_target, check_writable, exists
from neural_brane.files.vectors.parts import StoredColumn, as_finite, finite_blocks, open_parts, read_whole
from neural_brane.files.vectors.table import MADE_FROM, PROVENANCE, Content, VectorFormat, VectorTable
from neural_brane.graph.ids import as_ids

LOST = {PROVENANCE: "the provenance", MADE_FROM: "what each vector was made from"}


def find_formats() -> dict[str, VectorFormat]:
    """Return the formats that the modules of this package declare, by suffix."""
    formats: dict[str, VectorFormat] = {}
    for module in pkgutil.iter_modules(vectors.__path__, f"{vectors.__name__}."):
        if module.name != __name__:
            declared = [one for one in vars(import_module(module.name)).values() if isinstance(one, VectorFormat)]
            formats |= {suffix: one for one in declared for suffix in one.suffixes.split()}
    return dict(sorted(formats.items()))


FORMATS = find_formats()
_OTHERS, _, _LAST = " ".join(vectors.declared_formats()).rpartition(" ")
NAMES = f"{_OTHERS.replace(' ', ', ')} or {_LAST}"


def find_format(path: Path) -> VectorFormat | None:
    """Return the format of a file by its name, or None if no format has this suffix."""
    return FORMATS.get("".join(path.suffixes[-2:])) or FORMATS.get(path.suffix)


CHECKED_IDS = 1 << 17  # ids checked at a time
Blocks = Iterable[np.ndarray] | Callable[[], Iterable[np.ndarray]]


class VectorFile:
    """A file that vectors will be written to; its suffix chooses the format, which may be several files or a folder.

    Make it before a long computation. The constructor refuses a suffix without a format, a folder that cannot be
    written to, and a format whose package is not installed. Call `check_ids` and `check_size` as soon as the ids and
    the dim are known.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        chosen = find_format(self.path)
        if chosen is None or not chosen.folder:
            check_target(path, FORMATS, NAMES, EmbeddingError)
        self._format: VectorFormat = chosen or FORMATS[self.path.suffix]
        if self._format.folder and self.path.exists() and not self.path.is_dir():
            raise EmbeddingError(f"{path}: is a file, but {self.path.suffix} is a folder of files; remove the file")
        self._format.require()
        check_writable(path, EmbeddingError, folder=self._format.folder)
        for file in filter(Path.exists, self.files):
            check_writable(file, EmbeddingError)
        self._checked: np.ndarray | StoredColumn | None = None  # the last ids that passed `check_ids`

    @property
    def files(self) -> list[Path]:
        """All files that will be written."""
        return self._format.files(self.path)

    def usage(self, ids: np.ndarray | StoredColumn, dim: int) -> str:
        """Return advice on how to load or view the file in another program; "" for most formats."""
        return self._format.usage(self.path, ids, dim)

    def lost(self, provenance: dict[str, Any] | None, made_from: np.ndarray | StoredColumn | None = None) -> list[str]:
        """Return descriptions of the given things that the format cannot keep."""
        given = {PROVENANCE: bool(provenance), MADE_FROM: made_from is not None}
        return [LOST[name] for name, present in given.items() if present and name not in self._format.keeps]

    def check_ids(self, ids: np.ndarray | StoredColumn) -> None:
        """Raise an error if the format cannot store one of the ids; the same array is checked only once."""
        if ids is self._checked or not self._format.refuses or ids.dtype.kind != "U":
            return
        for at in range(0, len(ids), CHECKED_IDS):
            for node in ids[at : at + CHECKED_IDS].tolist():
                if not self._format.accepts(node):
                    raise EmbeddingError(
                        f"{self.path}: cannot store id {node!r}, because this format refuses ids "
                        f"{self._format.refuses}; write .csv, .npz or .parquet instead"
                    )
        self._checked = ids

    def check_size(self, ids: np.ndarray | StoredColumn, dim: int) -> None:
        """Raise an error if the disk has no room for vectors with these ids and `dim` columns."""
        check_space(self.path, expected_size(self._format, ids, dim), EmbeddingError)

    def write(
        self,
        ids: Any,
        blocks: Blocks,
        *,
        dim: int,
        provenance: dict[str, Any] | None = None,
        made_from: np.ndarray | StoredColumn | None = None,
    ) -> None:
        """Write the file; it appears only when it is complete.

        If writing fails, for example because the disk is full, the vectors are written to an .npz file in another
        folder, and the error names it. This works only if `blocks` can be read twice: a list, or a function.

        Parameters
        ----------
        ids : array of shape (nodes,)
            Integers or strings.
        blocks : iterable of arrays of shape (k, dim), or a function that returns one
            The vectors in the order of `ids`, some rows at a time.
        dim : int
            The number of columns.
        provenance, made_from : optional
            As in `Embedding`, if the format keeps them; `lost` lists what it cannot keep.
        """
        ids = ids if isinstance(ids, StoredColumn) else as_ids(ids, error=EmbeddingError)
        self.check_ids(ids)
        text = json.dumps(provenance or {})

        def write(path: Path, form: VectorFormat) -> None:
            checked = _check_blocks(blocks() if callable(blocks) else blocks, len(ids), dim)
            _write(path, form, Content(ids, checked, dim, text, made_from))

        try:
            write(self.path, self._format)
        except OSError as failure:
            can_repeat = callable(blocks) or iter(blocks) is not blocks
            raise EmbeddingError(_rescue(self.path, failure, write if can_repeat else None)) from failure


def _write(path: Path, form: VectorFormat, content: Content) -> None:
    """Write the files of a format; if this fails, remove the folder that was made for them."""
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
    """Return the approximate number of bytes of a file of vectors."""
    return int(len(ids) * (dim * form.number_bytes + ids.dtype.itemsize + form.id_bytes)) + 4096


def _rescue(path: Path, failure: OSError, write: Callable[[Path, VectorFormat], None] | None) -> str:
    """Write an .npz file to the temporary, current or home folder, whichever works first; return the error message."""
    failed = f"{path}: could not be written ({failure.strerror or failure})"
    for parent in (tempfile.gettempdir, Path.cwd, Path.home):
        if write is None:
            break
        with suppress(OSError, RuntimeError):  # this folder is full or not writable, or there is no home folder
            kept = Path(tempfile.mkdtemp(prefix="brane-", dir=parent())) / f"{path.stem.removesuffix('.columns')}.npz"
            try:
                write(kept, FORMATS[".npz"])
            except OSError:
                kept.parent.rmdir()
                continue
            advice = "move this file" if path.suffix == ".npz" else f"run: brane convert '{kept}' -o '{path}'"
            return f"{failed}; the vectors are kept in {kept}; make room, then {advice}"
    return f"{failed}, and no other folder could be written to; make room and run it again"


def read_vectors(path: str | Path, *, ids: str | Path | None = None) -> VectorTable:
    """Return the content of a file of vectors or a folder of parts; text ids become integers if all of them can.

    Parameters
    ----------
    path : str or Path
        The file; its suffix names the format.
    ids : str or Path, optional
        For an .npy file, a file with one id per line in the order of the rows. By default it is the file NAME.ids.txt
        beside it; without such a file the ids are the row numbers from 0. Other formats contain their ids.
    """
    path = Path(path)
    form = find_format(path)
    found = exists(path, EmbeddingError)
    if path.is_dir() and not (form and form.folder):
        folders = (one for one in FORMATS.values() if one.folder and one.files(path)[-1].is_file())
        form = next(folders, None)
        read: Callable[..., VectorTable] = form.read if form else read_whole
    elif path.suffix == ".brane":
        advice = "give the file that 'brane embed … -o FILE' wrote, or save load_model(…).embedding_"
        raise EmbeddingError(f"{path}: is a model, not vectors; {advice}")
    elif form is None:
        raise EmbeddingError(f"{path}: its suffix names no format; give a file that ends in {NAMES}")
    elif not (path.is_dir() if form.folder else found):
        raise EmbeddingError(f"{path}: no such file; make one with 'brane embed SOURCE -o {path}'")
    else:
        read = form.read
        if not form.folder:
            check_file(path, EmbeddingError, whole=False)
    if path.is_file() and path.stat().st_size == 0:
        raise EmbeddingError(f"{path}: is empty; write the vectors again")
    if ids is not None and not (form and form.takes_ids):
        raise EmbeddingError(f"{path}: contains its ids; leave out {ids}, which only an .npy file needs")
    try:
        table = read(path) if ids is None else read(path, Path(ids))
    except UnicodeDecodeError as error:
        raise EmbeddingError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None
    if table.vectors.dtype.kind in "fiu":
        table = table._replace(vectors=as_finite(path, table.vectors))
    return table._replace(ids=as_ids(table.ids, what=f"{path}: ids", error=EmbeddingError))


def _check_blocks(blocks: Iterable[np.ndarray], rows: int, dim: int) -> Iterator[np.ndarray]:
    """Yield the blocks as contiguous float32; raise an error if they do not have `rows` rows and `dim` columns."""
    done = 0
    for block in blocks:
        if block.ndim != 2 or block.shape[1] != dim:
            raise EmbeddingError(f"a block of vectors has shape {block.shape}, expected (rows, {dim})")
        done += len(block)
        if done > rows:
            raise EmbeddingError(f"there are more vectors than the {rows} ids; give one id per vector")
        yield np.ascontiguousarray(block, dtype="<f4")
    if done < rows:
        raise EmbeddingError(f"there are {done} vectors and {rows} ids; give one id per vector")


def merge_parts(folder: str | Path, output: str | Path, *, report: Callable[[int], object] | None = None) -> None:
    """Check a folder of parts and write its vectors to one file; `report` is called with the rows of each block."""
    file = VectorFile(output)
    parts = open_parts(folder)
    parts.check()
    write_blocks(file, Path(folder), parts, report=report)


def write_blocks(file: VectorFile, source: Path, found: Any, *, report: Callable[[int], object] | None = None) -> None:
    """Check and write an embedding or a `VectorParts`, read from `source`; call `report` with each block's rows."""
    file.check_ids(found.ids)
    file.check_size(found.ids, found.dim)

    def blocks() -> Iterator[np.ndarray]:
        for block in finite_blocks(source, found.vectors):
            yield block
            if report is not None:
                report(len(block))

    file.write(found.ids, blocks, dim=found.dim, provenance=found.provenance, made_from=found.made_from)
