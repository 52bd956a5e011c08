"""Standard streams that never cost a result: where one is closed, full or cut off, only what is printed is lost."""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from contextlib import suppress
from typing import Any, TextIO

# What our own texts have beyond ASCII, for terminals that have no more.
PLAIN = {"·": "-", "±": "+-", "×": "x", "…": "...", "≈": "~", "−": "-", "█": "#"} | dict.fromkeys("▏▎▍▌▋▊▉", "")


class Tolerant(io.FileIO):
    """An open file that takes everything; `failure` is the first error that it met."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write some bytes, or lose them."""
        try:
            while (written := super().write(data)) is None:  # the file does not wait, so this does
                select.select([], [self], [])
        except OSError as error:
            self.failure = self.failure or error
            return len(data)
        return written


def protect() -> None:
    """Put streams in the place of stdin, stdout and stderr that cannot fail; before anything else is opened."""
    for number in range(3):
        with suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: else the next file would be written to as stderr
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    codecs.register_error("brane", in_ascii)
    sys.stdout, sys.stderr = _tolerant(sys.stdout), _tolerant(sys.stderr)


def failure(stream: TextIO) -> OSError | None:
    """The error that a stream met; a pipe whose reader has left is none."""
    stream.flush()
    met = getattr(getattr(getattr(stream, "buffer", None), "raw", None), "failure", None)
    return None if isinstance(met, BrokenPipeError) else met


def in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Write characters that a stream has not as others that it has."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(PLAIN.get(one, one.encode("unicode_escape").decode()) for one in text), error.end


def _tolerant(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if os.name != "posix":  # Windows' console takes text, not bytes
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="brane")
        return stream
    try:
        raw = Tolerant(stream.fileno(), "w", closefd=False)
    except io.UnsupportedOperation:  # a stream of another program that calls this one, with no file behind it
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors="brane", line_buffering=True)
