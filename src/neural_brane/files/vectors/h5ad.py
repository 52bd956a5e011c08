"""Vectors in AnnData's HDF5 files: X holds the vectors, the names of obs are the ids, and uns holds the rest.

A damaged HDF5 file can crash the process that reads it. So our files contain their SHA-256 in the user block, the first
bytes, which HDF5 ignores. It is compared before HDF5 opens the file. Files from other programs lack it and are first
read in a second process.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import DependencyError, EmbeddingError
from neural_brane.files.reading import DAMAGE, check_file
from neural_brane.files.trial import why_unreadable
from neural_brane.files.vectors import table as shared
from neural_brane.files.vectors.parts import StoredColumn
from neural_brane.files.vectors.table import MARK, Content, VectorFormat, VectorTable, parse_ids, unreadable
from neural_brane.graph.memory import require_memory

SIGNATURE = b"\x89HDF\r\n\x1a\n"
USER_BLOCK = 512  # bytes before the content of HDF5
OUR_GROUP = "neural_brane"  # our group in uns
GROUPS = ("layers", "obsm", "obsp", "uns", "varm", "varp")  # every AnnData file has them, most of them empty
BLOCK_IDS = 8192  # ids written at a time


def import_h5py() -> Any:
    """Return the module h5py; if it is missing, raise an error that says how to install it."""
    try:
        import h5py
    except ImportError as error:
        raise DependencyError("h5py is not installed; run: pip install 'neural-brane[h5ad]'") from error
    return h5py


def write_h5ad(content: Content, path: Path) -> None:
    """Write all but X by HDF5, reserve the space, write X block by block without HDF5, which a full disk crashes."""
    names = sum(array.nbytes + 32 * len(array) for array in (content.ids, content.made_from) if array is not None)
    if (size := 4 * len(content.ids) * content.dim + names) and hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, size)
    offset = _write_all_but_numbers(content, path)
    with open(path, "r+b") as stream:
        stream.seek(offset)
        for block in content.blocks:
            stream.write(block.data)
        stream.seek(USER_BLOCK)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        stream.write(MARK + digest.encode())


def _write_all_but_numbers(content: Content, path: Path) -> int:
    """Write all but the numbers of X; return their offset in the file."""
    h5py = import_h5py()
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    # This process has already locked the draft, so HDF5 must not lock it again.
    with h5py.File(path, "w", userblock_size=USER_BLOCK, locking=False) as file:
        _mark(file, "anndata", "0.1.0").attrs["checksum"] = "user block"
        space = h5py.h5s.create_simple((len(content.ids), content.dim))
        table = h5py.h5d.create(file.id, b"X", h5py.h5t.IEEE_F32LE, space, plan)
        _mark(file["X"], "array", "0.2.0")
        for name in GROUPS:
            _mark(file.create_group(name), "dict", "0.1.0")
        made_from: dict[str, Any] = {} if content.made_from is None else {"made_from": content.made_from}
        _write_frame(file, "obs", content.ids, made_from)
        _write_frame(file, "var", np.array(shared.column_names(content.dim)), {})
        ours = _mark(file["uns"].create_group(OUR_GROUP), "dict", "0.1.0")
        kind = "integers" if content.ids.dtype.kind == "i" else "strings"
        for name, text in {"provenance": content.provenance, "ids": kind}.items():
            _mark(ours.create_dataset(name, data=text, dtype=h5py.string_dtype()), "string", "0.2.0")
        return table.get_offset() or 0  # None if there are no vectors


def _mark(item: Any, kind: str, version: str) -> Any:
    """Set the attributes by which AnnData recognises a group or dataset; return it."""
    item.attrs["encoding-type"], item.attrs["encoding-version"] = kind, version
    return item


def _write_frame(
    file: Any, name: str, index: np.ndarray | StoredColumn, columns: dict[str, np.ndarray | StoredColumn]
) -> None:
    group = _mark(file.create_group(name), "dataframe", "0.2.0")
    group.attrs["_index"] = "_index"
    kind = import_h5py().string_dtype()
    group.attrs.create("column-order", list(columns) or np.empty(0), dtype=kind)
    for title, values in {"_index": index, **columns}.items():
        texts = _mark(group.create_dataset(title, (len(values),), kind), "string-array", "0.2.0")
        for at in range(0, len(values), BLOCK_IDS):
            texts[at : at + BLOCK_IDS] = list(map(str, values[at : at + BLOCK_IDS].tolist()))


def read_h5ad(path: Path) -> VectorTable:
    """Read the vectors from X; if it is no table of numbers, from the only table in obsm named X_…."""
    h5py = import_h5py()
    check_file(path, EmbeddingError)
    checked = _has_checksum(path)
    if not checked:
        with open(path, "rb") as stream:
            if reason := why_unreadable("HDF5", stream):
                raise unreadable(path, ".h5ad", reason)
    try:
        with h5py.File(path, "r", locking=False) as file:
            if not checked and "checksum" in file.attrs:
                raise unreadable(path, ".h5ad", "its checksum is missing")
            return _read(path, file)
    except EmbeddingError:
        raise
    except DAMAGE as error:
        raise unreadable(path, ".h5ad", str(error).partition("\n")[0]) from None


def _has_checksum(path: Path) -> bool:
    """Return whether a file contains its digest; raise an error if the digest does not match."""
    with open(path, "rb") as stream:
        start = stream.read(USER_BLOCK)
        if not start.startswith(MARK):
            offsets = (0, *(1 << power for power in range(9, 24)))  # the offsets where HDF5 looks for its signature
            if not any(stream.seek(offset) == offset and stream.read(8) == SIGNATURE for offset in offsets):
                raise unreadable(path, ".h5ad", "it lacks the signature of HDF5")
            return False
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    shared.check_digest(path, found, start[len(MARK) : shared.RECORD])
    return True


def _read(path: Path, file: Any) -> VectorTable:
    vectors = _dataset(path, _choose_table(path, file))
    obs = file.get("obs")
    name = obs.attrs.get("_index", "_index") if hasattr(obs, "attrs") and hasattr(obs, "keys") else None
    if name is None or name not in obs:
        raise EmbeddingError(f"{path}: its obs has no names; write it with AnnData 0.7 or later")
    words = _dataset(path, obs[name], text=True)
    ours = file["uns"].get(OUR_GROUP) if "uns" in file and hasattr(file["uns"], "keys") else None
    if ours is None or not hasattr(ours, "keys"):
        return VectorTable(vectors, parse_ids(words.tolist()), {})
    as_text = "ids" in ours and ours["ids"].asstr()[()] == "strings"
    provenance = shared.parse_provenance(path, ours["provenance"].asstr()[()] if "provenance" in ours else "{}")
    made = obs.get("made_from")
    made_from = _dataset(path, made, text=True).astype(str) if hasattr(made, "asstr") else None
    ids = words.astype(str) if as_text else parse_ids(words.tolist())
    return VectorTable(vectors, ids, provenance, made_from)


def _choose_table(path: Path, file: Any) -> Any:
    """Return X if it is a table of numbers, else the only such table in obsm named X_…."""
    if _is_table(file.get("X")):
        return file["X"]
    obsm = file.get("obsm")
    names = [name for name in obsm if name.startswith("X_") and _is_table(obsm[name])] if hasattr(obsm, "keys") else []
    if len(names) == 1:
        return obsm[names[0]]
    reason = f"obsm has several ({', '.join(names)})" if names else "obsm has none named X_…"
    raise EmbeddingError(f"{path}: X is not a table of numbers, and {reason}; save the vectors as X")


def _is_table(item: Any) -> bool:
    return getattr(item, "ndim", 0) == 2 and item.dtype.kind in "fiu"


def _dataset(path: Path, item: Any, *, text: bool = False) -> np.ndarray:
    """Return an array after checking that it fits into memory and that its data lie in this file."""
    if not hasattr(item, "shape") or item.is_virtual or item.external or item.file.filename != str(path):
        raise EmbeddingError(f"{path}: '{item.name}' is not an array of this file; write the file again with its data")
    require_memory(item.size * (64 if text else 8), f"{path}: reading {item.size:,} values", "use a smaller file")
    if not text:
        return item[()]
    return np.array(item.asstr()[()], dtype=object)


FORMAT = VectorFormat(
    ".h5ad", "AnnData: X, ids in obs, the rest in uns (needs h5py)", read_h5ad, write_h5ad, keeps=shared.EVERYTHING,
    checksums=True, number_bytes=4, id_bytes=32, require=import_h5py,
)  # fmt: skip
