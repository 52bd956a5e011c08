"""Progress of methods that count steps rather than draws."""

import time

from neural_brane.progress import Progress, Reporter

INTERVAL_SECONDS = 0.2


class Steps:
    """Counts the steps of a run and reports them a few times a second; call it after each."""

    def __init__(self, progress: Reporter | None, total: int):
        self.progress = progress
        self.total = total
        self.done = 0
        self._begun = self._reported = time.perf_counter()

    def __call__(self, loss: float | None = None) -> None:
        """One step more is done."""
        self.done += 1
        now = time.perf_counter()
        if self.progress and (now - self._reported > INTERVAL_SECONDS or self.done == self.total):
            self._reported = now
            rate = self.done / max(now - self._begun, 1e-9)
            self.progress(Progress(1, 1, self.done, self.total, loss, rate, "steps"))
