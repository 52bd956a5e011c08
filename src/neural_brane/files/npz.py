"""Read and write NumPy's .npz files with checksums.

An .npz file is a zip archive of .npy files. We add the member `checksums`, a JSON text with the version of this format
and the SHA-256 of every other member. Files from other programs and earlier versions lack it; for them only the CRC-32
of the zip archive is checked. Python objects are never read, because reading them takes pickle.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn

import numpy as np

from neural_brane.errors import BraneError
from neural_brane.files.reading import DAMAGE, npz_headers, read_npy_header
from neural_brane.files.storage import REPAIR, parse_json

CHECKSUMS = "checksums"
FORMAT = 1  # version of `checksums`
COMMENT = b"neural-brane with checksums"  # marks our archives, even if damage hides the member `checksums`
ZIP64_HEADER = 30 + 20  # bytes around a member's name, without padding
PADDING = 0xD935  # the extra field that zip writers use for padding
ALIGNED = 64  # bytes; NumPy aligns the headers of arrays in the same way
CHUNK = 1 << 20  # bytes hashed or copied at a time


class RowBlocks:
    """A float32 table that is written block by block, because it may not fit into memory."""

    def __init__(self, blocks: Iterable[np.ndarray], shape: tuple[int, int]):
        self.blocks, self.shape = blocks, shape


def write_npz(path: Path, arrays: Mapping[str, np.ndarray | RowBlocks], *, compress: bool = False) -> None:
    """Write arrays of numbers or strings with their checksums; the same arrays give the same bytes."""
    digests = {}
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = COMMENT
        for name, content in arrays.items():
            with _new_member(archive, name, compress) as file:
                digests[name] = _write_array(file, content)
        with _new_member(archive, CHECKSUMS, compress) as file:
            record = np.array(json.dumps({"format": FORMAT, "sha256": digests}))
            np.lib.format.write_array(file, record, allow_pickle=False)


def _new_member(archive: zipfile.ZipFile, name: str, compress: bool) -> IO[bytes]:
    """Begin a member whose content starts at a multiple of ALIGNED, so that it can be mapped."""
    information = zipfile.ZipInfo(f"{name}.npy")  # with a fixed date
    information.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    length = -(archive.start_dir + ZIP64_HEADER + len(information.filename) + 4) % ALIGNED
    information.extra = struct.pack("<HH", PADDING, length) + bytes(length)
    return archive.open(information, "w", force_zip64=True)


def _write_array(file: Any, content: np.ndarray | RowBlocks) -> str:
    """Write an array and return the SHA-256 of its bytes."""
    digest = hashlib.sha256()

    def write(data: Any) -> None:
        digest.update(data)
        file.write(data)

    hashing: Any = SimpleNamespace(write=write)
    if isinstance(content, RowBlocks):
        header = {"descr": "<f4", "fortran_order": False, "shape": content.shape}
        np.lib.format.write_array_header_1_0(hashing, header)
        for block in content.blocks:
            write(block.data)
    else:
        np.lib.format.write_array(hashing, content, allow_pickle=False)
    return digest.hexdigest()


class Npz:
    """The arrays of an .npz file, each read and checked when it is used; `open_npz` makes it."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, error: type[BraneError]):
        self.path, self._archive, self._error = path, archive, error
        names = archive.namelist()
        self.names = [name.removesuffix(".npy") for name in names if name.endswith(".npy")]
        if len(set(names)) < len(names):
            self._refuse("two of its arrays have the same name")
        self._digests: dict[str, str] | None = None
        if (archive.comment == COMMENT) != (CHECKSUMS in self.names):
            self._refuse("its checksums or the mark at its end are missing")
        if CHECKSUMS in self.names:
            self.names.remove(CHECKSUMS)
            self._digests = self._read_checksums()

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> np.ndarray:
        if self._digests is not None:
            self.verify(name)
        try:
            with self._archive.open(f"{name}.npy") as file:
                return read_array(file, self._archive.getinfo(f"{name}.npy").file_size)
        except ObjectArrayError:
            found = f"{self.path}: array '{name}' contains Python objects, which are never read;"
            raise self._error(f"{found} save numbers or strings") from None
        except DAMAGE:
            self._refuse(f"array '{name}' cannot be read")

    def verify(self, name: str) -> None:
        """Read an array once and raise an error if it does not match its checksum."""
        try:
            with self._archive.open(f"{name}.npy") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
        except DAMAGE:
            self._refuse(f"array '{name}' cannot be read")
        if self._digests is not None and digest != self._digests[name]:
            self._refuse(f"array '{name}' does not match its checksum")

    def _read_checksums(self) -> dict[str, str]:
        """Return the digest of every array; raise an error if the digests belong to other arrays."""
        try:
            record = parse_json(self[CHECKSUMS].item())
            version, digests = record["format"], record["sha256"]
        except BraneError:
            raise
        except DAMAGE:
            self._refuse("its checksums cannot be read")
        if version != FORMAT:
            found = f"{self.path}: has checksums of format {version}, but this version reads format {FORMAT};"
            raise self._error(f"{found} read it with the version of neural-brane that wrote it")
        if not isinstance(digests, dict) or sorted(digests) != sorted(self.names):
            self._refuse("its checksums belong to other arrays")
        return digests

    def _refuse(self, why: str) -> NoReturn:
        raise self._error(f"{self.path}: the file is damaged, cut off or changed: {why}; {REPAIR}")


