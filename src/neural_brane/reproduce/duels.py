"""Neural-Brane against the best of its rivals, row by row of the table, and whether the difference could be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neural_brane.reproduce.plan import ATTRIBUTES, OURS, RELEASED
from neural_brane.reproduce.results import Cell, Results

CHANCE = 0.01  # the paper's level of significance


@dataclass(frozen=True, slots=True)
class Duel:
    """Neural-Brane beside the best of its rivals in one row of the table."""

    dataset: str
    train: float | None
    rivals: str  # whom the rival is the best of: "methods of the paper", "attribute baselines"; or itself
    ours: Cell
    rival: Cell
    t: float | None  # of the paired test over the runs that both have; None where there is no test
    p: float | None

    @property
    def difference(self) -> float:
        """By how much Neural-Brane is ahead."""
        return self.ours.mean - self.rival.mean

    @property
    def significant(self) -> bool:
        """Whether chance alone would make such a difference in fewer than one case in a hundred."""
        return self.p is not None and self.p < CHANCE

    @property
    def outcome(self) -> str:
        """What the runs say: "won" or "lost" beyond chance, or "open"."""
        return "open" if not self.significant else "won" if self.difference > 0 else "lost"

    def as_dict(self) -> dict[str, object]:
        """All of it as plain values, for JSON."""
        return {
            "dataset": self.dataset, "train": self.train, "rivals": self.rivals, "rival": self.rival.column,
            "neural_brane": self.ours.mean, "runner_up": self.rival.mean, "difference": round(self.difference, 6),
            "runs": min(self.ours.runs, self.rival.runs), "t": self.t, "p": self.p,
        }  # fmt: skip


def duels(results: Results, column: str = RELEASED) -> list[Duel]:
    """A recipe in every row of the classification table: against the paper's methods, then against the baselines."""
    found = []
    for ours in results.find("classification", "macro_f1", column=column):
        row = results.find("classification", "macro_f1", dataset=ours.dataset, train=ours.train)
        paper = [one for one in row if one.group not in (OURS, ATTRIBUTES)]
        baselines = [one for one in row if one.group == ATTRIBUTES]
        for name, rivals in (("methods of the paper", paper), ("attribute baselines", baselines)):
            if rivals:
                found.append(duel(ours, best(rivals), name))
    return found


def duel(ours: Cell, rival: Cell, rivals: str = "") -> Duel:
    """Two cells side by side, with the test of their runs."""
    t, p = paired(ours.values, rival.values)
    return Duel(ours.dataset, ours.train, rivals or rival.heading, ours, rival, t, p)


def paired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float | None, float | None]:
    """Student's paired t-test, two-sided: t and p, over the runs that both have; run k of both has the same splits.

    Both are None where there are fewer than two pairs, or where all differences are equal.

    >>> paired([0.6, 0.7, 0.8], [0.5, 0.5, 0.5])
    (3.4641, 0.0741799)
    """
    from scipy import stats

    runs = min(len(ours), len(theirs))
    if runs < 2 or np.ptp(np.subtract(ours[:runs], theirs[:runs])) < 1e-12:
        return None, None
    found = stats.ttest_rel(ours[:runs], theirs[:runs])
    return float(f"{found.statistic:.6g}"), float(f"{found.pvalue:.6g}")


def best(cells: Sequence[Cell]) -> Cell:
    """The cell with the highest mean."""
    return max(cells, key=lambda one: one.mean)
