"""Read and write vectors; the suffix of a file says its format.

Vectors are written block by block, so the whole table need never exist in memory. Text holds the shortest decimal that
reads back as the same float32.
"""

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
from neural_brane.files.storage import atomic_together, check_space, check_target, check_writable
from neural_brane.files.vectors.parts import StoredColumn, finite_blocks, open_parts, read_whole
from neural_brane.files.vectors.table import MADE_FROM, PROVENANCE, SCORES, Content, VectorFormat, VectorTable
from neural_brane.graph.ids import as_ids

LOST = {
    PROVENANCE: "the provenance",
    SCORES: "the layer that scores pairs",
    MADE_FROM: "what each vector was made from",
}


def find_formats() -> dict[str, VectorFormat]:
    """Return the formats that the modules of this package declare, by suffix."""
    found: dict[str, VectorFormat] = {}
    for module in pkgutil.iter_modules(vectors.__path__, f"{vectors.__name__}."):
        if module.name != __name__:
            declared = [one for one in vars(import_module(module.name)).values() if isinstance(one, VectorFormat)]
            found |= {suffix: one for one in declared for suffix in one.suffixes.split()}
    return dict(sorted(found.items()))


FORMATS = find_formats()
NAMES = vectors.list_suffixes()


def find_format(path: Path) -> VectorFormat | None:
    """Return the format that a name says; None where it says none."""
    return FORMATS.get("".join(path.suffixes[-2:])) or FORMATS.get(path.suffix)


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
        return self._format.usage(self.path, ids, dim)

    def lost(
        self,
        provenance: dict[str, Any] | None,
        layer: tuple[np.ndarray, np.ndarray] | None = None,
        made_from: np.ndarray | StoredColumn | None = None,
    ) -> list[str]:
        """What of this the format has no place for, in words."""
        given = {PROVENANCE: bool(provenance), SCORES: layer is not None, MADE_FROM: made_from is not None}
        return [LOST[what] for what, there in given.items() if there and what not in self._format.keeps]

    def check_ids(self, ids: np.ndarray | StoredColumn) -> None:
        """Refuse ids that the format cannot hold; those that were checked before are not checked again."""
        if ids is self._checked or not self._format.refuses or ids.dtype.kind != "U":
            return
        for at in range(0, len(ids), CHECKED_IDS):
            for node in ids[at : at + CHECKED_IDS].tolist():
                if not self._format.holds(node):
                    raise EmbeddingError(
                        f"{self.path}: cannot hold id {node!r}, for this format takes no ids {self._format.refuses}; "
                        "write .csv, .npz or .parquet instead"
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

        def write(path: Path, form: VectorFormat) -> None:
            checked = _check_blocks(blocks() if callable(blocks) else blocks, len(ids), dim)
            _write(path, form, Content(ids, checked, dim, known, layer, made_from))

        try:
            write(self.path, self._format)
        except OSError as failure:
            can_repeat = callable(blocks) or iter(blocks) is not blocks
            raise EmbeddingError(_rescue(self.path, failure, write if can_repeat else None)) from failure


def _write(path: Path, form: VectorFormat, content: Content) -> None:
    """Write the files of a format; a folder that was made for them goes with them if that fails."""
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


def _rescue(path: Path, failure: OSError, write: Callable[[Path, VectorFormat], None] | None) -> str:
    """Write an .npz file to the first folder that takes it: a temporary, the current or the user's own; say so."""
    failed = f"{path}: could not be written ({failure.strerror or failure})"
    for parent in (tempfile.gettempdir, Path.cwd, Path.home):
        if write is None:
            break
        with suppress(OSError, RuntimeError):  # full too, gone, not to be written to, or nobody's home
            kept = Path(tempfile.mkdtemp(prefix="brane-", dir=parent())) / f"{path.stem.removesuffix('.columns')}.npz"
            try:
                write(kept, FORMATS[".npz"])
            except OSError:
                kept.parent.rmdir()
                continue
            turn = (
                "move it where you want it" if path.suffix == ".npz" else f"turn it: brane convert '{kept}' -o '{path}'"
            )
            return f"{failed}; the vectors are kept in {kept}: make room, and {turn}"
    return f"{failed}, nor could a file elsewhere; make room and run it again"


def read_vectors(path: str | Path, *, ids: str | Path | None = None) -> VectorTable:
    """Read a file of vectors; ids become integers if all of them are, else they stay strings.

    `ids` is a file with one id per line, in the order of the rows, for an .npy file; without it they are read from
    the file NAME.ids.txt beside it, or else are the rows' numbers, from 0. Other formats hold their own, as does a
    folder of parts.
    """
    path = Path(path)
    form = find_format(path)
    if path.is_dir() and not (form and form.folder):
        folders = (one for one in FORMATS.values() if one.folder and one.files(path)[-1].is_file())
        form = next(folders, None)
        read: Callable[..., VectorTable] = form.read if form else read_whole
    elif path.suffix == ".brane":
        raise EmbeddingError(
            f"{path}: is a model, not vectors; give the file that 'brane embed … -o FILE' wrote, or save "
            "load_model(…).embedding_"
        )
    elif form is None:
        raise EmbeddingError(f"{path}: cannot tell its format; name a file ending in {NAMES}")
    elif not (path.is_dir() if form.folder else path.is_file()):
        raise EmbeddingError(f"{path}: no such file; make one with 'brane embed SOURCE -o {path}'")
    else:
        read = form.read
    if path.is_file() and path.stat().st_size == 0:
        raise EmbeddingError(f"{path}: is empty; write the vectors again")
    if ids is not None and not (form and form.takes_ids):
        raise EmbeddingError(f"{path}: holds its own ids; leave out {ids}, which goes with an .npy file")
    try:
        table = read(path) if ids is None else read(path, Path(ids))
    except UnicodeDecodeError as error:
        raise EmbeddingError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from None
    if table.vectors.dtype.kind == "f" and not (finite := np.isfinite(table.vectors)).all():
        row = int(np.argwhere(~finite)[0][0]) + 1
        raise EmbeddingError(f"{path}: vector {row} holds NaN or infinity; give finite numbers, or remove it")
    return table._replace(ids=as_ids(table.ids, what=f"{path}: ids", error=EmbeddingError))


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


# A folder of parts becomes one file, block by block.


def merge_parts(folder: str | Path, output: str | Path, *, tell: Callable[[int], object] | None = None) -> None:
    """Write the vectors of a folder of parts to one file, in the format that its suffix says.

    Vectors are never in memory as a whole, and ids only for .npz and .safetensors. The folder is compared with its
    checksums first, and stays. `tell` is called with the number of rows after each block.

    >>> import tempfile
    >>> from neural_brane.files.vectors.parts import write_parts
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_parts(folder / "parts", np.array(["a", "b", "c"]), np.eye(3), parts=2)
    >>> merge_parts(folder / "parts", folder / "vectors.csv")
    >>> (folder / "vectors.csv").read_text().splitlines()[:2]
    ['id,d0,d1,d2', 'a,1.0,0.0,0.0']
    """
    file = VectorFile(output)
    parts = open_parts(folder)
    parts.check()
    write_blocks(file, Path(folder), parts, tell=tell)


def write_blocks(file: VectorFile, source: Path, found: Any, *, tell: Callable[[int], object] | None = None) -> None:
    """Write what `found` has, an embedding or a folder of parts that came from `source`, to a file.

    Ids that the format cannot hold, and vectors that the disk cannot, are refused first.
    """
    file.check_ids(found.ids)
    file.check_size(found.ids, found.dim)

    def blocks() -> Iterator[np.ndarray]:
        for block in finite_blocks(source, found.vectors):
            yield block
            if tell is not None:
                tell(len(block))

    known: dict[str, Any] = {"provenance": found.provenance, "layer": found.layer, "made_from": found.made_from}
    file.write(found.ids, blocks, dim=found.dim, **known)
