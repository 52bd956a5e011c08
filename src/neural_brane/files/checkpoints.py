"""Save the state of a training, so that a stopped training resumes and ends with the same vectors."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

import numpy as np

from neural_brane import __version__
from neural_brane.errors import CheckpointError
from neural_brane.files import tensors
from neural_brane.files.storage import remove_abandoned, require_folder

START_AGAIN = "remove it to start again, or name another file"
CHECKPOINT = tensors.FileKind(
    "checkpoint", "2", CheckpointError, advice=f"restore it from a copy, or {START_AGAIN}",
    outdated=f"finish it with the version that wrote it, or {START_AGAIN}",
)  # fmt: skip

LIBRARIES = ("numpy", "scipy", "numba", "torch")  # their versions change the last bits of a step
TOLERANCE = 1e-3  # largest difference between processors and libraries, as a share of the largest number


def identify(
    method: str, parameters: Mapping[str, Any], seed: int, graph: Mapping[str, Any], code: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the identity of a run as JSON values: method, parameters, seed, graph (name, sizes, digest) and code."""
    about: dict[str, Any] = {
        "method": method, "graph": graph, "parameters": parameters, "seed": seed, "version": __version__,
        "code": code, "libraries": dict.fromkeys(LIBRARIES, "none"),
    }  # fmt: skip
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            about["libraries"][name] = version(name)
    return dict(json.loads(json.dumps(about)))


def require_same(path: Path, was: Mapping[str, Any], now: Mapping[str, Any], free: tuple[str, ...]) -> None:
    """Raise an error that names the difference if two identities differ; parameters in `free` may differ."""
    if was["method"] != now["method"]:
        raise _refusal(path, f"belongs to method '{was['method']}', not to '{now['method']}'")
    if was["graph"]["digest"] != now["graph"]["digest"]:
        raise _refusal(path, f"belongs to another graph: was {_describe(was['graph'])}, now {_describe(now['graph'])}")
    earlier, current = ({"seed": one["seed"]} | one["parameters"] for one in (was, now))
    for name in earlier | current:
        before, after = earlier.get(name), current.get(name)
        if before != after and name not in free:
            why = f"belongs to another run: {name} was {before!r}, now {after!r}, and all steps depend on it"
            raise _refusal(path, why, "give the earlier value to resume it, ")
    if not _same_code(was, now):
        differ = "differ" if isinstance(was["code"], dict) else "cannot be compared with it"
        why = f"was written by version {was['version']}, and this is version {now['version']}, whose steps {differ}"
        raise _refusal(path, why, "finish it with the code that wrote it, ")
    changed = [
        f"{name} {was['libraries'].get(name)} → {now['libraries'].get(name)}"
        for name in LIBRARIES
        if was["libraries"].get(name) != now["libraries"].get(name)
    ]
    if changed or was["code"]["behaviour"] != now["code"]["behaviour"]:
        found = f"with other libraries or on another processor ({', '.join(changed) or 'the same libraries'})"
        bits = "the last bits of its vectors may differ from those of an uninterrupted run"
        warnings.warn(f"{path}: the run resumes {found}; {bits}", stacklevel=2)


