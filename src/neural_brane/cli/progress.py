"""How progress is shown: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from neural_brane.progress import noticing_compilation

if TYPE_CHECKING:
    from neural_brane.progress import Progress, Reporter

LINES = 5  # plain lines in a whole run
COMPILING = "compiling, once"
QUIET = 2.0  # seconds that something counted may take without a word
Describe = Callable[["Progress"], str]
Clock = Callable[[], float]


@contextmanager
def reporting(title: str, *, clock: Clock = time.perf_counter) -> Iterator[Reporter]:
    """A function to hand to a method as its `progress`: the title at once, then epoch, loss and speed."""
    begun = clock()
    if not sys.stderr.isatty():
        print(title, file=sys.stderr)
        with noticing_compilation(lambda: print(COMPILING, file=sys.stderr)):
            yield _lines(describe, clock, begun)
        return
    with (
        _bar("preparing", describe, title=title) as (report, say),
        noticing_compilation(lambda: say(COMPILING)),
    ):
        yield report
        say(f"trained in {_clock(clock() - begun)}")


@contextmanager
def counting(title: str, *, steady: bool = True, clock: Clock = time.perf_counter) -> Iterator[Reporter]:
    """A function to hand to whatever counts what it has done: a bar that goes away, or lines if it takes long.

    steady: False where one unit takes far longer than another; the time left then goes by the mean since the start.
    """
    begun = clock()

    def count(progress: Progress) -> str:
        return f"{title}: {progress.done} of {progress.total} {progress.unit}"

    if not sys.stderr.isatty():
        yield _lines(count, clock, begun + QUIET)
        return
    with _bar(title, count) as (report, _):
        yield report if steady else lambda progress: report(at_mean_rate(progress, clock() - begun))


def _lines(text: Describe, clock: Clock, not_before: float) -> Reporter:
    """A reporter that prints a line for each of `LINES` fifths of a run; of a side part only if that takes long."""
    part, shown, quiet_until = "", 0, not_before

    def report(progress: Progress) -> None:
        nonlocal part, shown, quiet_until
        if progress.part != part:
            part, shown = progress.part, 0
            quiet_until = clock() + QUIET if part else not_before
        fifth = LINES * progress.done // max(progress.total, 1)
        if fifth > shown and clock() >= quiet_until:
            shown = fifth
            print(text(progress), file=sys.stderr)

    return report


@contextmanager
def _bar(first: str, text: Describe, title: str | None = None) -> Iterator[tuple[Reporter, Callable[[str], None]]]:
    """A reporter that moves a bar, and a function that says something beside it; a bar without a title goes away."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if title is not None:
        console.print(title, highlight=False)
    with Bar(BarColumn(bar_width=20), TextColumn("{task.description}"), console=console, transient=not title) as bar:
        task = bar.add_task(first, total=None)

        def report(progress: Progress) -> None:
            left = f"{_clock(remaining(progress))} left" if progress.done < progress.total else "done"
            bar.update(task, completed=progress.done, total=progress.total, description=f"{text(progress)} · {left}")
            bar.refresh()

        yield report, lambda words: bar.update(task, description=words, refresh=True)


def describe(progress: Progress) -> str:
    """Where training stands, in a few words."""
    if progress.part:
        return f"{progress.part}: {progress.done} of {progress.total} {progress.unit}"
    loss = "" if progress.loss is None else f" · loss {progress.loss:.4f}"
    digits = 0 if progress.rate >= 10 else 1  # a slow method's units are few
    speed = f"{progress.rate:,.{digits}f} {progress.unit}/s"
    if progress.per_node is not None:
        speed += f" · {progress.per_node:,.0f} for each node"
    return f"epoch {progress.epoch}/{progress.epochs}{loss} · {speed}"


def at_mean_rate(progress: Progress, seconds: float) -> Progress:
    """Progress with the mean rate of the seconds since the first unit was begun."""
    return replace(progress, rate=progress.done / max(seconds, 1e-9))


def remaining(progress: Progress) -> float:
    """Seconds left at the present rate."""
    return (progress.total - progress.done) / progress.rate if progress.rate > 0 else 0.0


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
