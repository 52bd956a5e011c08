"""One file for one run: locked while it trains, written at intervals and before it stops, checked before it goes on."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from neural_brane.checkpoint.file import AFRESH, damaged, read, read_about, write
from neural_brane.checkpoint.identity import require_same
from neural_brane.checkpoint.lock import Lock
from neural_brane.checkpoint.signals import Patience
from neural_brane.errors import CheckpointError
from neural_brane.io.atomic import remove_abandoned

INTERVAL = 10.0  # seconds between two writings, at least
LARGEST_SHARE = 0.02  # of a run's time that may go into them


class State(NamedTuple):
    """Where a stage stands: the number of its next step, the arrays that steps change, and plain numbers."""

    position: int
    arrays: Mapping[str, np.ndarray]
    numbers: Mapping[str, Any]


class Checkpoint:
    """The states of a run's stages in a file, for as long as the block lasts.

    identity: what the run is, from `identify`; a file of another run is refused, but for parameters that are `free` to
    differ. interval: seconds of the `clock` between two writings, at least. share: of the time that may go into them.
    """

    def __init__(
        self,
        path: str | Path,
        identity: dict[str, Any],
        *,
        free: tuple[str, ...] = (),
        interval: float = INTERVAL,
        share: float = LARGEST_SHARE,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.path, self.identity, self.patience = Path(path), identity, Patience()
        self._free, self._interval, self._share, self._clock = free, interval, share, clock
        self._lock = Lock(Path(os.path.realpath(self.path)))  # one lock for all names that a link gives the file
        self._kept: dict[str, State] = {}  # read from the file, of stages that have not begun
        self._states: dict[str, Callable[[], State]] = {}  # of the stages that have
        self._written, self._cost, self._stale = clock(), 0.0, False

    def __enter__(self) -> Self:
        if self.path.is_dir():
            raise CheckpointError(f"{self.path}: is a folder; name a file in it")
        self._lock.__enter__()
        try:
            remove_abandoned(self.path.resolve().parent)
            if self.path.exists():
                self._load()
            self.patience.__enter__()
        except BaseException:
            self._lock.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.patience.__exit__(*error)
        finally:
            self._lock.__exit__()
            self._kept.clear()
            self._states.clear()

    def take(self, stage: str) -> State | None:
        """Where a stage was left; None where it had not begun."""
        return self._kept.pop(stage, None)

    def add(self, stage: str, state: Callable[[], State], *, new: bool) -> None:
        """Keep the state of a stage from now on; one that is `new` is written if it is time to."""
        self._states[stage] = state
        if new:
            self._kept.clear()
            self.patience.busy = True
            self.end_step()

    def begin_step(self) -> None:
        """Nothing may stop the run until the step is over; stages that were kept of later ones no longer hold."""
        self.patience.busy = self._stale = True
        self._kept.clear()

    def end_step(self) -> None:
        """Write the states if it is time to, or if the run is asked to stop, which it then does."""
        waited = self._clock() - self._written
        if self.patience.asked or waited >= max(self._interval, self._cost / self._share):
            self._save()
        self.patience.busy = False
        self.patience.release()

    def save_latest(self) -> None:
        """Write the states unless the file has them."""
        if self._stale:
            self.patience.busy = True
            self._save()
            self.patience.busy = False
            self.patience.release()

    def require_no_more(self, position: int, total: int, per_epoch: int) -> None:
        """Refuse a stage that has gone farther than is asked for: its vectors would not be those of a shorter run."""
        if position > total:
            raise CheckpointError(
                f"{self.path}: this checkpoint has trained {-(-position // per_epoch):,} epochs, more than the "
                f"{total // per_epoch:,} that are asked for; ask for as many or more to go on, {AFRESH}"
            )

    def require_like(self, stage: str, kept: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse arrays of other names, shapes or kinds of number."""
        was, now = ({name: (one.shape, str(one.dtype)) for name, one in some.items()} for some in (kept, arrays))
        if was != now:
            raise damaged(self.path, f"the arrays of stage '{stage}' are {was}, not {now}")

    def _load(self) -> None:
        about, arrays = read(self.path)
        require_same(self.path, about, self.identity, self._free)
        for at, (stage, state) in enumerate(about["stages"].items()):
            own = {name.partition("/")[2]: one for name, one in arrays.items() if name.startswith(f"{at}/")}
            self._kept[stage] = State(state["position"], own, state["numbers"])

    def _save(self) -> None:
        """Write all states, unless a number in them is none; a failure to write costs no more than the file."""
        begun = self._clock()
        states = {name: state() for name, state in self._states.items()} | self._kept
        if not all(is_finite(array) for state in states.values() for array in state.arrays.values()):
            return
        stages = {name: {"position": one.position, "numbers": one.numbers} for name, one in states.items()}
        arrays = {f"{at}/{name}": array for at, one in enumerate(states.values()) for name, array in one.arrays.items()}
        try:
            write(self.path, self.identity | {"stages": stages}, arrays)
            self._stale = False
        except OSError as error:
            warnings.warn(
                f"{self.path}: the checkpoint could not be written ({error.strerror or error}); training goes on, and "
                "tries again later",
                stacklevel=2,
            )
        self._written = self._clock()
        self._cost = self._written - begun


def is_finite(array: np.ndarray, block: int = 65_536) -> bool:
    """Whether all numbers of an array are finite, looked at some rows at a time."""
    return all(np.isfinite(array[at : at + block]).all() for at in range(0, len(array), block))


def kept_seed(path: str | Path) -> int | None:
    """The seed of the run that a file keeps; None where there is no such file."""
    seed = read_about(Path(path)).get("seed") if Path(path).is_file() else None
    return seed if isinstance(seed, int) else None
