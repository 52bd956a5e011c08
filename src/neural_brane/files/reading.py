"""Read the bytes of a file safely: unpack them, recognise their format, judge claimed sizes, cut text into blocks."""

from __future__ import annotations

import codecs
import gzip
import importlib
import io
import json
import math
import os
import re
import stat
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import numpy as np

from neural_brane.errors import BraneError, DependencyError, GraphError
from neural_brane.graph.lazy import check_polars
from neural_brane.graph.memory import available, require_memory, show_size

# Text files in blocks of whole records: UTF-8, line feeds, without a byte order mark, whatever the file has.

BLOCK = 1 << 22  # bytes that are read at once
HEAD = 1 << 16  # bytes from which encodings and formats are guessed
# The longest come first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8 with BOM"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)


class Encoding(NamedTuple):
    """An encoding by the name that Python knows, and in words."""

    name: str
    description: str


class Block(NamedTuple):
    """Whole lines as UTF-8, each ended by a line feed; `line` is the number of the first, and `lines` how many."""

    data: bytes
    line: int
    lines: int


def find_encoding(head: bytes) -> Encoding:
    """Recognise an encoding by its byte order mark, or UTF-16 by its zeros; else UTF-8, which is checked later."""
    for mark, name, description in _MARKS:
        if head.startswith(mark):
            return Encoding(name, description)
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if half and max(even, odd) > 0.4 * half and min(even, odd) <= 0.05 * half:
        name = "utf-16-le" if odd > even else "utf-16-be"
        text = head[: len(head) // 2 * 2].decode(name, "replace")
        if all(letter >= " " or letter in "\t\n\r" for letter in text):
            return Encoding(name, "UTF-16 without BOM")
    return Encoding("utf-8", "UTF-8")


def read_blocks(file: Unpacked, encoding: Encoding, *, size: int = BLOCK) -> Iterator[Block]:
    """Yield a text file block by block; a block ends where a record does.

    A line feed between quotes is part of a field and ends no record. Text that is binary, or not in the encoding,
    is refused with the number of its line.
    """
    decoder = _Decoder(file, encoding)
    kept, line = b"", 1
    data = file.read(size)
    while True:
        last = len(data) < size
        text = kept + decoder.decode(data, line + kept.count(b"\n"), final=last)
        if last and text and not text.endswith(b"\n"):
            text += b"\n"
        end = len(text) if last else _last_record(text)
        if end:
            lines = text.count(b"\n", 0, end)
            yield Block(text[:end], line, lines)
            line += lines
        if last:
            return
        kept, data = text[end:], file.read(size)


def _last_record(text: bytes, *, tries: int = 100) -> int:
    """Return where the last record of a text that goes on ends: after a line feed with an even number of quotes.

    Returns 0 where none is found soon: then more of the file is needed.
    """
    end = text.rfind(b"\n")
    while end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, text.rfind(b'"', 0, end))
        if (tries := tries - 1) == 0:
            return 0
    return end + 1


class _Decoder:
    """Bytes in any encoding to UTF-8 with line feeds, piece by piece."""

    def __init__(self, file: Unpacked, encoding: Encoding) -> None:
        self._file = file
        self._encoding = encoding
        self._decoder = None if encoding.name == "utf-8" else codecs.getincrementaldecoder(encoding.name)()
        self._cut_character = b""  # the first bytes of a character that the next piece ends
        self._cut_line_end = b""  # a carriage return, which the next piece may follow with a line feed

    def decode(self, data: bytes, line: int, *, final: bool) -> bytes:
        """Return the next piece."""
        if self._decoder is None:
            data, self._cut_character = self._cut_character + data, b""
            if not data.isascii():
                try:
                    used = codecs.utf_8_decode(data, "strict", final)[1]
                except UnicodeDecodeError as error:
                    byte, at = data[error.start], line + data.count(b"\n", 0, error.start)
                    raise self._refuse(at, f"byte 0x{byte:02x} is not UTF-8") from None
                data, self._cut_character = data[:used], data[used:]  # a character that is cut in two waits
        else:
            try:
                data = self._decoder.decode(data, final).encode()
            except UnicodeError as error:
                raise self._refuse(line, f"the text is not {self._encoding.description} ({error})") from None
        if b"\0" in data:
            raise self._refuse(line + data.count(b"\n", 0, data.index(b"\0")), "the file is binary")
        if b"\r" in data or self._cut_line_end:
            data = self._cut_line_end + data
            self._cut_line_end = b"\r" if data.endswith(b"\r") and not final else b""
            data = data.removesuffix(self._cut_line_end).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _refuse(self, line: int, found: str) -> GraphError:
        return GraphError(f"{self._file.path}:{line}: {found}; save the {self._file.what} as UTF-8 text")


# What a file is, by its first bytes, whatever its name.

SIGNATURES = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow stream",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x93NUMPY": "NumPy array",
    b"\x89HDF\r\n": "HDF5",
    b"SQLite format 3\0": "SQLite",
    b"%PDF": "PDF",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x89PNG": "picture",
}
# Blanks within a line never cross its end, and a comment never holds another's end: there is one way to match, at most.
_GML = re.compile(
    r"([^\S\n]*(#.*|(Creator|Version|comment)\b.*)?\n)*[^\S\n]*(graph|Creator|Version)\s*(\[|\"|$)", re.IGNORECASE
)
_MARKUP = re.compile(r"\s*(<!--((?!-->).)*-->\s*)*<(\?xml|!doctype|[a-z])", re.IGNORECASE | re.DOTALL)

