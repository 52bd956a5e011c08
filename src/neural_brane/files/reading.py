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

# Text files are read in blocks of whole records. Every encoding becomes UTF-8 with line feeds and no byte order mark.

BLOCK = 1 << 20  # bytes read at a time, few enough to stay in the processor's cache
LINE_FEED = ord("\n")
HEAD = 1 << 16  # bytes used to recognise the encoding and the format
# The longest marks come first, because the mark of UTF-32 begins with the mark of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8 with BOM"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)


class Encoding(NamedTuple):
    """An encoding: its name in Python, and a description for messages."""

    name: str
    description: str


class Block(NamedTuple):
    """Whole lines in UTF-8, each with a line feed: `line` is the number of the first, `lines` is their count."""

    data: bytes
    line: int
    lines: int


def find_encoding(head: bytes) -> Encoding:
    """Return the encoding: by its byte order mark, UTF-16 by its zero bytes, else UTF-8, which is checked later."""
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
    """Yield a text file in blocks of whole records; raise GraphError with the line number where it is not text."""
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
            block = text[:end]
            lines = int(np.count_nonzero(np.frombuffer(block, np.uint8) == LINE_FEED))  # faster than bytes.count
            yield Block(block, line, lines)
            line += lines
        if last:
            return
        kept, data = text[end:], file.read(size)


def _last_record(text: bytes, *, tries: int = 100) -> int:
    """Return the end of the last line feed after an even number of quotes, or 0 if none of the last `tries` is."""
    end = text.rfind(b"\n")
    while b'"' in text and end >= 0 and text.count(b'"', 0, end) % 2:
        end = text.rfind(b"\n", 0, text.rfind(b'"', 0, end))
        if (tries := tries - 1) == 0:
            return 0
    return end + 1


class _Decoder:
    """Convert bytes in any encoding to UTF-8 with line feeds, piece by piece."""

    def __init__(self, file: Unpacked, encoding: Encoding) -> None:
        self._file, self._encoding = file, encoding
        self._decoder = None if encoding.name == "utf-8" else codecs.getincrementaldecoder(encoding.name)()
        self._cut_character = b""  # first bytes of a character that continues in the next piece
        self._cut_line_end = b""  # carriage return at the end, if the next piece may begin with the line feed

    def decode(self, data: bytes, line: int, *, final: bool) -> bytes:
        """Return the next piece of the file, converted; `line` is the number of its first line."""
        if self._decoder is None:
            data, self._cut_character = self._cut_character + data, b""
            if not data.isascii():
                try:
                    used = codecs.utf_8_decode(data, "strict", final)[1]
                except UnicodeDecodeError as error:
                    byte, at = data[error.start], line + data.count(b"\n", 0, error.start)
                    raise self._refuse(at, f"byte 0x{byte:02x} is not UTF-8") from None
                data, self._cut_character = data[:used], data[used:]
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


# The first bytes of a file decide its kind; its name does not count.

SIGNATURES = {
    b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow stream", b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip", b"\x93NUMPY": "NumPy array", b"\x89HDF\r\n": "HDF5", b"SQLite format 3\0": "SQLite",
    b"%PDF": "PDF", b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz",
    b"\x89PNG": "picture",
}  # fmt: skip
# Both expressions can match in one way only, so that a hostile file cannot make them slow.
_GML = re.compile(
    r"([^\S\n]*(#.*|(Creator|Version|comment)\b.*)?\n)*[^\S\n]*(graph|Creator|Version)\s*(\[|\"|$)", re.IGNORECASE
)
_MARKUP = re.compile(r"\s*(<!--((?!-->).)*-->\s*)*<(\?xml|!doctype|[a-z])", re.IGNORECASE | re.DOTALL)

# Advice for files that are neither tables nor edge lists.
ADVICE = {
    "zip": "unpack it and give the file inside; if it is a graph saved by this package, rename it to end in .npz",
    "NumPy array": "give a graph file, or pass an array of pairs to AttributedGraph.from_edges",
    "GML": "rename it to end in .gml",
    "GraphML": "rename it to end in .graphml",
    "GEXF": "rename it to end in .gexf",
    "Matrix Market": "rename it to end in .mtx",
    "JSON": 'write one object per line, as in {"source": 1, "target": 2}; jq -c \'.[]\' FILE > FILE.jsonl unpacks an '
    "array of objects",
    "gzip": "it is compressed twice; unpack it once",
    "zstd": "it is compressed twice; unpack it once",
}
_SAVE = "save it as UTF-8 text (CSV), Parquet or JSON lines"


