"""Arrays and what is told of them in one file, in the safetensors format, with a checksum of every bit.

A safetensors file is the length of a header, the header in JSON, and the bytes of the arrays. In our own files the
header's first entry is the checksum: the SHA-256 of the whole file, taken while its own digits are zeros. Any library
that knows safetensors reads their arrays. `read_plain` reads the files of other programs, which have no checksum.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from neural_brane.errors import BraneError
from neural_brane.files.storage import atomic

PREFIX = b'{"__metadata__":{"checksum":"'
DIGITS = 64
DTYPES = {
    "F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "I16": np.int16,
    "I8": np.int8, "U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
CODES = {np.dtype(kind): code for code, kind in DTYPES.items()}
BLOCK_BYTES = 1 << 22  # hashed, read or written at a time
TOLD = {"checksum", "format", "about", "state"}  # a header of ours has one at least; the first format had state

Arrays = dict[str, np.ndarray]


class Kind(NamedTuple):
    """What a file of ours is, and how errors speak of it."""

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


class Entry(NamedTuple):
    """An array as the header lists it: its place is counted from the end of the header."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    stop: int


class Plain(NamedTuple):
    """What a safetensors file of another program holds."""

    metadata: dict[str, str]
    arrays: Arrays


class Listed(NamedTuple):
    """What the header of any safetensors file says, with the arrays left unread."""

    metadata: dict[str, Any]
    arrays: dict[str, tuple[str, tuple[int, ...]]]  # kind of number, as in F32, and shape


