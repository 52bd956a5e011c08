"""Means and deviations of repeated scores, and how far the repeats have come."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from neural_brane.progress import Progress, Reporter


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of the sample; 0 for one value."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def summarise(values: Sequence[float], each: str) -> dict[str, Any]:
    """Mean, deviation and the values themselves, under the name of what was repeated, for JSON."""
    return {"mean": float(np.mean(values)), "sd": deviation(values), each: list(values)}


def counter(total: int, unit: str, progress: Reporter | None) -> Callable[[], None]:
    """A function to call after each of `total` repeats, which reports how many are done."""
    start, count = time.perf_counter(), 0

    def done() -> None:
        nonlocal count
        count += 1
        if progress is not None:
            progress(Progress(1, 1, count, total, None, count / (time.perf_counter() - start), unit))

    return done
