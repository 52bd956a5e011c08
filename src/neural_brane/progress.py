"""Report progress: a `Meter` counts what is done and calls a reporter a few times a second."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from importlib.util import find_spec

INTERVAL = 0.2  # seconds between two reports


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a run."""

    epoch: int  # 1, 2, …
    epochs: int
    done: int  # units so far
    total: int  # units if the run goes to its last epoch
    loss: float | None  # the mean over the epoch so far; None where the method has none
    rate: float  # units per second, since the report before
    unit: str = "triplets"  # in the plural
    part: str = ""  # the name of this part of the run, if it is not the main one
    per_node: float | None = None  # units so far for each node; None where that says nothing


Reporter = Callable[[Progress], None]


@dataclass(slots=True)
class Meter:
    """Counts the units of a run and reports them: every `INTERVAL` seconds, when an epoch begins, and at the end.

    A run that resumes from a checkpoint begins with `resume`. With `nodes`, reports also say how many units there were
    for each node; `part` names a part of the run that is not its main one. Tests pass a `clock` of their own.

    >>> meter = Meter(lambda progress: print(progress.done, "of", progress.total, progress.unit), 2, "steps")
    >>> meter.advance(2)
    2 of 2 steps
    """

    report: Reporter | None
    total: int
    unit: str
    _: KW_ONLY
    epochs: int = 1
    nodes: int | None = None
    part: str = ""
    clock: Callable[[], float] = time.perf_counter
    done: int = field(default=0, init=False)
    _reported: int = field(default=0, init=False)  # units at the last report
    _reported_at: float = field(default=0.0, init=False)
    _epoch: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._reported_at = self.clock()

    def resume(self, done: int) -> None:
        """Count units that an earlier run has done: they are no part of the rate."""
        self.done = self._reported = done

    def advance(self, count: int = 1, *, epoch: int = 1, loss: float | None = None) -> None:
        """Count some more units as done."""
        self.done += count
        if self.report is None or self.done == self._reported:
            return
        now = self.clock()
        elapsed = now - self._reported_at
        if elapsed < INTERVAL and epoch == self._epoch and self.done < self.total:
            return
        rate = (self.done - self._reported) / max(elapsed, 1e-9)
        self._reported_at, self._reported, self._epoch = now, self.done, epoch
        per_node = self.done / self.nodes if self.nodes else None
        self.report(Progress(epoch, self.epochs, self.done, self.total, loss, rate, self.unit, self.part, per_node))


@contextmanager
def noticing_compilation(tell: Callable[[], object]) -> Iterator[None]:
    """Call `tell` once if Numba begins to compile a kernel inside the block; later runs find it in Numba's cache."""
    if find_spec("numba") is None:  # a GPU needs none
        yield
        return
    from numba.core import event

    class First(event.Listener):
        called = False

        def on_start(self, _: object) -> None:
            if not self.called:
                self.called = True
                tell()

        def on_end(self, _: object) -> None: ...

    with event.install_listener("numba:compile", First()):
        yield