def write(path: str | Path, kind: Kind, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file that appears whole or not at all; `about` is anything that JSON can hold."""
    head = memoryview(header_of(kind, about, arrays))
    checksum = hashlib.sha256()
    with atomic(path) as draft, open(draft, "wb") as file:
        for part in (head, *(_bytes_of(array) for array in arrays.values())):
            for block in _blocks(part):
                checksum.update(block)
                file.write(block)
        file.seek(8 + len(PREFIX))
        file.write(checksum.hexdigest().encode())


def write_plain(path: str | Path, metadata: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a safetensors file without our checksum, as other programs do; it appears whole or not at all."""
    with atomic(path) as draft, open(draft, "wb") as file:
        file.write(_header(dict(metadata), arrays))
        for array in arrays.values():
            for block in _blocks(_bytes_of(array)):
                file.write(block)


def read(path: str | Path, kind: Kind, *, mapped: bool = False, verify: bool = True) -> tuple[dict[str, Any], Arrays]:
    """What is told and the arrays; refused where the file is of another kind, or where a single bit is not as written.

    mapped: the arrays are read-only views of the file, and the system fetches their pages when they are used; the file
    must not be changed in place as long as they live (a file that `write` replaces is not). Without it they are read
    into memory. verify: compare the checksum. That reads every byte of the file once, also where it is mapped: a second
    for each gigabyte or two, and no memory that the system could not take back. Without it, damage to the numbers of a
    mapped file goes unseen.
    """
    path = Path(path)
    with open(path, "rb") as file:
        size, header = _read_header(path, file, kind)
        entries = _parse(path, header, kind)
        told = entries.pop("__metadata__")
        _check_kind(path, told, kind)
        digits = slice(len(PREFIX), len(PREFIX) + DIGITS)
        given, begins = header[digits], header.startswith(PREFIX)
        header[digits] = b"0" * DIGITS
        checksum = hashlib.sha256(size.to_bytes(8, "little") + header)
        layout = _layout(path, file, entries, kind)
        arrays = _map(file, layout) if mapped else _load(file, layout)
        if verify or not mapped:
            for array in arrays.values():
                for block in _blocks(_bytes_of(array)):
                    checksum.update(block)
            if not begins or checksum.hexdigest().encode() != given:
                raise kind.damaged(path, "its checksum is that of other content")
    try:
        about: dict[str, Any] = json.loads(told["about"])
    except (KeyError, TypeError, ValueError, RecursionError):
        raise kind.damaged(path, "what it tells of itself cannot be read") from None
    return about, arrays


def read_about(path: str | Path, kind: Kind) -> dict[str, Any]:
    """What is told, with the arrays left unread and so without a check of the sum; {} where it cannot be read."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            told = _parse(path, _read_header(path, file, kind)[1], kind)["__metadata__"]
        about = json.loads(told["about"]) if told.get("kind") == kind.mark else {}
    except (kind.error, KeyError, TypeError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def read_plain(path: str | Path, error: type[BraneError], *, mapped: bool = False) -> Plain:
    """The arrays of any safetensors file, ours or not, as the header lists them; nothing but sizes is checked.

    mapped: as for `read`.
    """
    path, kind = Path(path), _plain(error)
    with open(path, "rb") as file:
        metadata, names, layout = _open_any(path, file, kind)
        arrays = (_map if mapped else _load)(file, layout)
    return Plain(metadata, {name: arrays[name] for name in names})


def list_arrays(path: str | Path, error: type[BraneError]) -> Listed:
    """What the header of a safetensors file says, ours or not; the arrays are left unread."""
    path, kind = Path(path), _plain(error)
    with open(path, "rb") as file:
        metadata, names, layout = _open_any(path, file, kind)
    shapes = {entry.name: (CODES[entry.dtype], entry.shape) for entry in layout}
    return Listed(metadata, {name: shapes[name] for name in names})


def _plain(error: type[BraneError]) -> Kind:
    mend = "restore it from a copy, or write it anew"
    return Kind("safetensors file", "", error, mend, mend)


def _open_any(path: Path, file: BinaryIO, kind: Kind) -> tuple[dict[str, Any], list[str], list[Entry]]:
    """The metadata of any safetensors file, the names of its arrays as it lists them, and where these lie."""
    entries = _parse_any(path, _read_header(path, file, kind)[1], kind)
    metadata = entries.pop("__metadata__", {})
    return metadata, list(entries), _layout(path, file, _in_order(entries), kind)


def header_of(kind: Kind, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """All that stands before the arrays, of which only kinds and shapes count; the checksum's digits are zeros."""
    marked = {} if kind.mark is None else {"kind": kind.mark}
    told = {"checksum": "0" * DIGITS, **marked, "format": kind.format, "about": json.dumps(about, allow_nan=False)}
    return _header(told, arrays)


def _header(told: dict[str, str], arrays: Mapping[str, np.ndarray]) -> bytes:
    """The length of the header and the header, padded so that the arrays begin at a multiple of eight bytes."""
    tensors, at = {}, 0
    for name, array in arrays.items():
        tensors[name] = {"dtype": CODES[array.dtype], "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    header = json.dumps({"__metadata__": told} | tensors, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _read_header(path: Path, file: BinaryIO, kind: Kind) -> tuple[int, bytearray]:
    """The length of the header, which is judged before memory is taken, and the header."""
    whole = os.fstat(file.fileno()).st_size
    size = int.from_bytes(file.read(8), "little")
    if whole < 8 or size > whole - 8:
        raise kind.other(path, f"{whole:,} bytes that end within its header")
    return size, bytearray(file.read(size))


def _parse(path: Path, header: bytearray, kind: Kind) -> dict[str, Any]:
    """The entries of a header of ours."""
    entries = _parse_any(path, header, kind)
    if not entries.get("__metadata__", {}).keys() & TOLD:
        raise kind.other(path, f"no header of a {kind.noun}")
    return entries


def _parse_any(path: Path, header: bytearray, kind: Kind) -> dict[str, Any]:
    """The entries of any safetensors header; the metadata, where there are some, are texts by name."""
    try:
        entries: dict[str, Any] = json.loads(bytes(header))
        if not isinstance(entries, dict) or not isinstance(entries.get("__metadata__", {}), dict):
            raise ValueError
    except (ValueError, RecursionError):
        raise kind.other(path, f"no header of a {kind.noun}") from None
    return entries


def _check_kind(path: Path, told: Mapping[str, Any], kind: Kind) -> None:
    """Refuse a file of another kind, and one of another format."""
    if told.get("kind") != kind.mark:
        raise kind.other(path, f"its header says that it is a {_short(told.get('kind', 'checkpoint'))}")
    if told.get("format") != kind.format:
        raise kind.error(
            f"{path}: a {kind.noun} of format {_short(told.get('format', 1))}, and this version reads format "
            f"{kind.format}; {kind.outdated}"
        )


def _in_order(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries in the order of their bytes; other programs may list them in any order."""
    try:
        return dict(sorted(entries.items(), key=lambda item: [int(at) for at in item[1]["data_offsets"]]))
    except (KeyError, TypeError, ValueError):
        return dict(entries)  # `_layout` says what is wrong with it


def _layout(path: Path, file: BinaryIO, entries: Mapping[str, Any], kind: Kind) -> list[Entry]:
    """Where the arrays lie, one after another without a gap; what the header claims is judged by the file's size."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    found, at = [], 0
    for name, entry in entries.items():
        if isinstance(entry, dict) and isinstance(code := entry.get("dtype"), str) and code not in DTYPES:
            raise kind.damaged(path, f"or array {_short(name)} has numbers of kind {_short(code)}, which NumPy lacks")
        try:
            shape, dtype = tuple(entry["shape"]), np.dtype(DTYPES[entry["dtype"]])
            nbytes = math.prod(shape) * dtype.itemsize
            whole = all(isinstance(length, int) and length >= 0 for length in shape)
            fits = whole and entry["data_offsets"] == [at, at + nbytes] and at + nbytes <= left
        except (KeyError, TypeError):
            fits = False
        if not fits:
            raise kind.damaged(path, f"and array {_short(name)} does not fit into its {left:,} bytes")
        found.append(Entry(name, dtype, shape, at, at + nbytes))
        at += nbytes
    if at != left:
        raise kind.damaged(path, f"with {left - at:,} bytes after its last array")
    return found


def _load(file: BinaryIO, layout: Iterable[Entry]) -> Arrays:
    """The arrays in memory, which is taken only for bytes that are there."""
    arrays = {}
    for entry in layout:
        arrays[entry.name] = np.empty(entry.shape, entry.dtype)
        for block in _blocks(_bytes_of(arrays[entry.name])):
            file.readinto(block)  # type: ignore[attr-defined]
    return arrays


def _map(file: BinaryIO, layout: Iterable[Entry]) -> Arrays:
    """The arrays as read-only views of the file."""
    begin = file.tell()
    whole = np.asarray(np.memmap(file, np.uint8, mode="r"))
    return {
        entry.name: whole[begin + entry.start : begin + entry.stop].view(entry.dtype).reshape(entry.shape)
        for entry in layout
    }


def _blocks(content: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(content), BLOCK_BYTES):
        yield content[start : start + BLOCK_BYTES]


def _bytes_of(array: np.ndarray) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"