def _same_code(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether two versions of the code compute the same except for the last bits."""
    before, after = was["code"], now["code"]
    if not isinstance(before, dict):  # earlier versions saved a digest of the source files
        return False
    if (before["untried"] or after["untried"]) and was["version"] != now["version"]:
        return False
    limit = TOLERANCE * max(map(abs, after["sample"]), default=0)
    pairs = zip(before["sample"], after["sample"], strict=False)
    return len(before["sample"]) == len(after["sample"]) and all(abs(one - other) <= limit for one, other in pairs)


def _describe(graph: Mapping[str, Any]) -> str:
    sizes = ", ".join(f"{graph[name]:,} {name}" for name in ("nodes", "edges", "attributes"))
    return f"'{graph['name']}' ({sizes}, digest {graph['digest']})"


def _refusal(path: Path, why: str, advice: str = "") -> CheckpointError:
    return CheckpointError(f"{path}: this checkpoint {why}; {advice}{START_AGAIN}")


WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # errors of file systems without locks


@contextmanager
def locked(checkpoint: Path) -> Iterator[None]:
    """Lock the file `.NAME.lock` beside a checkpoint, or raise an error at once if another run has locked it.

    Without locks in the file system, the existence of the file is the lock, unless the process named in it is dead.
    """
    from filelock import FileLock, SoftFileLock, Timeout

    path = checkpoint.with_name(f".{checkpoint.name}.lock")
    try:
        require_folder(path, CheckpointError)
        lock = FileLock(path, timeout=0)
        try:
            lock.acquire()
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
            lock = SoftFileLock(path, timeout=0)
            lock.acquire()
    except Timeout:
        advice = f"wait until it ends, or name another file (if that process has ended, remove {path})"
        raise CheckpointError(f"{checkpoint}: {_holder(path)} is training with this checkpoint; {advice}") from None
    except OSError as error:
        mend = "name a file in a writable folder"
        raise CheckpointError(f"{checkpoint}: no checkpoint can be written there ({error.strerror}); {mend}") from error
    try:
        if not isinstance(lock, SoftFileLock):  # a SoftFileLock writes these lines itself
            path.write_text(f"{os.getpid()}\n{socket.gethostname()}\n")
        yield
    finally:
        if not isinstance(lock, SoftFileLock) and os.name == "posix":  # Windows cannot remove an open file
            path.unlink(missing_ok=True)  # still locked, so that no other run can lock a removed file
        lock.release()


def _holder(lock: Path) -> str:
    """Return the name of the process that wrote a lock."""
    try:
        words = lock.read_text(errors="replace").split()
    except OSError:  # the file was removed, or Windows does not open it
        words = []
    return f"process {words[0]} on {words[1]}" if len(words) > 1 else "another process"


# Signals for Ctrl-C, a request to end, and a closed terminal; Windows lacks the last.
STOP_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
HANGUP = getattr(signal, "SIGHUP", None)


class DelayedStop:
    """Delay signals and errors of the progress reporter while a run is `busy`, so that its saved state is consistent.

    After `release`, the handler that was installed before is called. A second signal is not delayed, ignored ones stay
    ignored. Outside the main thread nothing is delayed, because Python allows no handlers there.
    """

    def __init__(self) -> None:
        self.busy = False
        self._signal: int | None = None
        self._error: BaseException | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
            self._before = {number: old for number, old in handlers.items() if old not in (signal.SIG_IGN, None)}
            self._install()
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()
        self.busy = False
        if self._signal is not None:
            signal.raise_signal(self._signal)
        if self._error is not None and error[1] is None:
            raise self._error

    @property
    def requested(self) -> bool:
        """True if a signal or an error has requested a stop."""
        return self._signal is not None or self._error is not None

    def release(self) -> None:
        """Raise the delayed error, or call the handler of the delayed signal."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._signal is not None:
            number, self._signal = self._signal, None
            self._restore()
            signal.raise_signal(number)
            self._install()  # the handler returned, so the run continues

    def delay_errors(self, report: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the same progress reporter, but delay an error that it raises during a step."""

        def delayed(progress: Any) -> None:
            if self._error is not None:
                return
            try:
                report(progress)
            except BaseException as error:
                if not self.busy:
                    raise
                self._error = error

        return delayed

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self._signal is not None and number != HANGUP  # a closed terminal may send its signal twice
        self._signal = number
        if again or not self.busy:
            self.busy = False
            self.release()

    def _install(self) -> None:
        for number in self._before:
            signal.signal(number, self._handle)

    def _restore(self) -> None:
        for number, old in self._before.items():
            signal.signal(number, old)


INTERVAL = 10.0  # least seconds between two saves
LARGEST_SHARE = 0.02  # largest share of the time that saving may take


class State(NamedTuple):
    """The state of a stage: the number of the next step, the arrays that steps change, and plain numbers."""

    position: int
    arrays: Mapping[str, np.ndarray]
    numbers: Mapping[str, Any]


class Checkpoint:
    """A context manager that saves the states of a run's stages in a file, which is locked meanwhile.

    identity: the run, from `identify`; the file of another run raises an error, but parameters in `free` may differ.
    interval: the least seconds of the `clock` between two saves. share: the share of the time that saving may take.
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
        self.path, self.identity, self.stop = Path(path), identity, DelayedStop()
        self._free, self._interval, self._share, self._clock = free, interval, share, clock
        self._open = ExitStack()  # holds the lock and the delayed stop
        self._kept: dict[str, State] = {}  # states from the file, for stages that have not begun
        self._states: dict[str, Callable[[], State]] = {}  # current states of the other stages
        self._written, self._cost = clock(), 0.0
        self.stale = False  # True if steps were taken since the last save

    def __enter__(self) -> Self:
        if self.path.is_dir():
            raise CheckpointError(f"{self.path}: is a folder; give a file in it")
        with ExitStack() as stack:
            path = Path(os.path.realpath(self.path))  # one lock for all links to the file
            stack.enter_context(locked(path))
            remove_abandoned(path.parent)
            if self.path.exists():
                about, arrays = tensors.read(self.path, CHECKPOINT)
                require_same(self.path, about, self.identity, self._free)
                for at, (stage, state) in enumerate(about["stages"].items()):
                    own = {name.partition("/")[2]: one for name, one in arrays.items() if name.startswith(f"{at}/")}
                    self._kept[stage] = State(state["position"], own, state["numbers"])
            stack.enter_context(self.stop)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._open.__exit__(*error)
        finally:
            self._kept.clear()
            self._states.clear()

    def take(self, stage: str) -> State | None:
        """Return the saved state of a stage, or None if it had not begun."""
        return self._kept.pop(stage, None)

    def add(self, stage: str, state: Callable[[], State], *, new: bool) -> None:
        """Save the state of a stage from now on; a `new` stage may be saved at once."""
        self._states[stage] = state
        if new:
            self._kept.clear()
            self.stop.busy = True
            self.end_step()

    def begin_step(self) -> None:
        """Delay stops until the step ends, and drop the saved states of later stages."""
        self.stop.busy = self.stale = True
        self._kept.clear()

    def end_step(self, *, save: bool = False) -> None:
        """Save the states if the interval has passed, if `save` is true, or if a stop was requested; then stop."""
        waited = self._clock() - self._written
        if self.stop.requested or save or waited >= max(self._interval, self._cost / self._share):
            self._save()
        self.stop.busy = False
        self.stop.release()

    def _save(self) -> None:
        """Save all states, unless a number is NaN or infinite; warn and continue if the file cannot be written."""
        begun = self._clock()
        states = {name: state() for name, state in self._states.items()} | self._kept
        if not all(is_finite(array) for state in states.values() for array in state.arrays.values()):
            return
        stages = {name: {"position": one.position, "numbers": one.numbers} for name, one in states.items()}
        arrays = {f"{at}/{name}": array for at, one in enumerate(states.values()) for name, array in one.arrays.items()}
        try:
            tensors.write(self.path, CHECKPOINT, self.identity | {"stages": stages}, arrays)
            self.stale = False
        except OSError as error:
            failed = f"the checkpoint could not be written ({error.strerror or error})"
            warnings.warn(f"{self.path}: {failed}; training continues and tries again later", stacklevel=2)
        self._written = self._clock()
        self._cost = self._written - begun


def is_finite(array: np.ndarray, block: int = 65_536) -> bool:
    """Return whether all numbers of an array are finite; `block` rows are checked at a time."""
    return all(np.isfinite(array[at : at + block]).all() for at in range(0, len(array), block))


def kept_seed(path: str | Path) -> int | None:
    """Return the seed in a checkpoint, or None if there is none."""
    seed = tensors.read_about(path, CHECKPOINT).get("seed") if Path(path).is_file() else None
    return seed if isinstance(seed, int) else None


# A method trains in stages and saves their states through `Stages`. A stage is computed at once or trained in steps::
#
#     text = stages.once("text", lambda: reduce(attributes))
#     for epoch in stages.stage("factors").steps(epochs, {"nodes": nodes, "parts": parts}):
#         update(nodes, parts)
#
# `steps` continues at the saved step with the saved arrays. Without a checkpoint it counts from 0 and saves nothing.

Arrays = Mapping[str, np.ndarray]


class Stages:
    """The stages of one training, in the order of their use; each name is used once."""

    def __init__(self, checkpoint: Checkpoint | None = None, prefix: str = ""):
        self._checkpoint, self._prefix = checkpoint, prefix

    def once(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Return the saved array, or compute it with `make`; it must not be changed afterwards."""
        return self.all_once(name, lambda: (make(),))[0]

    def all_once(self, name: str, make: Callable[[], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
        """Return saved arrays like `once`, or compute them together with `make`."""
        if self._checkpoint is None:
            return make()
        kept = self._checkpoint.take(self._prefix + name)
        made = make() if kept is None else tuple(kept.arrays[f"made {at}"] for at in range(len(kept.arrays)))
        arrays = {f"made {at}": array for at, array in enumerate(made)}
        self._checkpoint.add(self._prefix + name, lambda: State(1, arrays, {}), new=kept is None)
        return made

    def stage(self, name: str) -> Stage:
        """Return a stage that is trained in steps."""
        return Stage(self._checkpoint, self._prefix + name)

    def within(self, name: str) -> Stages:
        """Return the stages of a method inside this one."""
        return Stages(self._checkpoint, f"{self._prefix}{name}, ")


class Stage:
    """A stage whose steps change arrays and a few numbers."""

    def __init__(self, checkpoint: Checkpoint | None, name: str):
        self._checkpoint, self._name = checkpoint, name
        self.kept = checkpoint.take(name) if checkpoint else None  # the saved state; None in a new run

    @property
    def position(self) -> int:
        """The number of the first step."""
        return self.kept.position if self.kept else 0

    def restore(self, arrays: Arrays, numbers: dict[str, Any]) -> None:
        """Set arrays and numbers to their saved values, in place."""
        if self.kept is None or self._checkpoint is None:
            return
        saved, expected = (
            {name: (one.shape, str(one.dtype)) for name, one in group.items()} for group in (self.kept.arrays, arrays)
        )
        if saved != expected:
            why = f"the arrays of stage '{self._name}' are {saved}, expected {expected}"
            raise CHECKPOINT.damaged(self._checkpoint.path, why)
        for name, array in arrays.items():
            array[...] = self.kept.arrays[name]
        numbers.update(self.kept.numbers)

    def steps(
        self,
        total: int,
        arrays: Arrays | Callable[[], Arrays],
        numbers: dict[str, Any] | None = None,
        *,
        per_epoch: int = 1,
        until: Callable[[], bool] = lambda: False,
    ) -> Iterator[int]:
        """Yield the numbers of the remaining steps below `total`; stop before a step if `until()` is true.

        arrays: restored before the first step and changed in place by every step. For arrays on a device, a function
        that returns them; its caller calls `restore`. numbers: plain numbers and lists, restored and changed likewise.
        per_epoch: the number of steps in an epoch.
        """
        numbers = {} if numbers is None else numbers
        if not callable(arrays):
            self.restore(arrays, numbers)
        first, self.kept = self.position, None
        if self._checkpoint is None:
            yield from takewhile(lambda _: not until(), range(total))
            return
        if first > total:  # the vectors would differ from those of a shorter run
            trained, requested = -(-first // per_epoch), total // per_epoch
            rest = f"more than the requested {requested:,}; request at least {trained:,}, {START_AGAIN}"
            raise CheckpointError(f"{self._checkpoint.path}: this checkpoint has trained {trained:,} epochs, {rest}")
        fetch = arrays if callable(arrays) else lambda: arrays
        position = first
        self._checkpoint.add(self._name, lambda: State(position, fetch(), numbers), new=False)
        while position < total and not until():
            self._checkpoint.begin_step()
            yield position
            position += 1
            self._checkpoint.end_step()
        ended = State(position, fetch(), numbers)
        self._checkpoint.add(self._name, lambda: ended, new=False)  # so that the device can free its arrays
        if position > first and self._checkpoint.stale:
            self._checkpoint.stop.busy = True
            self._checkpoint.end_step(save=True)
