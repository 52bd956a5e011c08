"""Print lines, tables and progress; write the log; end a command that is asked to stop."""

from __future__ import annotations

import codecs
import io
import logging
import os
import select
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

import typer

from neural_brane.errors import ParameterError, printable
from neural_brane.progress import noticing_compilation

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder
    from neural_brane.progress import Progress, Reporter

# Lines and tables. Control characters in ids and file names are escaped.

LINES = "\n\t"  # control characters that are printed unchanged


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a text on stdout or stderr, with control characters escaped."""
    print(printable(text, keep=LINES), file=sys.stderr if err else sys.stdout, flush=True)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    right: Collection[str] = (),
    fold: bool = False,
    stderr: bool = False,
) -> None:
    """Print a table with the columns in `right` aligned right; a narrow terminal cuts or folds the last column."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        heading = printable(column)
        table.add_column(heading, justify="right" if column in right else "left", no_wrap=column != columns[-1])
    for *texts, last in ([printable(cell, keep=LINES) for cell in row] for row in rows):
        table.add_row(*texts, Text(last, no_wrap=not fold, overflow="fold" if fold else "ellipsis"))
    console = Console(markup=False, highlight=False, stderr=stderr)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=1000, stderr=stderr)
    if title is not None:
        console.print(Text(printable(title), style="bold"))
    console.print(table)


def file_size(*paths: Path) -> str:
    """Return the total size of files as text."""
    from neural_brane.graph.memory import show_size

    return show_size(sum(path.stat().st_size for path in paths))


# The file of `--log` receives progress, warnings and errors, each with the time.

LOG = logging.getLogger("neural_brane.cli")
LOG.setLevel(logging.INFO)
LOG.propagate = False
LOG.addHandler(logging.NullHandler())


def log_to(path: Path | None) -> None:
    """Start to append log lines to a file; without a file, do nothing."""
    if path is None:
        return
    from neural_brane.files.storage import require_folder

    require_folder(path, ParameterError)
    try:
        file = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ParameterError(f"--log {path}: cannot write to it ({error.strerror}); choose another file") from None

    def stop_logging(_: logging.LogRecord) -> None:
        LOG.removeHandler(file)
        with suppress(OSError):
            file.close()
        echo(f"warning: cannot write to {file.baseFilename} any more; the run continues without a log", err=True)

    file.handleError = stop_logging  # type: ignore[assignment]
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    LOG.addHandler(file)


def end_log() -> None:
    """Close the log file, if one is open."""
    for handler in LOG.handlers[:]:
        if isinstance(handler, logging.FileHandler):
            LOG.removeHandler(handler)
            handler.close()


