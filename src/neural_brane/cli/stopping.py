"""Keep results when a standard stream fails, and end a command that is asked to stop."""

from __future__ import annotations

import codecs
import io
import os
import select
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import typer

from neural_brane.cli.terminal import LOG, echo
from neural_brane.errors import printable

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


# A standard stream that is closed, full or cut off loses only what is printed.

# The characters of our own texts beyond ASCII, for terminals that lack them.
PLAIN = {"·": "-", "±": "+-", "×": "x", "…": "...", "≈": "~", "−": "-", "█": "#"} | dict.fromkeys("▏▎▍▌▋▊▉", "")


class Tolerant(io.FileIO):
    """An open file that accepts all writes; `failure` is its first error."""

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write some bytes, or drop them."""
        try:
            while (written := super().write(data)) is None:  # the file does not block, so wait here
                select.select([], [self], [])
        except OSError as error:
            self.failure = self.failure or error
            return len(data)
        return written


def protect() -> None:
    """Replace stdin, stdout and stderr by streams that cannot fail, before any other file is opened."""
    for number in range(3):
        with suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which the next file would get otherwise
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    codecs.register_error("brane", in_ascii)
    sys.stdout, sys.stderr = _tolerant(sys.stdout), _tolerant(sys.stderr)


def failure(stream: TextIO) -> OSError | None:
    """Return the first error of a stream; a pipe whose reader has left is not an error."""
    stream.flush()
    met = getattr(getattr(getattr(stream, "buffer", None), "raw", None), "failure", None)
    return None if isinstance(met, BrokenPipeError) else met


def in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that a stream cannot encode."""
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
    except io.UnsupportedOperation:  # a stream without a file, given by a program that calls this one
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors="brane", line_buffering=True)


# A command is asked to stop by Ctrl-C, by a signal, or because its terminal is gone.

REQUESTS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
LONG = 5.0  # seconds of training after which to mention checkpoints
TYPED = "neural_brane.typed"  # key of the words of the command in its context


class Stopped(KeyboardInterrupt):
    """The signal `number` asks a command to stop; `message` says whether its work is kept.

    add: words to add to the command to resume; None if it cannot resume.
    """

    def __init__(self, number: int, message: str = "stopped", add: tuple[str, ...] | None = None):
        super().__init__(message)
        self.number, self.message, self.add = number, message, add


@contextmanager
def requests_as_errors() -> Iterator[None]:
    """Raise `Stopped` on signals that ask to stop, so that files are cleaned up as after Ctrl-C."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in REQUESTS}
    for number, old in before.items():
        if old is not signal.SIG_IGN:  # as nohup asks for
            signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def leave(stop: KeyboardInterrupt, typed: list[str]) -> None:
    """Print whether a stopped command can resume, and exit with the code of the signal.

    typed: the words after `brane`.
    """
    stopped = stop if isinstance(stop, Stopped) else Stopped(signal.SIGINT)
    command = "" if stopped.add is None else f"\n  {shlex.join(['brane', *typed, *stopped.add])}"
    LOG.error(printable(stopped.message + command, keep="\n"))
    echo(stopped.message + command, err=True)
    raise typer.Exit(128 + stopped.number) from None


@contextmanager
def telling_what_is_kept(model: Embedder, *, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """If the block is stopped, say whether its training is kept, and which command resumes it."""
    begun = clock()
    try:
        yield
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        raise Stopped(number, *_what_is_kept(model, clock() - begun)) from None


def _what_is_kept(model: Embedder, seconds: float) -> tuple[str, tuple[str, ...] | None]:
    """Return a message, and the words to add to the command."""
    parameters = model.get_params(deep=False)
    path = parameters.get("checkpoint")
    if path is not None and Path(path).exists():
        return f"stopped; the same command resumes from {path}:", ()
    if path is not None:
        return f"stopped before {path} was written; the same command starts again", None
    if "checkpoint" in parameters and seconds >= LONG:
        message = "stopped; nothing was kept. With a checkpoint, a stopped training can resume:"
        return message, ("--checkpoint", "run.checkpoint")
    return "stopped; nothing was kept", None
