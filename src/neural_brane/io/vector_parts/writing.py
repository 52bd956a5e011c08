"""Parts of vectors are written: each by whoever has its rows, the manifest by one when all parts are there."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

from neural_brane.errors import PartError
from neural_brane.graph.ids import as_ids
from neural_brane.io import npz
from neural_brane.io.atomic import atomic, atomic_together
from neural_brane.io.manifest import MANIFEST, describe_files, write_manifest
from neural_brane.io.vector_parquet import write_frames
from neural_brane.io.vector_parts.format import (
    FORMAT,
    INTEGER,
    KINDS,
    LAYER_FILE,
    RECORDS,
    REPLACED,
    STRING,
    VERSION,
    Kind,
    part_files,
    record_file,
)
from neural_brane.io.vector_table import LAYER

if TYPE_CHECKING:
    import polars

BLOCK_ROWS = 8192  # rows of a Parquet part that are in memory at a time


class PartWriter:
    """The vectors of nodes `first` … `first + rows - 1`, written block by block in that order.

    Use it in a `with` statement: the part's files appear when it ends, and not at all if it fails. A manifest that was
    in the folder is put aside first, since its parts are being replaced. Vectors are never in memory as a whole; the
    ids of the part are.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with PartWriter(folder, 0, first=0, rows=3, dim=2) as part:
    ...     part.write(["a", "b"], np.zeros((2, 2)))
    ...     part.write(["c"], np.ones((1, 2)))
    >>> finish(folder, parts=1, provenance={"method": "ones"})
    >>> sorted(path.name for path in Path(folder).iterdir())
    ['manifest.json', 'part-00000.ids.parquet', 'part-00000.npy']
    """

    def __init__(self, folder: str | Path, part: int, first: int, rows: int, dim: int, kind: Kind = "npy"):
        if min(part, first, rows) < 0 or dim < 1 or kind not in KINDS:
            raise PartError(
                f"part {part} with {rows} rows of {dim} numbers from node {first}, as {kind!r}, makes no sense; give "
                "numbers from 0, a dim from 1, and 'npy' or 'parquet'"
            )
        self.folder, self.part, self.first, self.rows, self.dim, self.kind = Path(folder), part, first, rows, dim, kind
        self._done = 0
        self._ids: list[polars.Series] = []
        self._made_from: list[polars.Series] = []
        self._stack = ExitStack()
        self._drafts: list[Path] = []
        self._table: IO[bytes] | None = None  # where vectors go: the .npy file, or one without a name

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        check_replaceable(self.folder)
        with suppress(FileNotFoundError):  # another writer may have been first
            os.replace(self.folder / MANIFEST, self.folder / REPLACED)
        names = [*part_files(self.part, self.kind), record_file(self.part)]
        with ExitStack() as stack:
            self._drafts = stack.enter_context(atomic_together([self.folder / name for name in names]))
            if self.kind == "npy":
                file: IO[bytes] = stack.enter_context(self._drafts[0].open("wb"))
                header = {"descr": "<f4", "fortran_order": False, "shape": (self.rows, self.dim)}
                np.lib.format.write_array_header_1_0(file, header)
            else:
                file = stack.enter_context(tempfile.TemporaryFile(dir=self.folder))
            self._table = file
            stack.push(self._close)
            self._stack = stack.pop_all()
        return self

    def write(self, ids: Any, vectors: np.ndarray, made_from: Any = None) -> None:
        """Append the vectors of the next nodes, with their ids; `made_from` is a word per node, for all or for none."""
        import polars

        vectors = np.ascontiguousarray(vectors, dtype="<f4")
        names = as_ids(ids, what=f"{self._name}: ids", error=PartError)
        if self._table is None:
            raise PartError(f"{self._name}: is not open; write in a 'with' statement")
        if vectors.ndim != 2 or vectors.shape != (len(names), self.dim):
            raise PartError(
                f"{self._name}: vectors of shape {vectors.shape} for {len(names)} ids; give one row of {self.dim} "
                "numbers for each"
            )
        if self._done + len(names) > self.rows:
            raise PartError(f"{self._name}: more than the {self.rows:,} rows that were announced")
        if not len(names):
            return
        self._ids.append(polars.Series("id", names))
        if self._ids[-1].dtype != self._ids[0].dtype:
            raise PartError(f"{self._name}: ids are integers in one block and strings in another; give one of the two")
        if made_from is not None:
            self._made_from.append(polars.Series("made_from", made_from, dtype=polars.String))
        self._table.write(vectors.data)
        self._done += len(names)

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, failure, trace)

    def _close(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the ids, or the Parquet file, and the record of the part to their drafts, unless something failed."""
        if kind is not None or self._table is None:
            return
        if self._done < self.rows:
            raise PartError(f"{self._name}: {self._done:,} rows were written, and {self.rows:,} were announced")
        if self._made_from and sum(map(len, self._made_from)) != self.rows:
            raise PartError(f"{self._name}: made_from was given for some rows and not for others; give it for all")
        self._table.flush()
        ids = self._write_ids()
        record: dict[str, Any] = {
            "first": self.first,
            "rows": self.rows,
            "dim": self.dim,
            "kind": self.kind,
            "ids": ids,
        }
        files = [next(iter(describe_files(draft.parent, [draft.name]).values())) for draft in self._drafts[:-1]]
        named = dict(zip(part_files(self.part, self.kind), files, strict=True))
        record["made_from"], record["files"] = bool(self._made_from), named
        self._drafts[-1].write_text(json.dumps(record), encoding="utf-8")

    def _write_ids(self) -> str | None:
        """Write the Parquet file of a part; tells what the ids are, if there are any."""
        import polars

        columns = [polars.concat(self._ids) if self._ids else polars.Series("id", [], polars.Int64)]
        columns += [polars.concat(self._made_from)] if self._made_from else []
        frame = polars.DataFrame(columns)
        schema: dict[str, Any] = dict(frame.schema)
        frames = iter([frame])
        if self.kind == "parquet":
            schema = {"id": schema["id"], "vector": polars.Array(polars.Float32, self.dim)} | schema
            frames = self._with_vectors(frame)
        write_frames(self._drafts[-2], schema, frames, "{}")
        return None if not self.rows else INTEGER if frame["id"].dtype == polars.Int64 else STRING

    def _with_vectors(self, frame: polars.DataFrame) -> Iterator[polars.DataFrame]:
        """The columns of a part in frames of some rows, with the vectors that were put aside."""
        import polars

        if not self.rows:
            return
        vectors = np.memmap(self._table, "<f4", "r", shape=(self.rows, self.dim))  # type: ignore[call-overload]
        kind = polars.Array(polars.Float32, self.dim)
        for at in range(0, self.rows, BLOCK_ROWS):
            block = polars.Series("vector", np.asarray(vectors[at : at + BLOCK_ROWS]), dtype=kind)
            yield frame.slice(at, BLOCK_ROWS).insert_column(1, block)

    @property
    def _name(self) -> str:
        return str(self.folder / part_files(self.part, self.kind)[0])