def echo_and_log(line: str) -> None:
    """Print a line on stderr and write it to the log."""
    echo(line, err=True)
    LOG.info(printable(line))


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line and log it, in place of `warnings.showwarning`."""
    echo(f"warning: {message}", err=True)
    LOG.warning(printable(message))


PROGRESS_LINES = 5  # plain lines per run
EVERY = 60.0  # most seconds between two lines of a long run
COMPILING = "compiling (only the first time)"
QUIET = 2.0  # seconds before counted work prints its first line
Describe = Callable[["Progress"], str]
Write = Callable[[str], object]
Clock = Callable[[], float]


@contextmanager
def reporting(title: str, *, clock: Clock = time.perf_counter) -> Iterator[Reporter]:
    """Print the title and yield a reporter that shows epoch, loss and speed of a training."""
    begun = clock()
    lines = partial(_lines, describe, clock, begun)
    with _display("preparing", describe, lines, title) as (report, show), noticing_compilation(lambda: show(COMPILING)):
        yield report
        if sys.stderr.isatty():
            show(f"trained in {short_clock(clock() - begun)}")


@contextmanager
def counting(title: str, *, steady: bool = True, clock: Clock = time.perf_counter) -> Iterator[Reporter]:
    """Yield a reporter of counted work; set `steady` to False if units take unequal times."""
    begun = clock()

    def count(progress: Progress) -> str:
        return f"{title}: {progress.done} of {progress.total} {progress.unit}"

    with _display(title, count, partial(_lines, count, clock, begun, quiet=QUIET)) as (report, _):
        yield report if steady else lambda one: report(replace(one, rate=one.done / max(clock() - begun, 1e-9)))


def _lines(text: Describe, clock: Clock, begun: float, write: Write, quiet: float = 0.0) -> Reporter:
    """Return a reporter that, after `quiet` seconds, writes `PROGRESS_LINES` lines and one every `EVERY` seconds."""
    part, shown, written_at, quiet_until = "", 0, begun, begun + quiet

    def report(progress: Progress) -> None:
        nonlocal part, shown, written_at, quiet_until
        now = clock()
        if progress.stage != part:
            part, shown = progress.stage, 0
            quiet_until = now + QUIET if part else begun + quiet
        reached = PROGRESS_LINES * progress.done // max(progress.total, 1)
        if now >= quiet_until and (reached > shown or now - written_at >= EVERY):
            shown, written_at = reached, now
            write(f"{short_clock(now - begun)} {text(progress)} · {time_left(progress)}")

    return report


@contextmanager
def _display(
    first: str, text: Describe, lines: Callable[[Write], Reporter], title: str | None = None
) -> Iterator[tuple[Reporter, Write]]:
    """Yield a reporter and a function that shows a text: a bar on a terminal, with lines in the log, or lines."""
    if not sys.stderr.isatty():
        if title is not None:
            echo_and_log(title)
        yield lines(echo_and_log), echo_and_log
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if title is not None:
        LOG.info(printable(title))
        console.print(printable(title), highlight=False, markup=False)
    log = lines(LOG.info)
    words = TextColumn("{task.description}", markup=False)
    with Bar(BarColumn(bar_width=20), words, console=console, transient=not title) as bar:
        task = bar.add_task(first, total=None)

        def report(progress: Progress) -> None:
            words = f"{text(progress)} · {time_left(progress)}"
            bar.update(task, completed=progress.done, total=progress.total, description=words)
            bar.refresh()
            log(progress)

        yield report, lambda words: bar.update(task, description=words, refresh=True)


def describe(progress: Progress) -> str:
    """Return the state of a training as text."""
    if progress.stage:
        return f"{progress.stage}: {progress.done} of {progress.total} {progress.unit}"
    loss = "" if progress.loss is None else f" · loss {progress.loss:.4f}"
    speed = f"{progress.rate:,.{0 if progress.rate >= 10 else 1}f} {progress.unit}/s"
    if progress.per_node is not None:
        speed += f" · {progress.per_node:,.0f} per node"
    return f"epoch {progress.epoch}/{progress.epochs}{loss} · {speed}"


def time_left(progress: Progress) -> str:
    """Return the time left at the present rate as text."""
    if progress.done >= progress.total:
        return "done"
    return f"{short_clock((progress.total - progress.done) / progress.rate if progress.rate > 0 else 0.0)} left"


def short_clock(seconds: float) -> str:
    """Return seconds as minutes and seconds, with hours if there are any.

    >>> short_clock(62), short_clock(3600)
    ('1:02', '1:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# Replacements for terminals that cannot print these characters.
PLAIN = {"·": "-", "±": "+-", "×": "x", "…": "...", "≈": "~", "−": "-", "█": "#"} | dict.fromkeys("▏▎▍▌▋▊▉", "")


class Tolerant(io.FileIO):
    """An open file whose writes never fail; `error` keeps the first error."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write the bytes, or drop them after an error."""
        try:
            while (written := super().write(data)) is None:  # a full non-blocking file: wait until it has room
                select.select([], [self], [])
        except OSError as error:
            self.error = self.error or error
            return len(data)
        return written


def protect() -> None:
    """Replace stdin, stdout and stderr by streams that never fail; call this before any other file is opened."""
    for number in range(3):
        with suppress(OSError):
            os.fstat(number)
            continue
        os.open(os.devnull, os.O_RDWR)  # otherwise the next opened file would take this number
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115
    codecs.register_error("brane", in_ascii)
    sys.stdout, sys.stderr = _tolerant(sys.stdout), _tolerant(sys.stderr)


def write_error(stream: TextIO) -> OSError | None:
    """Return the first error of a stream; a pipe whose reader has left is not an error."""
    stream.flush()
    error = getattr(getattr(getattr(stream, "buffer", None), "raw", None), "error", None)
    return None if isinstance(error, BrokenPipeError) else error


def in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace the characters that a stream cannot encode (a handler of encoding errors)."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(PLAIN.get(one, one.encode("unicode_escape").decode()) for one in text), error.end


def _tolerant(stream: TextIO | None) -> TextIO:
    """Return a stream to the same file whose writes never fail."""
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if os.name != "posix":  # the console of Windows takes text, not bytes
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="brane")
        return stream
    try:
        raw = Tolerant(stream.fileno(), "w", closefd=False)
    except io.UnsupportedOperation:  # the calling program gave a stream without a file
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=stream.encoding, errors="brane", line_buffering=True)


REQUESTS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
LONG = 5.0  # seconds of training after which a stopped command suggests a checkpoint
TYPED = "neural_brane.typed"  # key of the typed arguments in the context of a command


class Stopped(KeyboardInterrupt):
    """The signal `number` asked a command to stop; it resumes with the arguments `add`, unless that is None."""

    def __init__(self, number: int, message: str = "stopped", add: tuple[str, ...] | None = None):
        super().__init__(message)
        self.number, self.message, self.add = number, message, add


@contextmanager
def signals_as_errors() -> Iterator[None]:
    """Raise `Stopped` on signals that ask to stop, so that files are cleaned up as after Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        if number != signal.SIGTERM:  # a closed terminal may send its signal twice
            signal.signal(number, signal.SIG_IGN)
        raise Stopped(number)

    allowed = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in REQUESTS if allowed}
    for number, old in before.items():
        if old is not signal.SIG_IGN:  # `nohup` ignores a signal; keep that
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def exit_stopped(stop: KeyboardInterrupt, typed: list[str]) -> None:
    """Print the command (`typed` plus additions) that resumes a stopped one, if any; exit with the signal's code."""
    stopped = stop if isinstance(stop, Stopped) else Stopped(signal.SIGINT)
    command = "" if stopped.add is None else f"\n  {shlex.join(['brane', *typed, *stopped.add])}"
    LOG.error(printable(stopped.message + command, keep="\n"))
    echo(stopped.message + command, err=True)
    raise typer.Exit(128 + stopped.number) from None


@contextmanager
def explaining_stop(model: Embedder, *, clock: Clock = time.monotonic) -> Iterator[None]:
    """If the block is stopped, add to the error whether the training was saved and which command resumes it."""
    begun = clock()
    try:
        yield
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        parameters = model.get_params(deep=False)
        path, kept = parameters.get("checkpoint"), "stopped; nothing was saved"
        if path is not None and Path(path).exists():
            raise Stopped(number, f"stopped; the same command resumes from {path}:", ()) from None
        if path is not None:
            raise Stopped(number, f"stopped before {path} was written; run the same command again") from None
        if "checkpoint" in parameters and clock() - begun >= LONG:
            message = f"{kept}. With a checkpoint, the next run can be resumed:"
            raise Stopped(number, message, ("--checkpoint", "run.checkpoint")) from None
        raise Stopped(number, kept) from None