class Content(NamedTuple):
    """The kind of a file ("text" if no other is recognised), its encoding and, if it is text, its beginning."""

    kind: str
    encoding: Encoding
    text: str

    @property
    def advice(self) -> str:
        """Advice for a file of this kind that was given as a table."""
        return ADVICE.get(self.kind, _SAVE)


def recognise(head: bytes) -> Content:
    """Return the kind of a file from its first bytes."""
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
        array = re.match(r"\[\s*([\[{]|[^\n]*,[^\n]*\]\s*$)", start.partition("\n")[0])
        return "JSON" if array else "text"
    # It is a single JSON object if it continues on the next line or contains a graph; else it is JSON lines.
    first = start.partition("\n")[0]
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return "JSON" if re.match(r"\{\s*(\"|$)", first) else "text"
    graph = isinstance(found, dict) and "nodes" in found and ("links" in found or "edges" in found)
    return "JSON" if graph else "JSON lines"


STANDARD_INPUT = "-"
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
SMALL = 1 << 28  # bytes that every file may decompress to; more is limited by the memory and the file's size
UNBOUNDED = 1 << 62
RATIO = 200  # largest accepted ratio of decompression; 10 is usual for text, and more suggests an attack


class Unpacked:
    """A file opened for reading, which decompresses gzip and zstd; their first bytes identify them.

    `path` may be "-" for standard input. `what` names the file in messages, such as "node table". If the file is
    `streamed`, only a little of it is in memory at a time and its size is not limited. Otherwise more than half of the
    free memory, or more than 200 times the size of a compressed file, is refused. `size` counts the bytes before
    decompression; it is 0 if unknown.
    """

    def __init__(self, path: str | Path, what: str, *, streamed: bool = False) -> None:
        check_polars()  # fail early: Polars will split the file into columns
        self.path = Path(path)
        self.what = what
        self.from_input = str(path) == STANDARD_INPUT
        self._streamed, self._done, self._head = streamed, 0, b""
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
        except (OSError, ValueError):  # standard input need not be a real file
            self.size = 0
        self._limit = UNBOUNDED if streamed else (available() or 1 << 35) // 2
        if self.packing and self.size and not streamed:
            self._limit = max(SMALL, min(self._limit, RATIO * self.size))
        self._plain: Any = self._packed
        if self.packing:
            self._plain = gzip.GzipFile(fileobj=self._packed) if self.packing == "gzip" else self._open_zstd()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._closing:
            self._closing.pop()()

    def _open_zstd(self) -> Any:
        for name in ("compression.zstd", "backports.zstd"):  # the standard library has the first since Python 3.14
            try:
                return importlib.import_module(name).ZstdFile(self._packed)
            except ImportError:
                continue
        raise DependencyError(f"{self.path}: reading zstd files needs a package; run: pip install backports.zstd")

    def head(self, size: int) -> bytes:
        """Return the first bytes of the file, at most `size`; `read` returns them again."""
        if not self._done:
            self._head = self._next(size)
        return self._head

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer only at the end; without a size, all remaining bytes."""
        head, self._head = self._head, b""
        if 0 <= size < len(head):
            self._head = head[size:]
            return head[:size]
        rest = self._next(size - len(head) if size >= 0 else -1)
        return head + rest if head else rest

    def _next(self, size: int) -> bytes:
        """Return the next bytes of the decompressed file; refuse more than the limit."""
        left = self._limit - self._done + 1
        try:
            data = self._plain.read(left if size < 0 else min(size, left))
        except (zlib.error, gzip.BadGzipFile, EOFError, ValueError) as error:
            raise self._damaged(error) from None
        except OSError as error:
            raise GraphError(f"{self.path}: cannot be read ({error.strerror or error})") from error
        except Exception as error:  # each package for zstd has its own error class
            if type(error).__name__ != "ZstdError":
                raise
            raise self._damaged(error) from None
        self._done += len(data)
        if self._done > self._limit:
            found = f"{self.path}: the {self.what} has more than {self._limit:,} bytes"
            found += " after decompression" if self.packing else ""
            advice = "give a smaller file, or one in Parquet"
            raise GraphError(f"{found}, too many for the memory of this machine; {advice}")
        return data

    def _damaged(self, error: Exception) -> GraphError:
        found = f"the {self.packing} file is damaged or cut off ({error})"
        return GraphError(f"{self.path}: {found}; copy or compress the {self.what} again")

    def _open(self) -> io.BufferedReader:
        if self.from_input:
            stream: Any = io.BufferedReader(sys.stdin.buffer)  # type: ignore[type-var, unused-ignore]
            self._closing.append(stream.detach)  # leaves standard input open
            return stream
        if self.path.is_dir():
            raise GraphError(f"{self.path}: this is a folder; give the {self.what} inside it")
        check_file(self.path, GraphError, pipe=True, whole=not self._streamed)
        file = open(self.path, "rb")  # noqa: SIM115
        self._closing.append(file.close)
        return file


def read_unpacked(path: str | Path, what: str) -> bytes:
    """Return all bytes of a file, decompressed."""
    with Unpacked(path, what) as file:
        return file.read()


# A header may announce any size. These checks run before memory is allocated for it.

BELIEVED = 1_000_000  # nodes, rows or attributes that a file of any length may announce
PER_LINE = 1_000  # more that it may announce for each line or entry
CHUNK = 1 << 24  # bytes read at a time from a pipe
# Errors that zipfile and NumPy raise for damaged files.
DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, NotImplementedError, OSError, RuntimeError, SyntaxError,
    TypeError, ValueError, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
Header = tuple[tuple[int, ...], np.dtype]  # shape and type in the header of an array


def check_count(announced: int, follow: int, what: str, advice: str, error: type[BraneError]) -> None:
    """Refuse a header that announces far more nodes, rows or attributes than the file has lines or entries."""
    if announced > BELIEVED + PER_LINE * follow:
        raise error(f"{what} is {announced:,}, but only {follow:,} lines or entries follow; {advice}")


def check_file(path: Path, error: type[BraneError], *, pipe: bool = False, whole: bool = True) -> None:
    """Refuse a device, a socket, a folder, a pipe unless allowed, and a `whole` file that is larger than memory."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or (pipe and stat.S_ISFIFO(mode))):
        kinds = {"a folder": stat.S_ISDIR, "a device": stat.S_ISCHR, "a disk": stat.S_ISBLK, "a pipe": stat.S_ISFIFO}
        kind = next((name for name, holds in kinds.items() if holds(mode)), "a socket")
        raise error(f"{path}: this is {kind}, not a file; save its data to a file, and give that")
    if whole:
        require_memory(path.stat().st_size, f"{path}: reading it", "use a smaller file, or a machine with more memory")


