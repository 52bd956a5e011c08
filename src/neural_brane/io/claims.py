"""Sizes that a file merely claims, judged before memory is taken for them."""

from __future__ import annotations

import io
import math
import stat
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from neural_brane.errors import BraneError
from neural_brane.forks import check_polars
from neural_brane.memory import available, require_memory, show_size

BELIEVED = 1_000_000  # as many as this may be claimed without a line or an entry to show for it
PER_LINE = 1_000  # and so many for each one
CHUNK = 1 << 24
# What zipfile and NumPy raise on bytes that are not what they expect.
DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, NotImplementedError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
Header = tuple[tuple[int, ...], np.dtype]  # the shape and type that an array's header announces


def check_count(claimed: int, shown: int, what: str, mend: str, error: type[BraneError]) -> None:
    """Refuse a claim of far more nodes, rows or attributes than a file has lines or entries."""
    if claimed > BELIEVED + PER_LINE * shown:
        raise error(f"{what} announces {claimed:,}, and only {shown:,} follow; {mend}")


def check_file(path: Path, error: type[BraneError], *, pipe: bool = False, whole: bool = True) -> None:
    """Refuse a device, a socket or, unless it will do, a pipe where a file is needed.

    A file larger than memory is refused too, if it shall be read as a `whole`.
    """
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or (pipe and stat.S_ISFIFO(mode))):
        raise error(f"{path}: this is {_kind(mode)}, not a file; save what it gives to a file, and give that")
    if whole:
        require_memory(path.stat().st_size, f"{path}: reading it", "use a smaller file, or a machine with more memory")


def read_bytes(path: Path, error: type[BraneError]) -> bytes:
    """All bytes of a file, or of a pipe as far as memory allows; a device, which never ends, is refused."""
    check_polars()  # which splits it into columns
    check_file(path, error, pipe=True)
    if path.is_file():
        return path.read_bytes()
    room = available()
    content = io.BytesIO()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            content.write(chunk)
            if room is not None and 2 * content.tell() > room:
                raise error(f"{path}: the pipe gave {show_size(content.tell())} and did not end; give a smaller input")
    return content.getvalue()


def check_npz(path: Path, error: type[BraneError]) -> None:
    """Refuse an archive whose arrays do not fit into memory, or whose headers announce more than a member holds."""
    npz_headers(path, error)


def npz_headers(path: Path, error: type[BraneError]) -> dict[str, Header]:
    """The headers of an archive's arrays, by name, once `check_npz` has found nothing against them.

    Of an archive that is damaged there are none: its reader says what is wrong with it.
    """
    check_file(path, error)
    headers: dict[str, Header] = {}
    total = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as stream:
                    found = _check_array(f"{path}: array '{member.filename}'", stream, member.file_size, error)
                if found is not None:
                    headers[member.filename.removesuffix(".npy")] = found
                total += member.file_size
    except BraneError:
        raise
    except DAMAGE:
        return {}
    mend = "use a machine with more memory; a file that small for so much is suspect"
    require_memory(total, f"{path}: its arrays, {show_size(path.stat().st_size)} in the file,", mend)
    return headers


def check_npy(path: Path, error: type[BraneError]) -> None:
    """Refuse a file with one array whose header announces more than the file holds."""
    check_file(path, error)
    with path.open("rb") as stream:
        _check_array(str(path), stream, path.stat().st_size, error)


def _check_array(what: str, stream: IO[bytes], size: int, error: type[BraneError]) -> Header | None:
    """The header of an array; None where there is none that can be read, as its reader will say."""
    found = _npy_header(stream)
    if found is None:
        return None
    shape, kind = found
    announced = math.prod(shape) * kind.itemsize
    if announced > size:
        raise error(
            f"{what}: the header announces {show_size(announced)} (shape {shape}, {kind}), and {show_size(size)} "
            "follow; the file is cut off or damaged: make it again"
        )
    return found


def _npy_header(stream: IO[bytes]) -> Header | None:
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read(stream)
    except DAMAGE:
        return None
    return shape, kind


def _kind(mode: int) -> str:
    kinds = {"a folder": stat.S_ISDIR, "a device": stat.S_ISCHR, "a disk": stat.S_ISBLK, "a pipe": stat.S_ISFIFO}
    return next((name for name, holds in kinds.items() if holds(mode)), "a socket")
