"""Print lines, tables and progress in one style, and keep a log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.errors import ParameterError, printable
from neural_brane.progress import noticing_compilation

if TYPE_CHECKING:
    from neural_brane.progress import Progress, Reporter


# Lines and tables. Control characters in ids or names of files are escaped.

LINES = "\n\t"  # control characters that texts of several lines keep


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
    """Print a table on stdout or stderr; `right` names the columns to align right.

    On a narrow terminal the last column is cut off, or folded if `fold`. Nothing is cut in a pipe.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = None if title is None else printable(title)
    table = Table(title=shown, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        heading = printable(column)
        table.add_column(heading, justify="right" if column in right else "left", no_wrap=column != columns[-1])
    for *texts, last in ([printable(cell, keep=LINES) for cell in row] for row in rows):
        table.add_row(*texts, Text(last, no_wrap=not fold, overflow="fold" if fold else "ellipsis"))
    console = Console(markup=False, highlight=False, stderr=stderr)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=1000, stderr=stderr)
    console.print(table)


def file_size(*paths: Path) -> str:
    """The size of files, for people."""
    from neural_brane.graph.memory import show_size

    return show_size(sum(path.stat().st_size for path in paths))


# The log of `--log FILE`: progress, warnings and the error, each with the time.

LOG = logging.getLogger("neural_brane.cli")
LOG.setLevel(logging.INFO)
LOG.propagate = False
LOG.addHandler(logging.NullHandler())


class _File(logging.FileHandler):
    """A log file; if it can no longer be written, the run continues without it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Warn once, and close the log."""
        LOG.removeHandler(self)
        with suppress(OSError):
            self.close()
        echo(f"warning: {self.baseFilename} can no longer be written; the run continues without a log", err=True)


def log_to(path: Path | None) -> None:
    """Append lines to a file from now on; None for no log."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _File(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ParameterError(f"--log {path}: cannot be written ({error.strerror}); choose another file") from None
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    LOG.addHandler(file)


def end_log() -> None:
    """Close the log, if there is one."""
    for handler in LOG.handlers[:]:
        if isinstance(handler, logging.FileHandler):
            LOG.removeHandler(handler)
            handler.close()


def tell(line: str) -> None:
    """Print a line on stderr and add it to the log."""
    echo(line, err=True)
    LOG.info(printable(line))


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line and log it; replaces `warnings.showwarning`."""
    echo(f"warning: {message}", err=True)
    LOG.warning(printable(message))


# Progress: a bar on a terminal, a few plain lines elsewhere.

PROGRESS_LINES = 5  # plain lines of a short run
EVERY = 60.0  # seconds after which a line is printed in any case
COMPILING = "compiling, once"
QUIET = 2.0  # seconds before counted work prints its first line
Describe = Callable[["Progress"], str]
Clock = Callable[[], float]


@contextmanager
def reporting(title: str, *, clock: Clock = time.perf_counter) -> Iterator[Reporter]:
    """Print the title, and give a `progress` for a method that shows epoch, loss and speed."""
    begun = clock()
    if not sys.stderr.isatty():
        tell(title)
        with noticing_compilation(lambda: tell(COMPILING)):
            yield _lines(describe, clock, begun, tell)
        return
    LOG.info(printable(title))
    log = _lines(describe, clock, begun, LOG.info)
    with (
        _bar("preparing", describe, title=title) as (report, say),
        noticing_compilation(lambda: say(COMPILING)),
    ):
        yield both(report, log)
        say(f"trained in {short_clock(clock() - begun)}")


@contextmanager
def counting(title: str, *, steady: bool = True, clock: Clock = time.perf_counter) -> Iterator[Reporter]:
    """Give a `progress` for counted work: a bar that disappears, or lines if it takes long.

    steady: False if units take unequal times; the time left is then computed from the mean rate since the start.
    """
    begun = clock()

    def count(progress: Progress) -> str:
        return f"{title}: {progress.done} of {progress.total} {progress.unit}"

    def at_rate(report: Reporter) -> Reporter:
        if steady:
            return report
        return lambda progress: report(replace(progress, rate=progress.done / max(clock() - begun, 1e-9)))

    if not sys.stderr.isatty():
        yield at_rate(_lines(count, clock, begun, tell, quiet=QUIET))
        return
    with _bar(title, count) as (report, _):
        yield at_rate(both(report, _lines(count, clock, begun, LOG.info, quiet=QUIET)))


def both(first: Reporter, second: Reporter) -> Reporter:
    """A reporter that calls two others."""

    def report(progress: Progress) -> None:
        first(progress)
        second(progress)

    return report


def _lines(text: Describe, clock: Clock, begun: float, write: Callable[[str], object], quiet: float = 0.0) -> Reporter:
    """A reporter that writes `PROGRESS_LINES` lines per run, and at least one every `EVERY` seconds.

    A line begins with the time since the start and ends with the time left. Nothing is written in the first `quiet`
    seconds, nor about a side part of the run that is short.
    """
    part, shown, told_at, quiet_until = "", 0, begun, begun + quiet

    def report(progress: Progress) -> None:
        nonlocal part, shown, told_at, quiet_until
        now = clock()
        if progress.part != part:
            part, shown = progress.part, 0
            quiet_until = now + QUIET if part else begun + quiet
        reached = PROGRESS_LINES * progress.done // max(progress.total, 1)
        if now >= quiet_until and (reached > shown or now - told_at >= EVERY):
            shown, told_at = reached, now
            write(f"{short_clock(now - begun)} {text(progress)} · {time_left(progress)}")

    return report


@contextmanager
def _bar(first: str, text: Describe, title: str | None = None) -> Iterator[tuple[Reporter, Callable[[str], None]]]:
    """Give a reporter that moves a bar, and a function that changes its text; a bar without a title disappears."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if title is not None:
        console.print(printable(title), highlight=False, markup=False)
    words = TextColumn("{task.description}", markup=False)
    with Bar(BarColumn(bar_width=20), words, console=console, transient=not title) as bar:
        task = bar.add_task(first, total=None)

        def report(progress: Progress) -> None:
            words = f"{text(progress)} · {time_left(progress)}"
            bar.update(task, completed=progress.done, total=progress.total, description=words)
            bar.refresh()

        yield report, lambda words: bar.update(task, description=words, refresh=True)


def describe(progress: Progress) -> str:
    """Describe the state of a training in a few words."""
    if progress.part:
        return f"{progress.part}: {progress.done} of {progress.total} {progress.unit}"
    loss = "" if progress.loss is None else f" · loss {progress.loss:.4f}"
    digits = 0 if progress.rate >= 10 else 1  # a slow method's units are few
    speed = f"{progress.rate:,.{digits}f} {progress.unit}/s"
    if progress.per_node is not None:
        speed += f" · {progress.per_node:,.0f} per node"
    return f"epoch {progress.epoch}/{progress.epochs}{loss} · {speed}"


def time_left(progress: Progress) -> str:
    """The time left at the present rate, in words."""
    if progress.done >= progress.total:
        return "done"
    return f"{short_clock((progress.total - progress.done) / progress.rate if progress.rate > 0 else 0.0)} left"


def short_clock(seconds: float) -> str:
    """Show seconds like a clock.

    >>> short_clock(62), short_clock(3600)
    ('1:02', '1:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
