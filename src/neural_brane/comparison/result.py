"""What a comparison found: the standings of all methods in every task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.comparison.tasks import TASKS
from neural_brane.errors import ParameterError
from neural_brane.evaluate.repeats import Repeats
from neural_brane.io.atomic import atomic
from neural_brane.methods.known import MARK
from neural_brane.trainings.training import Record

CONFIDENCE = 0.95  # that a difference to the best beyond its interval is none of chance
NONE = Repeats(())
PAGE, JSON = "compare.html", "compare.json"  # the files of a comparison
LEVEL = (
    f"≈ stands before a method that these runs do not tell from the best: the {100 * CONFIDENCE:g} % interval of their "
    "difference (Student's t, paired over runs with the same splits) holds zero."
)


LEARNS_LABELS = (
    f"{MARK} stands behind a method that learns from labels too: classes are predicted from vectors that were learned "
    "anew for every split, with the labels of its training part alone, all else from vectors learned without labels."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """A method in one task: its scores and what they cost, or why there are none."""

    method: str
    measures: dict[str, Repeats] = field(default_factory=dict)  # by measure, one value per run
    ranked_by: str = ""  # the measure that ranks it
    level: bool = False  # whether these runs cannot tell it from the best
    seconds: Repeats = NONE  # of each training
    peak_mb: float = 0.0  # the most memory of a process that trained it
    failure: str = ""
    learns_labels: bool = False  # whether classes were predicted from vectors that training labels had a part in

    @property
    def score(self) -> Repeats:
        """The scores that rank it, one per run."""
        return self.measures[self.ranked_by]

    @property
    def name(self) -> str:
        """The method's name, marked where it learns from labels."""
        return f"{self.method} {MARK}" if self.learns_labels else self.method

    @property
    def heading(self) -> str:
        """The same, marked where it is level with the best."""
        return f"≈ {self.name}" if self.level else self.name

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        if self.failure:
            return {"method": self.method, "failure": self.failure}
        return {
            "method": self.method,
            "learns_from_labels": self.learns_labels,
            "ranked_by": self.ranked_by,
            "level_with_the_best": self.level,
            "measures": {name: values.as_dict("runs") for name, values in self.measures.items()},
            "seconds": self.seconds.as_dict("runs"),
            "peak_mb": self.peak_mb,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods compared on one graph.

    Parameters
    ----------
    graph
        Name, sizes and digest of the graph.
    runs
        Trainings of each method for classes and clusters, and again for links; run k has seed k.
    standings
        By task, the methods from the best to the worst, and then those that failed.
    parameters
        Those in force that decide the vectors, by method.
    machines
        What the trainings ran on.
    notes
        What was left out, and why.
    """

    graph: Record
    runs: int
    standings: dict[str, tuple[Standing, ...]]
    parameters: dict[str, Record]
    machines: tuple[Record, ...]
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """What the signs beside methods mean, where there are any."""
        shown = [one for standings in self.standings.values() for one in standings]
        signs = {LEVEL: any(one.level for one in shown), LEARNS_LABELS: any(one.learns_labels for one in shown)}
        return [text for text, found in signs.items() if found]

    def best(self, task: str) -> Standing | None:
        """The first of a task; None where every method failed."""
        if task not in self.standings:
            raise ParameterError(f"task '{task}' was not compared; there are {', '.join(self.standings)}")
        first = self.standings[task][0]
        return None if first.failure else first

    @property
    def advice(self) -> str:
        """Which method to take, in a sentence."""
        from neural_brane.comparison.advice import advise

        return advise(self)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "graph": self.graph,
            "runs": self.runs,
            "advice": self.advice,
            "tasks": {
                name: {
                    "judged": TASKS[name].judged,
                    "measures": TASKS[name].measures,
                    "standings": [one.as_dict() for one in standings],
                }
                for name, standings in self.standings.items()
            },
            "parameters": self.parameters,
            "machines": list(self.machines),
            "notes": list(self.notes),
        }

    def save(self, folder: str | Path) -> None:
        """Write compare.html, one page that needs nothing else, and compare.json."""
        from neural_brane.comparison.page import write_comparison

        with atomic(Path(folder) / JSON) as draft:
            draft.write_text(json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_comparison(self, Path(folder) / PAGE)


def rank(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """From the best to the worst, then those that failed; those level with the best are marked."""
    scored = sorted((one for one in standings if not one.failure), key=lambda one: -one.score.mean)
    marked = [replace(one, level=one is not scored[0] and level(scored[0].score, one.score)) for one in scored]
    return (*marked, *(one for one in standings if one.failure))


def level(best: Repeats, other: Repeats) -> bool:
    """Whether the interval of the mean paired difference holds zero; False where one run says nothing of chance.

    >>> level(Repeats((0.80, 0.82, 0.78)), Repeats((0.79, 0.82, 0.78)))
    True
    >>> level(Repeats((0.80, 0.82, 0.78)), Repeats((0.70, 0.72, 0.68)))
    False
    """
    from scipy import stats

    difference = Repeats(tuple(np.subtract(best.values, other.values).tolist()))
    runs = len(difference.values)
    if runs < 2:
        return False
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, runs - 1)) * difference.sd / runs**0.5
    return difference.mean <= reach


def three_digits(value: float) -> str:
    """A score without the zero before the point.

    >>> three_digits(0.8137), three_digits(1.0)
    ('.814', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def with_spread(values: Repeats) -> str:
    """The mean and, where there are several runs, their standard deviation.

    >>> with_spread(Repeats((0.5, 0.7))), with_spread(Repeats((0.5,)))
    ('.600 ± .141', '.500')
    """
    mean = three_digits(values.mean)
    return f"{mean} ± {three_digits(values.sd)}" if len(values.values) > 1 else mean


def short_time(seconds: float) -> str:
    """Seconds with as many digits as matter.

    >>> short_time(0.0123), short_time(75.31)
    ('0.01', '75.3')
    """
    return f"{seconds:,.1f}" if seconds >= 10 else f"{seconds:.2f}"