@contextmanager
def open_npz(path: str | Path, error: type[BraneError], expected: str) -> Iterator[Npz]:
    """Open an .npz file, or raise `error`; `expected` names the arrays for the message."""
    path = Path(path)
    try:
        npz_headers(path, error)
        archive = zipfile.ZipFile(path)
    except (BraneError, FileNotFoundError):
        raise
    except OSError as failure:
        raise error(f"{path}: cannot be read ({failure.strerror}); make it a readable file") from None
    except DAMAGE:
        with path.open("rb") as file:
            if file.read(6) == np.lib.format.MAGIC_PREFIX:
                raise error(f"{path}: contains one array, expected {expected}; save them with numpy.savez") from None
        raise error(f"{path}: is not an .npz file, or is cut off; expected {expected}") from None
    with archive:
        yield Npz(path, archive, error)


class ObjectArrayError(ValueError):
    """An array contains Python objects, which only pickle could read."""


def read_array(file: IO[bytes], size: int) -> np.ndarray:
    """Read an array from an .npy file or member of `size` bytes, after its header agrees with the size."""
    shape, fortran, dtype = read_npy_header(file)
    if dtype.hasobject:
        raise ObjectArrayError
    length = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or length != size - file.tell():
        raise ValueError(f"{length} bytes announced, {size - file.tell()} found")
    if length == 0:
        return np.zeros(shape, dtype)
    data = np.empty(length, np.uint8)
    filled = 0
    while filled < length:
        if not (count := file.readinto(data[filled : filled + CHUNK].data)):  # type: ignore[attr-defined]
            raise EOFError
        filled += count
    if file.read(1):  # zipfile compares the CRC-32 when it reaches the end
        raise ValueError("bytes follow the array")
    check_text(data, dtype)
    array = data.view(dtype)
    return array.reshape(shape[::-1]).T if fortran else array.reshape(shape)


def check_text(data: np.ndarray, dtype: np.dtype) -> None:
    """Raise an error if text contains code points that are not characters: too large numbers or surrogates."""
    if dtype.kind == "U":
        points = data.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if ((points > 0x10FFFF) | ((points >= 0xD800) & (points <= 0xDFFF))).any():
            raise ValueError("not text")


def read_npy(path: Path) -> np.ndarray:
    """Read the array of an .npy file; a damaged file raises one of `DAMAGE`."""
    with path.open("rb") as file:
        return read_array(file, os.fstat(file.fileno()).st_size)