def check_replaceable(folder: Path) -> None:
    """Refuse a folder whose manifest is of something else, such as a graph in parts: it would be lost."""
    path = folder / MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["format"]
    except FileNotFoundError:
        return
    except (ValueError, LookupError, TypeError):
        found = None
    if found != FORMAT:
        raise PartError(
            f"{folder}: has a {MANIFEST} that is not of vectors, or is damaged; choose another folder, or remove it"
        )


def finish(
    folder: str | Path,
    parts: int,
    *,
    provenance: dict[str, Any] | None = None,
    layer: Sequence[np.ndarray] | None = None,
) -> None:
    """Write the manifest of a folder whose `parts` parts are all there; what an earlier set left there is removed.

    One process calls it, when every `PartWriter` has ended. `layer` is the weight and bias of what scores pairs.
    """
    folder = Path(folder)
    records = [_read_record(folder, part, parts) for part in range(parts)]
    if not records:
        raise PartError(f"{folder}: has no part; write at least one, which may be empty")
    content = {"format": FORMAT, "version": VERSION} | _agree(folder, records)
    content["parts"] = [{name: one[name] for name in ("first", "rows")} for one in records]
    files = {name: about for one in records for name, about in one["files"].items()}
    if layer is not None:
        with atomic(folder / LAYER_FILE) as draft:
            npz.write_npz(draft, dict(zip(LAYER, map(np.asarray, layer), strict=True)))
        files |= describe_files(folder, [LAYER_FILE])
    write_manifest(folder, content | {"files": files, "provenance": provenance or {}})
    for name in _older_files(folder) - files.keys():
        (folder / name).unlink(missing_ok=True)


def _older_files(folder: Path) -> set[str]:
    """Files that this and earlier sets have written: what manifests and records list, and these themselves."""
    found = set()
    for path in [folder / REPLACED, *folder.glob(RECORDS)]:
        with suppress(OSError, ValueError, LookupError, TypeError):
            listed = json.loads(path.read_text(encoding="utf-8"))["files"]
            found |= {path.name, *(name for name in listed if Path(name).name == name)}
    return found


def _read_record(folder: Path, part: int, parts: int) -> dict[str, Any]:
    """What the writer of a part said of it."""
    path = folder / record_file(part)
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise PartError(
            f"{path}: is missing, so part {part} of {parts} was not written to its end; write it, then finish"
        ) from None
    except (ValueError, TypeError):
        raise PartError(f"{path}: is damaged; write part {part} again") from None


def _agree(folder: Path, records: list[dict[str, Any]]) -> dict[str, Any]:
    """What all parts have in common; refuses parts that leave out nodes, overlap, or differ in kind."""
    nodes = 0
    for part, one in enumerate(records):
        if one["first"] != nodes:
            raise PartError(
                f"{folder / part_files(part, one['kind'])[0]}: begins at node {one['first']:,}, and the parts before "
                f"it end at {nodes:,}; give parts that follow each other"
            )
        nodes += one["rows"]
    filled = [one for one in records if one["rows"]] or records[:1]
    common: dict[str, Any] = {"nodes": nodes}
    for name, among in (("dim", records), ("kind", records), ("ids", filled), ("made_from", filled)):
        values = sorted({str(one[name]) for one in among})
        if len(values) > 1:
            raise PartError(f"{folder}: parts differ in '{name}': {' and '.join(values)}; write all of them alike")
        common[name] = among[0][name]
    return common | {"ids": common["ids"] or INTEGER}