def read_bytes(path: Path, error: type[BraneError]) -> bytes:
    """Return all bytes of a file, or of a pipe if memory allows; refuse a device, because it never ends."""
    check_polars()  # fail early: Polars will split the file into columns
    check_file(path, error, pipe=True)
    if path.is_file():
        return path.read_bytes()
    room = available()
    content = io.BytesIO()
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            content.write(chunk)
            if room is not None and 2 * content.tell() > room:
                raise error(f"{path}: the pipe did not end after {show_size(content.tell())}; give a smaller input")
    return content.getvalue()


def npz_headers(path: Path, error: type[BraneError]) -> dict[str, Header]:
    """Return the headers of an archive's arrays, {} if it is damaged; refuse arrays beyond memory or file."""
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
    advice = "use a machine with more memory; if the file should be small, it is damaged"
    require_memory(total, f"{path}: its arrays, {show_size(path.stat().st_size)} in the file,", advice)
    return headers


def check_npy(path: Path, error: type[BraneError]) -> None:
    """Refuse an .npy file if its header announces more bytes than the file has."""
    check_file(path, error)
    with path.open("rb") as stream:
        _check_array(str(path), stream, path.stat().st_size, error)


def _check_array(what: str, stream: IO[bytes], size: int, error: type[BraneError]) -> Header | None:
    """Return the header of an array; None if it cannot be read, because the reader of the array reports that."""
    try:
        shape, _, kind = read_npy_header(stream)
    except DAMAGE:
        return None
    announced = math.prod(shape) * kind.itemsize
    if announced > size:
        raise error(
            f"{what}: the header announces {show_size(announced)} (shape {shape}, {kind}), but {show_size(size)} "
            "follow; the file is cut off or damaged: write it again"
        )
    return shape, kind


def read_npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Return the shape of an array, whether it is in Fortran order, and its type."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"unknown version {version}")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(stream)
