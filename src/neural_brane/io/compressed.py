"""The bytes of a file as they were before compression, from a path or standard input, never more than a limit."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Self

from neural_brane.errors import DependencyError, GraphError
from neural_brane.forks import check_polars
from neural_brane.io.claims import check_file
from neural_brane.memory import available

STANDARD_INPUT = "-"
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
SMALL = 1 << 28  # what any file may unpack to; above it, the limit follows from the memory and the file's size
UNBOUNDED = 1 << 62
RATIO = 200  # text that people keep shrinks to a tenth; what shrinks to less than that was made to fill memory


class Unpacked:
    """A file opened for reading; gzip and zstd are recognised by their first bytes and undone.

    `size` is that of the file as it lies there, 0 where it is not known.

    `path` may be "-", standard input. `what` names the file in messages, as in "node table". Reading more than
    `limit` bytes is refused: by default half of the memory that is free and, of a compressed file, 200 times its size.
    A file that is `streamed`, of which little is in memory at any time, may be of any size.
    """

    def __init__(self, path: str | Path, what: str, *, limit: int | None = None, streamed: bool = False) -> None:
        check_polars()  # which splits it into columns
        self.path = Path(path)
        self.what = what
        self.from_input = str(path) == STANDARD_INPUT
        self._streamed = streamed
        self._done = 0
        self._head = b""
        self._closing: list[Callable[[], Any]] = []
        try:
            self._packed = self._open()
            first = self._packed.peek(4)[:4]
        except FileNotFoundError:
            raise GraphError(f"{path}: there is no such file; give the path of the {what}") from None
        except OSError as error:
            raise GraphError(f"{path}: cannot be read ({error.strerror}); make the {what} readable") from error
        self.packing = "gzip" if first.startswith(GZIP) else "zstd" if first == ZSTD else ""
        self.size = _size(self._packed)
        usual = UNBOUNDED if streamed else _limit(self.size, bool(self.packing))
        self._limit = usual if limit is None else limit
        self._plain = _unpack(self._packed, self.packing, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._closing:
            self._closing.pop()()

    def head(self, size: int) -> bytes:
        """Return the first bytes of the file, at most `size`; reading begins with them all the same."""
        if not self._done:
            self._head = self._next(size)
        return self._head

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer only at the end; without a size, all that is left."""
        head, self._head = self._head, b""
        if 0 <= size < len(head):
            self._head = head[size:]
            return head[:size]
        rest = self._next(size - len(head) if size >= 0 else -1)
        return head + rest if head else rest

    def _next(self, size: int) -> bytes:
        left = self._limit - self._done + 1
        wanted = left if size < 0 else min(size, left)
        try:
            data = self._plain.read(wanted)
        except (zlib.error, gzip.BadGzipFile, EOFError, ValueError) as error:
            raise self._damaged(error) from None
        except OSError as error:
            raise GraphError(f"{self.path}: cannot be read ({error.strerror or error})") from error
        except Exception as error:  # the error of zstd has another class in every package that has zstd
            if type(error).__name__ != "ZstdError":
                raise
            raise self._damaged(error) from None
        self._done += len(data)
        if self._done > self._limit:
            raise GraphError(
                f"{self.path}: the {self.what} holds more than {self._limit:,} bytes"
                f"{' once unpacked' if self.packing else ''}, which is more than this machine should take in; "
                "give a smaller file, or one in Parquet"
            )
        return data

    def _damaged(self, error: Exception) -> GraphError:
        return GraphError(
            f"{self.path}: the {self.packing} file is damaged or cut off ({error}); "
            f"copy the {self.what} again, or compress it again"
        )

    def _open(self) -> io.BufferedReader:
        if self.from_input:
            raw: Any = sys.stdin.buffer
            stream = io.BufferedReader(raw)
            self._closing.append(stream.detach)  # standard input belongs to the program
            return stream
        if self.path.is_dir():
            raise GraphError(f"{self.path}: this is a folder; give the {self.what} in it")
        check_file(self.path, GraphError, pipe=True, whole=not self._streamed)
        file = open(self.path, "rb")  # noqa: SIM115
        self._closing.append(file.close)
        return file


def read_unpacked(path: str | Path, what: str, *, limit: int | None = None) -> bytes:
    """Return all bytes of a file, uncompressed."""
    with Unpacked(path, what, limit=limit) as file:
        return file.read()


def _unpack(packed: io.BufferedReader, packing: str, path: Path) -> IO[bytes]:
    if packing == "gzip":
        return gzip.GzipFile(fileobj=packed)  # type: ignore[return-value]
    if packing == "zstd":
        return _zstd(path).ZstdFile(packed)
    return packed


def _zstd(path: Path) -> Any:
    """Return the module that undoes zstd: of the standard library from Python 3.14 on, before that its backport."""
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise DependencyError(f"{path}: is compressed with zstd, which needs a package; run: pip install backports.zstd")


def _size(packed: io.BufferedReader) -> int:
    """The bytes of a file, 0 where they are not known."""
    try:
        return os.fstat(packed.fileno()).st_size
    except (OSError, ValueError):  # standard input in a test, say
        return 0


def _limit(size: int, compressed: bool) -> int:
    """Half of the memory, and of a compressed file no more than `RATIO` times its size."""
    memory = (available() or 1 << 35) // 2
    return max(SMALL, min(memory, RATIO * size)) if compressed and size else memory
