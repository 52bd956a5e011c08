"""The file of a checkpoint: arrays and what is told of them, in the safetensors format, with a checksum of every bit.

A safetensors file is the length of a header, the header in JSON, and the bytes of the arrays. The header's first entry
is the checksum: the SHA-256 of the whole file, taken while its own digits are zeros.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from neural_brane.errors import CheckpointError
from neural_brane.io.atomic import atomic

FORMAT = "2"
PREFIX = b'{"__metadata__":{"checksum":"'
DIGITS = 64
DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "U8": np.uint8}
CODES = {np.dtype(kind): code for code, kind in DTYPES.items()}
BLOCK_BYTES = 1 << 22  # hashed, read or written at a time
AFRESH = "remove it to start afresh, or name another file"


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file that appears whole or not at all; `about` is anything that JSON can hold."""
    tensors, at = {}, 0
    for name, array in arrays.items():
        tensors[name] = {"dtype": CODES[array.dtype], "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    told = {"checksum": "0" * DIGITS, "format": FORMAT, "about": json.dumps(about, allow_nan=False)}
    header = json.dumps({"__metadata__": told} | tensors, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    checksum = hashlib.sha256()
    with atomic(path) as draft, open(draft, "wb") as file:
        head = memoryview(len(header).to_bytes(8, "little") + header)
        for part in (head, *(_bytes_of(array) for array in arrays.values())):
            for start in range(0, len(part), BLOCK_BYTES):
                block = part[start : start + BLOCK_BYTES]
                checksum.update(block)
                file.write(block)
        file.seek(8 + len(PREFIX))
        file.write(checksum.hexdigest().encode())


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is told and the arrays; refused where the file is no checkpoint, or where a single bit is not as written."""
    with open(path, "rb") as file:
        size, header = _read_header(path, file)
        entries = _parse(path, header)
        told = entries.pop("__metadata__")
        if told.get("format") != FORMAT:
            raise CheckpointError(
                f"{path}: a checkpoint of format {_short(told.get('format', 1))}, and this version reads format "
                f"{FORMAT}; finish it with the version that wrote it, or {AFRESH}"
            )
        digits = slice(len(PREFIX), len(PREFIX) + DIGITS)
        given = header[digits]
        header[digits] = b"0" * DIGITS
        checksum = hashlib.sha256(size.to_bytes(8, "little") + header)
        arrays = _read_arrays(path, file, entries, checksum)
        if not header.startswith(PREFIX) or checksum.hexdigest().encode() != given:
            raise damaged(path, "its checksum is that of other content")
    about: dict[str, Any] = json.loads(told["about"])
    return about, arrays


def read_about(path: Path) -> dict[str, Any]:
    """What is told, with the arrays left unread and so without a check of the sum; {} where it cannot be read."""
    try:
        with open(path, "rb") as file:
            told = _parse(path, _read_header(path, file)[1])["__metadata__"]
        about = json.loads(told["about"])
    except (CheckpointError, KeyError, TypeError, ValueError):
        return {}
    return about if isinstance(about, dict) else {}


def damaged(path: Path, why: str) -> CheckpointError:
    """The error for a file that is not as it was written."""
    return CheckpointError(f"{path}: the checkpoint is damaged, {why}; restore it from a copy, or {AFRESH}")


def _read_header(path: Path, file: BinaryIO) -> tuple[int, bytearray]:
    """The length of the header, which is judged before memory is taken, and the header."""
    whole = os.fstat(file.fileno()).st_size
    size = int.from_bytes(file.read(8), "little")
    if whole < 8 or size > whole - 8:
        raise _other(path, f"{whole:,} bytes that end within its header")
    return size, bytearray(file.read(size))


def _parse(path: Path, header: bytearray) -> dict[str, Any]:
    try:
        entries = json.loads(bytes(header))
        told = entries["__metadata__"]
        if not isinstance(told, dict) or not told.keys() & {"checksum", "format", "about", "state"}:
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _other(path, "no header of a checkpoint") from None
    found: dict[str, Any] = entries
    return found


def _read_arrays(path: Path, file: BinaryIO, entries: dict[str, Any], checksum: Any) -> dict[str, np.ndarray]:
    """The arrays in the order of the file, each as it is listed; memory is taken only for bytes that are there."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    arrays, at = {}, 0
    for name, entry in entries.items():
        try:
            shape, dtype = tuple(entry["shape"]), np.dtype(DTYPES[entry["dtype"]])
            nbytes = math.prod(shape) * dtype.itemsize
            whole = all(isinstance(length, int) and length >= 0 for length in shape)
            fits = whole and entry["data_offsets"] == [at, at + nbytes] and at + nbytes <= left
        except (KeyError, TypeError):
            fits = False
        if not fits:
            raise damaged(path, f"and array {_short(name)} does not fit into its {left:,} bytes")
        arrays[name] = np.empty(shape, dtype)
        content = _bytes_of(arrays[name])
        for start in range(0, nbytes, BLOCK_BYTES):
            block = content[start : start + BLOCK_BYTES]
            file.readinto(block)  # type: ignore[attr-defined]
            checksum.update(block)
        at += nbytes
    if at != left:
        raise damaged(path, f"with {left - at:,} bytes after its last array")
    return arrays


def _bytes_of(array: np.ndarray) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _other(path: Path, what: str) -> CheckpointError:
    return CheckpointError(f"{path}: is not a checkpoint, or a damaged one: {what}; name another file, or remove it")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "…"
