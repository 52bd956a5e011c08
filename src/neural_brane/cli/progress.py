"""How training is shown: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neural_brane.progress import Progress, Reporter

LINES = 5  # plain lines in a whole run
QUIET = 2.0  # seconds that an evaluation may take without a word


@contextmanager
def reporting(title: str) -> Iterator[Reporter]:
    """A function to hand to a method as its `progress`."""
    if sys.stderr.isatty():
        with _bar(title) as report:
            yield report
    else:
        print(title, file=sys.stderr)
        yield _plain()


@contextmanager
def _bar(title: str) -> Iterator[Reporter]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
    console = Console(stderr=True)
    console.print(title, highlight=False)
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("preparing (the first run compiles)", total=None)
        start = time.perf_counter()

        def report(progress: Progress) -> None:
            left = f"{_clock(remaining(progress))} left" if progress.done < progress.total else "done"
            text = f"{describe(progress)} · {left}"
            bar.update(task, completed=progress.done, total=progress.total, description=text)

        yield report
        bar.update(task, description=f"trained in {_clock(time.perf_counter() - start)}")


def _plain() -> Reporter:
    shown = 0

    def report(progress: Progress) -> None:
        nonlocal shown
        part = LINES * progress.done // max(progress.total, 1)
        if part > shown:
            shown = part
            print(describe(progress), file=sys.stderr)

    return report


def describe(progress: Progress) -> str:
    """Where training stands, in a few words."""
    loss = "" if progress.loss is None else f" · loss {progress.loss:.4f}"
    digits = 0 if progress.rate >= 10 else 1  # a slow method's units are few
    return f"epoch {progress.epoch}/{progress.epochs}{loss} · {progress.rate:,.{digits}f} {progress.unit}/s"


def remaining(progress: Progress) -> float:
    """Seconds left at the present rate."""
    return (progress.total - progress.done) / progress.rate if progress.rate > 0 else 0.0


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


@contextmanager
def counting(title: str) -> Iterator[Reporter]:
    """A function to hand to an evaluation as its `progress`: a bar that goes away, or lines if it takes long."""
    if not sys.stderr.isatty():
        yield _counted(title)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=20), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def report(progress: Progress) -> None:
            left = f"{_clock(remaining(progress))} left"
            text = f"{title}: {progress.done} of {progress.total} {progress.unit}, {left}"
            bar.update(task, completed=progress.done, total=progress.total, description=text)

        yield report


def _counted(title: str) -> Reporter:
    """Lines, at most `LINES`, and none in the first two seconds."""
    start, shown = time.perf_counter(), 0

    def report(progress: Progress) -> None:
        nonlocal shown
        part = LINES * progress.done // max(progress.total, 1)
        if part > shown and time.perf_counter() - start > QUIET:
            shown = part
            print(f"{title}: {progress.done} of {progress.total} {progress.unit}", file=sys.stderr)

    return report
