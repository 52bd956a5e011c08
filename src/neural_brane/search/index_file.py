"""An index as one file that is opened by memory map.

::

    what faiss writes    the centres, then the lists of vectors
    ids                  an .npy array
    about                JSON: provenance, recall, lists to look into
    footer               lengths and SHA-256 of the three, their own SHA-256 cut to 8 bytes, and a mark

faiss reads from the beginning of a file and stops where its part ends, so ours follows. faiss trusts what it reads: a
damaged file could end the process. So the footer is checked before faiss sees the file, and the whole file unless
`check=False`.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.graph.ids import as_ids
from neural_brane.io.atomic import atomic, check_target
from neural_brane.io.npz import read_array
from neural_brane.io.vector_parts import StoredColumn, StoredRows
from neural_brane.search.exact import unit_rows
from neural_brane.search.index import Index, import_faiss

SUFFIX = ".faiss"
MARK = b"brane index 1\n\0\0"
FOOTER = struct.Struct("<3Q32s32s32s")
CHECK_BYTES = 8
CHECKED_IDS = 1 << 17  # compared at a time
CHUNK = 1 << 20


class Footer(NamedTuple):
    """What the end of the file says of its three parts."""

    lengths: tuple[int, int, int]
    digests: tuple[bytes, bytes, bytes]


def check_index_target(path: str | Path) -> Path:
    """Refuse a path that no index can be written to, before the work of building one."""
    return check_target(path, (SUFFIX,), SUFFIX, EmbeddingError)


def check_belongs(
    path: str | Path, index: Index, vectors: np.ndarray | StoredRows, ids: np.ndarray | StoredColumn
) -> None:
    """Refuse an index of other nodes, or of other vectors: the first, the middle and the last are compared."""
    rows = np.unique([0, len(ids) // 2, len(ids) - 1]) if len(ids) else np.empty(0, np.int64)
    spans = [slice(at, at + CHECKED_IDS) for at in range(0, len(ids), CHECKED_IDS)]
    same = len(ids) == len(index) and all(np.array_equal(index.ids[span], ids[span]) for span in spans)
    if not same or index.dim != vectors.shape[1]:
        raise EmbeddingError(f"{path}: is an index of other nodes than these vectors have; build it again")
    if not np.allclose(index.vectors_of(rows), unit_rows(vectors[rows]), atol=1e-5):
        raise EmbeddingError(f"{path}: is an index of other vectors of these nodes; build it again")


def write_index(path: str | Path, index: Index) -> None:
    """Write an index to one file, which appears when it is complete."""
    faiss = import_faiss()
    path = check_index_target(path)
    ids = BytesIO()
    np.lib.format.write_array(ids, index.ids, allow_pickle=False)
    about = {"provenance": index.provenance, "recall": index.recall, "probes": int(index.lists.nprobe)}
    parts = [ids.getvalue(), json.dumps(about).encode()]
    with atomic(path) as draft:
        faiss.write_index(index.lists, str(draft))
        size = draft.stat().st_size
        with draft.open("rb") as file:
            digests = [_digest(file, size), *(hashlib.sha256(part).digest() for part in parts)]
        footer = FOOTER.pack(size, *map(len, parts), *digests)
        with draft.open("ab") as file:
            file.write(b"".join([*parts, footer, hashlib.sha256(footer).digest()[:CHECK_BYTES], MARK]))


def load_index(path: str | Path, *, threads: int | None = None, check: bool = True) -> Index:
    """Open a saved index by memory map: lists are read when a query looks into them.

    `check` first reads the file once and compares it with its checksums. Without it, a large index is open in
    milliseconds; then only its ids and its size are checked, and damage elsewhere can give wrong answers or end the
    process.
    """
    faiss = import_faiss()
    path = Path(path)
    if not path.is_file():
        raise EmbeddingError(f"{path}: no such file; make one with embedding.index().save('{path.stem}{SUFFIX}')")
    with path.open("rb") as file:
        footer = _read_footer(path, file)
        if check and _digest(file, footer.lengths[0]) != footer.digests[0]:
            _refuse(path, "the lists are not what their checksum says")
        ids, about = (_read_part(path, file, footer, at) for at in (1, 2))
    try:
        lists = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        known = as_ids(read_array(BytesIO(ids), len(ids)), what=f"{path}: ids", error=EmbeddingError)
        record: dict[str, Any] = json.loads(about)
        lists.nprobe = record["probes"]
    except (RuntimeError, ValueError, LookupError, AttributeError) as failure:
        _refuse(path, str(failure).splitlines()[0])
    if lists.ntotal != len(known):
        _refuse(path, f"it has {lists.ntotal} vectors and {len(known)} ids")
    return Index(lists, known, record["provenance"], record["recall"], threads)


def _read_footer(path: Path, file: IO[bytes]) -> Footer:
    size = os.fstat(file.fileno()).st_size
    tail = FOOTER.size + CHECK_BYTES + len(MARK)
    file.seek(max(size - tail, 0))
    data = file.read()
    if data[-len(MARK) :] != MARK or len(data) != tail:
        raise EmbeddingError(f"{path}: is no index of ours, or is cut off; make one with embedding.index().save(…)")
    if hashlib.sha256(data[: FOOTER.size]).digest()[:CHECK_BYTES] != data[FOOTER.size : -len(MARK)]:
        _refuse(path, "its end is not what its checksum says")
    *numbers, first, second, third = FOOTER.unpack(data[: FOOTER.size])
    if sum(numbers) + tail != size:
        _refuse(path, f"it has {size:,} bytes, not {sum(numbers) + tail:,}")
    return Footer((numbers[0], numbers[1], numbers[2]), (first, second, third))


def _read_part(path: Path, file: IO[bytes], footer: Footer, at: int) -> bytes:
    file.seek(sum(footer.lengths[:at]))
    data = file.read(footer.lengths[at])
    if hashlib.sha256(data).digest() != footer.digests[at]:
        _refuse(path, "its ids or its provenance are not what their checksum says")
    return data


def _digest(file: IO[bytes], length: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(0)
    while length and (data := file.read(min(CHUNK, length))):
        digest.update(data)
        length -= len(data)
    return digest.digest()


def _refuse(path: Path, why: str) -> NoReturn:
    raise EmbeddingError(f"{path}: the index is damaged or changed: {why}; build it again, or copy it anew") from None