# How to go on with a file that is no table and no edge list.
ADVICE = {
    "zip": "unpack it and give the file in it; a graph of ours ends in .npz",
    "NumPy array": "give a graph file; an array of pairs goes to AttributedGraph.from_edges",
    "GML": "name it so that it ends in .gml",
    "GraphML": "name it so that it ends in .graphml",
    "GEXF": "name it so that it ends in .gexf",
    "Matrix Market": "name it so that it ends in .mtx",
    "JSON": "write JSON lines, one object per line, as in: jq -c '.[]' FILE > FILE.jsonl",
    "gzip": "it is compressed twice; unpack it once",
    "zstd": "it is compressed twice; unpack it once",
}
_SAVE = "save it as UTF-8 text (CSV), Parquet or JSON lines"


class Content(NamedTuple):
    """A kind of content ("text" where it is none of the known) and, of text, its encoding and its beginning."""

    kind: str
    encoding: Encoding
    text: str

    @property
    def advice(self) -> str:
        """Say what to do with a file of this kind where a table is needed."""
        return ADVICE.get(self.kind, _SAVE)


def recognise(head: bytes) -> Content:
    """Recognise a file by its first bytes."""
    encoding = find_encoding(head)
    for signature, kind in SIGNATURES.items():
        if head.startswith(signature):
            return Content(kind, encoding, "")
    text = head.decode(encoding.name, "replace").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        return Content("binary", encoding, "")
    return Content(_kind_of_text(text), encoding, text)


def _kind_of_text(text: str) -> str:
    if text.startswith("%%MatrixMarket"):
        return "Matrix Market"
    if _MARKUP.match(text):
        lower = text.lower()
        return "GraphML" if "<graphml" in lower else "GEXF" if "<gexf" in lower else "XML"
    if _GML.match(text):
        return "GML"
    start = text.lstrip()
    if not start.startswith("{"):
        return "JSON" if re.match(r"\[\s*[\[{]", start) else "text"
    # JSON lines, or one JSON object: over several lines, or with a graph in it.
    first = start.partition("\n")[0]
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return "JSON" if re.match(r"\{\s*(\"|$)", first) else "text"
    graph = isinstance(found, dict) and "nodes" in found and ("links" in found or "edges" in found)
    return "JSON" if graph else "JSON lines"


# The bytes of a file as they were before compression, from a path or standard input, never more than a limit.

STANDARD_INPUT = "-"
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
SMALL = 1 << 28  # what any file may unpack to; above it, the limit follows from the memory and the file's size
UNBOUNDED = 1 << 62
RATIO = 200  # text that people keep shrinks to a tenth; what shrinks to less than that was made to fill memory


class Unpacked:
    """A file opened for reading; gzip and zstd are recognised by their first bytes and undone.

    `size` is that of the file as it lies there, 0 where it is not known.

    `path` may be "-", standard input. `what` names the file in messages, as in "node table". Reading more than half
    of the memory that is free or, of a compressed file, 200 times its size is refused. A file that is `streamed`, of
    which little is in memory at any time, may be of any size.
    """

    def __init__(self, path: str | Path, what: str, *, streamed: bool = False) -> None:
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
        try:
            self.size = os.fstat(self._packed.fileno()).st_size
        except (OSError, ValueError):  # standard input in a test, say
            self.size = 0
        self._limit = (available() or 1 << 35) // 2
        if self.packing and self.size:
            self._limit = max(SMALL, min(self._limit, RATIO * self.size))
        self._limit = UNBOUNDED if streamed else self._limit
        self._plain: Any = self._packed
        if self.packing:
            self._plain = gzip.GzipFile(fileobj=self._packed) if self.packing == "gzip" else self._open_zstd()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._closing:
            self._closing.pop()()

    def _open_zstd(self) -> Any:
        for name in ("compression.zstd", "backports.zstd"):  # of the standard library from Python 3.14 on
            try:
                return importlib.import_module(name).ZstdFile(self._packed)
            except ImportError:
                continue
        raise DependencyError(
            f"{self.path}: is compressed with zstd, which needs a package; run: pip install backports.zstd"
        )

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
        """Read on, up to the limit."""
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


def read_unpacked(path: str | Path, what: str) -> bytes:
    """Return all bytes of a file, uncompressed."""
    with Unpacked(path, what) as file:
        return file.read()


# Sizes that a file merely claims, judged before memory is taken for them.

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
        kinds = {"a folder": stat.S_ISDIR, "a device": stat.S_ISCHR, "a disk": stat.S_ISBLK, "a pipe": stat.S_ISFIFO}
        kind = next((name for name, holds in kinds.items() if holds(mode)), "a socket")
        raise error(f"{path}: this is {kind}, not a file; save what it gives to a file, and give that")
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


def npz_headers(path: Path, error: type[BraneError]) -> dict[str, Header]:
    """Return the headers of an archive's arrays, by name; none of a damaged one, whose reader says what is wrong.

    Refuse arrays that do not fit into memory, or whose headers announce more than a member holds.
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
    try:
        shape, _, kind = read_npy_header(stream)
    except DAMAGE:
        return None
    announced = math.prod(shape) * kind.itemsize
    if announced > size:
        raise error(
            f"{what}: the header announces {show_size(announced)} (shape {shape}, {kind}), and {show_size(size)} "
            "follow; the file is cut off or damaged: make it again"
        )
    return shape, kind


def read_npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Read the shape of an array, whether its columns stand one after another, and its type."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"unknown version {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(stream)
