"""Read and write arrays with metadata in one safetensors file, with a checksum of every bit.

The header of our files holds the SHA-256 of the whole file, computed while its own 64 digits are zeros. Every program
that reads safetensors reads the arrays. The library `safetensors` checks the header of every file that we read. We
write headers ourselves for two reasons: the library takes only whole arrays, but vectors are written block by block;
and it orders the metadata differently in each run, but the same arrays must give the same file.
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
from neural_brane.files.storage import atomic, parse_json

PREFIX = b'{"__metadata__":{"checksum":"'  # the first bytes of our headers
ZEROS = "0" * 64  # stands for the digits of the checksum while it is computed
DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
CODES = {np.dtype(kind): code for code, kind in DTYPES.items()}
OUR_KEYS = {"checksum", "format", "about", "state"}  # our headers have at least one; only the first format had state

Arrays = dict[str, np.ndarray]


class FileKind(NamedTuple):
    """A kind of our files, with the words for its error messages."""

    noun: str  # its name, such as "checkpoint"
    format: str  # the version of the content that this package writes and reads
    error: type[BraneError]
    advice: str  # advice for a damaged file, such as "restore it from a copy"
    outdated: str  # advice for a file of another format
    mark: str | None = None  # the value of `kind` in the header; checkpoints have none

    def damaged(self, path: Path, why: str) -> BraneError:
        """Return the error for a file whose content has changed since it was written."""
        return self.error(f"{path}: the {self.noun} is damaged, {why}; {self.advice}")

    def wrong_kind(self, path: Path, why: str) -> BraneError:
        """Return the error for a file that may be of another kind."""
        return self.error(f"{path}: is not a {self.noun}, or is damaged: {why}; name another file, or remove it")


class Header(NamedTuple):
    """The checked header of a safetensors file."""

    text: bytes  # all bytes before the arrays
    metadata: dict[str, str]
    arrays: dict[str, tuple[str, tuple[int, ...]]]  # dtype code, such as F32, and shape, in the order of their bytes


def write(path: str | Path, kind: FileKind, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file atomically; `about` may hold anything that JSON can hold."""
    with atomic(path) as draft, open(draft, "wb") as file:
        write_parts(file, kind, about, arrays, arrays.values())


def write_parts(
    file: BinaryIO,
    kind: FileKind,
    about: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    parts: Iterable[np.ndarray],
) -> None:
    """Write a file whose bytes come in `parts`; only the dtypes and shapes of `arrays` are used."""
    mark = {} if kind.mark is None else {"kind": kind.mark}
    metadata = {"checksum": ZEROS, **mark, "format": kind.format, "about": json.dumps(about, allow_nan=False)}
    tensors: dict[str, Any] = {"__metadata__": metadata}
    at = 0
    for name, array in arrays.items():
        offsets = [at, at := at + array.nbytes]
        tensors[name] = {"dtype": CODES[array.dtype], "shape": array.shape, "data_offsets": offsets}
    header = json.dumps(tensors, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # so that the arrays begin at a multiple of eight bytes
    header = len(header).to_bytes(8, "little") + header
    checksum = hashlib.sha256(header)
    file.write(header)
    for part in parts:
        data = _bytes_of(part)
        checksum.update(data)
        file.write(data)
    file.seek(8 + len(PREFIX))
    file.write(checksum.hexdigest().encode())


def read(
    path: str | Path, kind: FileKind, *, mapped: bool = False, verify: bool = True
) -> tuple[dict[str, Any], Arrays]:
    """Return metadata and arrays; raise an error if the file is of another kind or has a changed bit.

    If `mapped`, the arrays are read-only views of the file, which must not be changed in place while they exist;
    `write` may replace it. `verify` compares the checksum, which reads the whole file at one or two gigabytes per
    second. Without it, damaged numbers in a mapped file go unnoticed. Files that are not mapped are always verified.
    """
    path = Path(path)
    header = _read_header(path, kind)
    metadata = header.metadata
    if not metadata.keys() & OUR_KEYS:
        raise kind.wrong_kind(path, f"it has no header of a {kind.noun}")
    if metadata.get("kind") != kind.mark:
        raise kind.wrong_kind(path, f"its header says that it is a '{metadata.get('kind', 'checkpoint')}'")
    if metadata.get("format") != kind.format:
        found = f"{path}: is a {kind.noun} of format '{metadata.get('format', 1)}',"
        raise kind.error(f"{found} but this version reads format {kind.format}; {kind.outdated}")
    arrays = read_arrays(path, header, mapped=mapped)
    if verify or not mapped:
        expected = metadata.get("checksum", "")
        checksum = hashlib.sha256(header.text.replace(expected.encode(), ZEROS.encode(), 1))
        for array in arrays.values():
            checksum.update(_bytes_of(array))
        if checksum.hexdigest() != expected:
            raise kind.damaged(path, "its content does not match its checksum")
    try:
        about: dict[str, Any] = parse_json(metadata["about"])
    except (KeyError, ValueError):
        raise kind.damaged(path, "its metadata cannot be read") from None
    return about, arrays


def read_about(path: str | Path, kind: FileKind) -> dict[str, Any]:
    """Return the metadata, or {} if it cannot be read; the arrays and the checksum are not read."""
    try:
        metadata = _read_header(Path(path), kind).metadata
        about = parse_json(metadata["about"]) if metadata.get("kind") == kind.mark else {}
    except (kind.error, KeyError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def list_arrays(path: str | Path, error: type[BraneError]) -> Header:
    """Return the header of any safetensors file, also from other programs, without reading its arrays."""
    advice = "restore it from a copy, or write it again"
    return _read_header(Path(path), FileKind("safetensors file", "", error, advice, advice))


def _read_header(path: Path, kind: FileKind) -> Header:
    from safetensors import SafetensorError, safe_open

    with path.open("rb") as file:  # raises the usual error if the path is wrong
        try:
            with safe_open(path, "numpy"):  # refuses sizes and offsets that do not fit the file
                size = file.read(8)
                text = file.read(int.from_bytes(size, "little"))
            entries = parse_json(text)
        except (SafetensorError, ValueError) as failure:
            raise kind.wrong_kind(path, str(failure).removeprefix("Error while deserializing header: ")) from None
    metadata = entries.pop("__metadata__", None) or {}
    arrays = {}
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        if entry["dtype"] not in DTYPES:
            raise kind.damaged(path, f"or array {name!r} has dtype {entry['dtype']!r}, which NumPy lacks")
        arrays[name] = entry["dtype"], tuple(entry["shape"])
    return Header(size + text, metadata, arrays)


def read_arrays(path: Path, header: Header, *, mapped: bool = False) -> Arrays:
    """Read the arrays in a header's list, or map them as read-only views of the file."""
    whole = np.asarray(np.memmap(path, np.uint8, mode="r")) if mapped else None
    arrays, at = {}, len(header.text)
    for name, (code, shape) in header.arrays.items():
        count, dtype = math.prod(shape), np.dtype(DTYPES[code])
        if whole is None:
            arrays[name] = np.fromfile(path, dtype, count, offset=at).reshape(shape)
        else:
            arrays[name] = whole[at : at + count * dtype.itemsize].view(dtype).reshape(shape)
        at += count * dtype.itemsize  # the library has refused gaps between arrays
    return arrays


def _bytes_of(array: np.ndarray) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]
