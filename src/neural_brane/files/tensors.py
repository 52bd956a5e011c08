"""Read and write arrays with metadata in one file, in the safetensors format, with a checksum of every bit.

Files of ours hold in their header the SHA-256 of the whole file, taken while its own 64 digits are zeros. Any library
that knows safetensors reads their arrays. The library `safetensors` checks the header of every file that is read. The
header is written here, because the library takes whole arrays only and lists the metadata in an order that changes
from run to run: vectors are written block by block, and the same arrays give the same file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from neural_brane.errors import BraneError
from neural_brane.files.storage import atomic

PREFIX = b'{"__metadata__":{"checksum":"'  # how the header of our files begins
ZEROS = "0" * 64  # in the place of the checksum's digits
DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
CODES = {np.dtype(kind): code for code, kind in DTYPES.items()}
TOLD = {"checksum", "format", "about", "state"}  # a header of ours has one at least; the first format had state

Arrays = dict[str, np.ndarray]


class Kind(NamedTuple):
    """A kind of our files, and how errors speak of it."""

    noun: str  # as in "the checkpoint is damaged"
    format: str  # the version of its content that is written and read
    error: type[BraneError]
    mend: str  # what to do where a file is damaged, as in "restore it from a copy"
    outdated: str  # what to do with a file of another format
    mark: str | None = None  # the header's own word for this kind; checkpoints have none

    def damaged(self, path: Path, why: str) -> BraneError:
        """The error for a file that is not as it was written."""
        return self.error(f"{path}: the {self.noun} is damaged, {why}; {self.mend}")

    def other(self, path: Path, what: str) -> BraneError:
        """The error for a file that may never have been of this kind."""
        return self.error(f"{path}: is not a {self.noun}, or a damaged one: {what}; name another file, or remove it")


class Header(NamedTuple):
    """The header of a safetensors file, found sound."""

    text: bytes  # all that stands before the arrays
    metadata: dict[str, str]
    arrays: dict[str, tuple[str, tuple[int, ...]]]  # kind of number, as in F32, and shape, in the order of their bytes


def write(path: str | Path, kind: Kind, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file that appears whole or not at all; `about` is anything that JSON can hold."""
    with atomic(path) as draft, open(draft, "wb") as file:
        write_parts(file, kind, about, arrays, arrays.values())


def write_parts(
    file: BinaryIO, kind: Kind, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray], parts: Iterable[np.ndarray]
) -> None:
    """Write the arrays of a file part by part; of `arrays` only kinds and shapes are looked at."""
    marked = {} if kind.mark is None else {"kind": kind.mark}
    told = {"checksum": ZEROS, **marked, "format": kind.format, "about": json.dumps(about, allow_nan=False)}
    tensors: dict[str, Any] = {"__metadata__": told}
    at = 0
    for name, array in arrays.items():
        tensors[name] = {
            "dtype": CODES[array.dtype],
            "shape": array.shape,
            "data_offsets": [at, at := at + array.nbytes],
        }
    header = json.dumps(tensors, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # arrays begin at a multiple of eight bytes
    header = len(header).to_bytes(8, "little") + header
    checksum = hashlib.sha256(header)
    file.write(header)
    for part in parts:
        data = _bytes_of(part)
        checksum.update(data)
        file.write(data)
    file.seek(8 + len(PREFIX))
    file.write(checksum.hexdigest().encode())


def read(path: str | Path, kind: Kind, *, mapped: bool = False, verify: bool = True) -> tuple[dict[str, Any], Arrays]:
    """Return metadata and arrays; refuse a file of another kind, and one in which a single bit is not as written.

    mapped: the arrays are read-only views of the file, whose pages the system fetches when they are used. As long as
    they live the file must not be changed in place; `write` replaces it, which does no harm. verify: compare the
    checksum, which reads the whole file once, a second for each gigabyte or two. Without it, damage to the numbers of a
    mapped file goes unseen; a file that is not mapped is always verified.
    """
    path = Path(path)
    header = _read_header(path, kind)
    told = header.metadata
    if not told.keys() & TOLD:
        raise kind.other(path, f"no header of a {kind.noun}")
    if told.get("kind") != kind.mark:
        raise kind.other(path, f"its header says that it is a '{told.get('kind', 'checkpoint')}'")
    if told.get("format") != kind.format:
        raise kind.error(
            f"{path}: a {kind.noun} of format '{told.get('format', 1)}', and this version reads format "
            f"{kind.format}; {kind.outdated}"
        )
    arrays = read_arrays(path, header, mapped=mapped)
    if verify or not mapped:
        given = told.get("checksum", "")
        checksum = hashlib.sha256(header.text.replace(given.encode(), ZEROS.encode(), 1))
        for array in arrays.values():
            checksum.update(_bytes_of(array))
        if checksum.hexdigest() != given:
            raise kind.damaged(path, "its checksum is that of other content")
    try:
        about: dict[str, Any] = json.loads(told["about"])
    except (KeyError, ValueError, RecursionError):
        raise kind.damaged(path, "what it says of itself cannot be read") from None
    return about, arrays


def read_about(path: str | Path, kind: Kind) -> dict[str, Any]:
    """Return the metadata without a look at the arrays, and so without the checksum; {} where it cannot be read."""
    try:
        metadata = _read_header(Path(path), kind).metadata
        about = json.loads(metadata["about"]) if metadata.get("kind") == kind.mark else {}
    except (kind.error, KeyError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def list_arrays(path: str | Path, error: type[BraneError]) -> Header:
    """Read the header of any safetensors file, ours or not; the arrays are left unread."""
    mend = "restore it from a copy, or write it anew"
    return _read_header(Path(path), Kind("safetensors file", "", error, mend, mend))


def _read_header(path: Path, kind: Kind) -> Header:
    from safetensors import SafetensorError, safe_open

    with path.open("rb") as file:  # which also says what is wrong with the path
        try:
            with safe_open(path, "numpy"):  # refuses sizes and places that do not fit the file
                size = file.read(8)
                text = file.read(int.from_bytes(size, "little"))
            entries = json.loads(text)
        except (SafetensorError, ValueError, RecursionError) as failure:
            raise kind.other(path, str(failure).removeprefix("Error while deserializing header: ")) from None
    metadata = entries.pop("__metadata__", None) or {}
    arrays = {}
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        if entry["dtype"] not in DTYPES:
            raise kind.damaged(path, f"or array {name!r} has numbers of kind {entry['dtype']!r}, which NumPy lacks")
        arrays[name] = entry["dtype"], tuple(entry["shape"])
    return Header(size + text, metadata, arrays)


def read_arrays(path: Path, header: Header, *, mapped: bool = False) -> Arrays:
    """Read the arrays that a header lists, or map them as read-only views of the file."""
    whole = np.asarray(np.memmap(path, np.uint8, mode="r")) if mapped else None
    arrays, at = {}, len(header.text)
    for name, (code, shape) in header.arrays.items():
        count, dtype = math.prod(shape), np.dtype(DTYPES[code])
        if whole is None:
            arrays[name] = np.fromfile(path, dtype, count, offset=at).reshape(shape)
        else:
            arrays[name] = whole[at : at + count * dtype.itemsize].view(dtype).reshape(shape)
        at += count * dtype.itemsize  # the library refuses gaps between them
    return arrays


def _bytes_of(array: np.ndarray) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
