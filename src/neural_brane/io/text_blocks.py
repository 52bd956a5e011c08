"""Text files in blocks of whole records: UTF-8, line feeds, without a byte order mark, whatever the file has."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import NamedTuple

from neural_brane.errors import GraphError
from neural_brane.io.compressed import Unpacked

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
    told: str


class Block(NamedTuple):
    """Whole lines as UTF-8, each ended by a line feed; `line` is the number of the first, and `lines` how many."""

    data: bytes
    line: int
    lines: int


def find_encoding(head: bytes) -> Encoding:
    """Recognise an encoding by its byte order mark, or UTF-16 by its zeros; else UTF-8, which is checked later."""
    for mark, name, told in _MARKS:
        if head.startswith(mark):
            return Encoding(name, told)
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if half and max(even, odd) > 0.4 * half and min(even, odd) <= 0.05 * half:
        name = "utf-16-le" if odd > even else "utf-16-be"
        text = head[: len(head) // 2 * 2].decode(name, "replace")
        if all(letter >= " " or letter in "\t\n\r" for letter in text):
            return Encoding(name, "UTF-16 without BOM")
    return Encoding("utf-8", "UTF-8")


def named_encoding(name: str) -> Encoding:
    """Return the encoding that a user names; UTF-8 with or without a byte order mark is one."""
    try:
        known = codecs.lookup(name).name
        "".encode(known)
    except (LookupError, TypeError):  # 'hex' is a codec, and not of text
        raise GraphError(
            f"encoding '{name}' is not known; give one as Python names it, such as utf-8 or cp1252"
        ) from None
    return Encoding("utf-8-sig" if known == "utf-8" else known, name)


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
            data = self._checked(self._cut_character + data, line, final=final)
        else:
            try:
                data = self._decoder.decode(data, final).encode()
            except UnicodeError as error:
                raise self._refuse(line, f"the text is not {self._encoding.told} ({error})") from None
        if b"\0" in data:
            raise self._refuse(line + data.count(b"\n", 0, data.index(b"\0")), "the file is binary")
        if b"\r" in data or self._cut_line_end:
            data = self._cut_line_end + data
            self._cut_line_end = b"\r" if data.endswith(b"\r") and not final else b""
            data = data.removesuffix(self._cut_line_end).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data

    def _checked(self, data: bytes, line: int, *, final: bool) -> bytes:
        """Return the bytes, which must be UTF-8; a character that is cut in two waits for the next piece."""
        self._cut_character = b""
        if data.isascii():
            return data
        try:
            used = codecs.utf_8_decode(data, "strict", final)[1]
        except UnicodeDecodeError as error:
            byte, at = data[error.start], line + data.count(b"\n", 0, error.start)
            raise self._refuse(at, f"byte 0x{byte:02x} is not UTF-8") from None
        self._cut_character = data[used:]
        return data[:used]

    def _refuse(self, line: int, found: str) -> GraphError:
        return GraphError(f"{self._file.path}:{line}: {found}; save the {self._file.what} as UTF-8 text")
