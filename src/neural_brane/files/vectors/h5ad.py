"""Vectors as AnnData keeps them in HDF5: the vectors are X, the ids the names of obs, the rest is in uns.

A damaged HDF5 file can end the whole process when it is read. So the SHA-256 of the file stands in its user block, the
first bytes, which HDF5 leaves to others, and is compared before HDF5 sees the file; a file without one, of another
program, is first read in a process of its own.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import DependencyError, EmbeddingError
from neural_brane.files.reading import DAMAGE, check_file
from neural_brane.files.trial import why_unreadable
from neural_brane.files.vectors.table import (
    EVERYTHING,
    LAYER,
    MARK,
    RECORD,
    Content,
    VectorFormat,
    VectorTable,
    check_digest,
    column_names,
    parse_ids,
    parse_provenance,
)
from neural_brane.graph.memory import require_memory

if TYPE_CHECKING:
    from neural_brane.files.vectors.parts import StoredColumn

SIGNATURE = b"\x89HDF\r\n\x1a\n"
USER_BLOCK = 512  # bytes
OURS = "neural_brane"  # the part of uns that is ours
GROUPS = ("layers", "obsm", "obsp", "uns", "varm", "varp")  # of every AnnData file, most of them empty
IDS = 8192  # written at a time


def import_h5py() -> Any:
    """The module h5py, or an error that says how to get it."""
    try:
        import h5py
    except ImportError as error:
        raise DependencyError(
            ".h5ad files are HDF5, which takes h5py, and it is not installed; run: pip install 'neural-brane[h5ad]'"
        ) from error
    return h5py


def write_h5ad(content: Content, path: Path) -> None:
    """Write the names of obs and var and the rest into uns, then X block by block, then the digest.

    HDF5 ends the process where a disk runs full under it. So room is taken first, HDF5 only says where X will stand,
    and the blocks are written there past it.
    """
    names = sum(array.nbytes + 32 * len(array) for array in (content.ids, content.made_from) if array is not None)
    if (size := 4 * len(content.ids) * content.dim + names) and hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as stream:
            os.posix_fallocate(stream.fileno(), 0, size)
    place = _write_all_but_numbers(content, path)
    with open(path, "r+b") as stream:
        stream.seek(place)
        for block in content.blocks:
            stream.write(block.data)
        stream.seek(USER_BLOCK)
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        stream.write(MARK + digest.encode())


def _write_all_but_numbers(content: Content, path: Path) -> int:
    """Write all but the numbers of X; return where in the file they belong."""
    h5py = import_h5py()
    plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plan.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plan.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    # The draft is locked by its maker, so HDF5 must not ask for a lock of its own.
    with h5py.File(path, "w", userblock_size=USER_BLOCK, locking=False) as file:
        _mark(file, "anndata", "0.1.0").attrs["checksum"] = "user block"
        space = h5py.h5s.create_simple((len(content.ids), content.dim))
        table = h5py.h5d.create(file.id, b"X", h5py.h5t.IEEE_F32LE, space, plan)
        _mark(file["X"], "array", "0.2.0")
        for name in GROUPS:
            _mark(file.create_group(name), "dict", "0.1.0")
        made_from: dict[str, Any] = {} if content.made_from is None else {"made_from": content.made_from}
        _write_frame(file, "obs", content.ids, made_from)
        _write_frame(file, "var", np.array(column_names(content.dim)), {})
        ours = _mark(file["uns"].create_group(OURS), "dict", "0.1.0")
        kind = "integers" if content.ids.dtype.kind == "i" else "strings"
        for name, text in {"provenance": content.provenance, "ids": kind}.items():
            _mark(ours.create_dataset(name, data=text, dtype=h5py.string_dtype()), "string", "0.2.0")
        for name, array in zip(LAYER, content.layer or (), strict=False):
            _mark(ours.create_dataset(name, data=array), "array", "0.2.0")
        return table.get_offset() or 0  # none where there are no vectors


def _mark(item: Any, kind: str, version: str) -> Any:
    """Say what AnnData takes a part of the file as."""
    item.attrs["encoding-type"], item.attrs["encoding-version"] = kind, version
    return item


def _write_frame(
    file: Any, name: str, index: np.ndarray | StoredColumn, columns: dict[str, np.ndarray | StoredColumn]
) -> None:
    group = _mark(file.create_group(name), "dataframe", "0.2.0")
    group.attrs["_index"] = "_index"
    group.attrs.create("column-order", list(columns) or np.empty(0), dtype=import_h5py().string_dtype())
    for title, values in {"_index": index, **columns}.items():
        texts = _mark(
            group.create_dataset(title, (len(values),), import_h5py().string_dtype()), "string-array", "0.2.0"
        )
        for at in range(0, len(values), IDS):
            texts[at : at + IDS] = list(map(str, values[at : at + IDS].tolist()))


def read_h5ad(path: Path) -> VectorTable:
    """Read X, or where it is no table of numbers the only table in obsm whose name begins with X_."""
    h5py = import_h5py()
    check_file(path, EmbeddingError)
    checked = _has_checksum(path)
    if not checked:
        with open(path, "rb") as stream:
            if reason := why_unreadable("HDF5", stream):
                raise _unreadable(path, reason)
    try:
        with h5py.File(path, "r", locking=False) as file:
            if not checked and "checksum" in file.attrs:
                raise _unreadable(path, "its checksum is gone")
            return _read(path, file)
    except EmbeddingError:
        raise
    except DAMAGE as error:
        raise _unreadable(path, str(error).partition("\n")[0]) from None


def _unreadable(path: Path, reason: str) -> EmbeddingError:
    return EmbeddingError(f"{path}: not a readable .h5ad file, or it is damaged ({reason}); make it again")


def _has_checksum(path: Path) -> bool:
    """Whether a file has a digest; refuse one whose bytes are not those that its digest was made of."""
    with open(path, "rb") as stream:
        start = stream.read(USER_BLOCK)
        if not start.startswith(MARK):
            places = (0, *(1 << power for power in range(9, 24)))  # where HDF5 looks for its beginning
            if not any(stream.seek(place) == place and stream.read(8) == SIGNATURE for place in places):
                raise _unreadable(path, "it does not begin as HDF5 does")
            return False
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    check_digest(path, found, start[len(MARK) : RECORD])
    return True


def _read(path: Path, file: Any) -> VectorTable:
    vectors = _dataset(path, _choose_table(path, file))
    obs = file.get("obs")
    name = obs.attrs.get("_index", "_index") if hasattr(obs, "attrs") and hasattr(obs, "keys") else None
    if name is None or name not in obs:
        raise EmbeddingError(f"{path}: its obs has no names; write it with AnnData 0.7 or later")
    words = _dataset(path, obs[name], text=True)
    ours = file["uns"].get(OURS) if "uns" in file and hasattr(file["uns"], "keys") else None
    if ours is None or not hasattr(ours, "keys"):
        return VectorTable(vectors, parse_ids(words.tolist()), {})
    as_text = "ids" in ours and ours["ids"].asstr()[()] == "strings"
    provenance = parse_provenance(path, ours["provenance"].asstr()[()] if "provenance" in ours else "{}")
    layer = (_dataset(path, ours[LAYER[0]]), _dataset(path, ours[LAYER[1]])) if LAYER[0] in ours else None
    made = obs.get("made_from")
    made_from = _dataset(path, made, text=True).astype(str) if hasattr(made, "asstr") else None
    return VectorTable(
        vectors, words.astype(str) if as_text else parse_ids(words.tolist()), provenance, layer, made_from
    )


def _choose_table(path: Path, file: Any) -> Any:
    """X where it is a table of numbers, else the one table of obsm that an embedding would be."""
    if _is_table(file.get("X")):
        return file["X"]
    obsm = file.get("obsm")
    names = [name for name in obsm if name.startswith("X_") and _is_table(obsm[name])] if hasattr(obsm, "keys") else []
    if len(names) == 1:
        return obsm[names[0]]
    found = f"obsm has {', '.join(names)}: save one of them as X" if names else "nor has obsm one called X_…"
    raise EmbeddingError(f"{path}: X is no table of numbers, and {found}")


def _is_table(item: Any) -> bool:
    return getattr(item, "ndim", 0) == 2 and item.dtype.kind in "fiu"


def _dataset(path: Path, item: Any, *, text: bool = False) -> np.ndarray:
    """Read an array, once it is known to fit into memory and to stand in this file and no other."""
    if not hasattr(item, "shape") or item.is_virtual or item.external or item.file.filename != str(path):
        raise EmbeddingError(f"{path}: '{item.name}' is no array of this file; write the file again, with its data")
    require_memory(item.size * (64 if text else 8), f"{path}: reading {item.size:,} values", "use a smaller file")
    if not text:
        return item[()]
    return np.array(item.asstr()[()], dtype=object)


FORMAT = VectorFormat(
    ".h5ad",
    "AnnData: X, names of obs, the rest in uns (needs h5py)",
    read_h5ad,
    write_h5ad,
    keeps=EVERYTHING,
    checksums=True,
    number_bytes=4,
    id_bytes=32,
    require=import_h5py,
)
