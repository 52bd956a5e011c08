"""The advice at the end of a comparison: one sentence, computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neural_brane.comparison.result import Standing, short_time, with_spread
from neural_brane.comparison.tasks import TASKS

if TYPE_CHECKING:
    from neural_brane.comparison.result import Comparison

NEAR = 0.01  # a score so little below the best is as good for most uses
QUICKER = 0.5  # of the best one's time: what is worth a word


def advise(comparison: Comparison) -> str:
    """Which method to take for what, and which one is nearly as good in much less time."""
    best = {task: first for task in comparison.standings if (first := comparison.best(task)) is not None}
    if not best:
        (first, *_), *_ = comparison.standings.values()
        return f"No method could be trained; the first says: {first.failure}."
    uses: dict[str, list[str]] = {}
    for task, first in best.items():
        uses.setdefault(first.name, []).append(_use(task, first, comparison.standings[task]))
    choices = ", ".join(f"{method} for {listed(some)}" for method, some in uses.items())
    return f"Take {choices}{_quicker(comparison, next(iter(best)))}."


def _use(task: str, best: Standing, standings: Sequence[Standing]) -> str:
    """What a method is best for, how good it is, and which others are level with it."""
    level = [one.name for one in standings if one.level]
    others = f", level with {level[0] if len(level) == 1 else f'{len(level)} others'}" if level else ""
    return f"{TASKS[task].about} ({TASKS[task].measures[best.ranked_by]} {with_spread(best.score)}{others})"


def _quicker(comparison: Comparison, task: str) -> str:
    """The fastest method near the best one of a task, if it takes much less time."""
    best, *others = [one for one in comparison.standings[task] if not one.failure]
    near = [one for one in others if one.score.mean >= best.score.mean - NEAR]
    fastest = min(near, key=lambda one: one.seconds.mean, default=None)
    if fastest is None or fastest.seconds.mean > QUICKER * best.seconds.mean:
        return ""
    times = f"{short_time(fastest.seconds.mean)} s instead of {short_time(best.seconds.mean)} s"
    return f"; {fastest.name} is within {NEAR} of the best for {TASKS[task].about} in {times}"


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence in a row.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
