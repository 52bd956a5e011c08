"""Report progress: a `Meter` counts finished units of work and calls a reporter a few times a second."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from importlib.util import find_spec

INTERVAL = 0.2  # seconds between two reports


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a training or another long computation."""

    epoch: int  # 1, 2, …
    epochs: int
    done: int  # units so far
    total: int  # units at the end of the last epoch
    loss: float | None  # mean over the epoch so far; None if the method has no loss
    rate: float  # units per second since the last report
    unit: str = "triplets"  # plural noun
    stage: str = ""  # name of the stage; empty for the main stage
    per_node: float | None = None  # units so far divided by the number of nodes; None if unknown


Reporter = Callable[[Progress], None]


@dataclass(slots=True)
class Meter:
    """A counter that reports finished units every `INTERVAL` seconds, when an epoch begins, and at the end.

    Call `resume` first if the run continues from a checkpoint. If the number of `nodes` is given, reports contain the
    units per node. `stage` names a stage other than the main one. Tests replace the `clock`.

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
    stage: str = ""
    clock: Callable[[], float] = time.perf_counter
    done: int = field(default=0, init=False)
    _reported: int = field(default=0, init=False)  # units at the last report
    _reported_at: float = field(default=0.0, init=False)
    _epoch: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._reported_at = self.clock()

    def resume(self, done: int) -> None:
        """Set the number of units that an earlier run has finished; they do not count for the rate."""
        self.done = self._reported = done

    def advance(self, count: int = 1, *, epoch: int = 1, loss: float | None = None) -> None:
        """Count `count` more units as finished, and report them if it is time."""
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
        self.report(Progress(epoch, self.epochs, self.done, self.total, loss, rate, self.unit, self.stage, per_node))


@contextmanager
def noticing_compilation(report: Callable[[], object]) -> Iterator[None]:
    """Call `report` once if Numba compiles a kernel inside the block. Later runs load it from Numba's cache."""
    if find_spec("numba") is None:  # training on a GPU does not need Numba
        yield
        return
    from numba.core import event

    class First(event.Listener):
        called = False

        def on_start(self, _: object) -> None:
            if not self.called:
                self.called = True
                report()

        def on_end(self, _: object) -> None: ...

    with event.install_listener("numba:compile", First()):
        yield
