"""Keep the state of a training on disk, so that a stopped training resumes and ends with the same vectors."""

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
from neural_brane.files.storage import remove_abandoned

AFRESH = "remove it to start afresh, or name another file"
CHECKPOINT = tensors.Kind(
    "checkpoint",
    "2",
    CheckpointError,
    mend=f"restore it from a copy, or {AFRESH}",
    outdated=f"finish it with the version that wrote it, or {AFRESH}",
)

# Which run a checkpoint belongs to: the method, its parameters and seed, the graph, and the code that computes it.

LIBRARIES = ("numpy", "scipy", "numba", "torch")  # on which the last bits of a step depend
CLOSE = 1e-3  # of the largest number: by so much results of one code may differ between processors and libraries


def identify(
    method: str, parameters: Mapping[str, Any], seed: int, graph: Mapping[str, Any], code: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe a run as JSON keeps it.

    graph: its name, size and digest. code: what it computes, from `neural_brane.methods.identity.identify_code`.
    """
    about: dict[str, Any] = {
        "method": method,
        "graph": graph,
        "parameters": parameters,
        "seed": seed,
        "version": __version__,
        "code": code,
        "libraries": dict.fromkeys(LIBRARIES, "none"),
    }
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            about["libraries"][name] = version(name)
    return dict(json.loads(json.dumps(about)))


def require_same(path: Path, was: Mapping[str, Any], now: Mapping[str, Any], free: tuple[str, ...]) -> None:
    """Refuse the checkpoint of another run and say what differs; parameters that are `free` may."""
    if was["method"] != now["method"]:
        raise _refusal(path, f"is of method '{was['method']}', not of '{now['method']}'")
    if was["graph"]["digest"] != now["graph"]["digest"]:
        raise _refusal(path, f"is of another graph: it was {_describe(was['graph'])}, now {_describe(now['graph'])}")
    values = [{"seed": one["seed"]} | one["parameters"] for one in (was, now)]
    for name in {**values[0], **values[1]}:
        before, after = (some.get(name) for some in values)
        if before != after and name not in free:
            what = f"is of another run: {name} was {before!r}, now {after!r}, and all its steps depend on it"
            raise _refusal(path, what, "give the earlier value to resume it, ")
    if not _same_code(was, now):
        differ = "differ" if isinstance(was["code"], dict) else "cannot be compared with those of so early a file"
        what = f"was written by version {was['version']}, and this is version {now['version']}, whose steps {differ}"
        raise _refusal(path, what, "finish it with the code that wrote it, ")
    changed = [
        f"{name} {was['libraries'].get(name)} → {now['libraries'].get(name)}"
        for name in LIBRARIES
        if was["libraries"].get(name) != now["libraries"].get(name)
    ]
    if changed or was["code"]["behaviour"] != now["code"]["behaviour"]:
        warnings.warn(
            f"{path}: the run resumes with other libraries or on another processor than it began with "
            f"({', '.join(changed) or 'the same libraries'}); the last bits of its vectors may differ from those of a "
            "run that was never stopped",
            stacklevel=2,
        )


def _same_code(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether two runs compute the same but for the last bits."""
    before, after = was["code"], now["code"]
    if not isinstance(before, dict):  # a digest of sources, which earlier versions of this package kept
        return False
    if (before["untried"] or after["untried"]) and was["version"] != now["version"]:
        return False
    limit = CLOSE * max(map(abs, after["sample"]), default=0)
    pairs = zip(before["sample"], after["sample"], strict=False)
    return len(before["sample"]) == len(after["sample"]) and all(abs(one - other) <= limit for one, other in pairs)


def _describe(graph: Mapping[str, Any]) -> str:
    sizes = ", ".join(f"{graph[name]:,} {name}" for name in ("nodes", "edges", "attributes"))
    return f"'{graph['name']}' ({sizes}, digest {graph['digest']})"


def _refusal(path: Path, what: str, instead: str = "") -> CheckpointError:
    return CheckpointError(f"{path}: this checkpoint {what}; {instead}{AFRESH}")


# A lock beside a checkpoint, so that two runs never write the same one.

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # the answers of such file systems


@contextmanager
def locked(checkpoint: Path) -> Iterator[None]:
    """Hold the file `.NAME.lock` beside a checkpoint, or raise at once where another run holds it.

    The system lets go of it when a process dies, however it dies. Where the file system has no locks, the file itself
    is the lock; it names the process and the machine, and one that a process of this machine left when it died is
    taken over.
    """
    from filelock import FileLock, SoftFileLock, Timeout

    path = checkpoint.with_name(f".{checkpoint.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, timeout=0)
        try:
            lock.acquire()
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
            lock = SoftFileLock(path, timeout=0)
            lock.acquire()
    except Timeout:
        raise CheckpointError(
            f"{checkpoint}: {_holder(path)} is training with this checkpoint; wait until it ends, or name another file "
            f"(if no such process runs any more, remove {path})"
        ) from None
    except OSError as error:
        raise CheckpointError(
            f"{checkpoint}: no checkpoint can be written there ({error.strerror}); name a file in a folder "
            "that can be written to"
        ) from error
    try:
        if not isinstance(lock, SoftFileLock):  # which writes the same by itself
            path.write_text(f"{os.getpid()}\n{socket.gethostname()}\n")
        yield
    finally:
        if not isinstance(lock, SoftFileLock) and os.name == "posix":  # Windows removes no open file
            path.unlink(missing_ok=True)  # while it is locked: a run that waits for it sees that it is gone
        lock.release()


def _holder(lock: Path) -> str:
    """Name the process that wrote a lock."""
    try:
        words = lock.read_text(errors="replace").split()
    except OSError:  # it is gone by now, or Windows keeps it closed
        words = []
    return f"process {words[0]} on {words[1]}" if len(words) > 1 else "another process"


# Signals that end a process wait until the step in progress is over, so that what is kept is whole.

# Ctrl-C, a request to end, and the terminal's end, which Windows does not know.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
HANGUP = getattr(signal, "SIGHUP", None)


class Patience:
    """Holds back, while `busy`, whatever would stop a run: signals, and errors of the function that reports progress.

    Whoever does the work sets `busy` while it must not be cut short, and calls `release` when it may be. A second
    signal is not held back. A signal then does what it would have done: what was installed for it is called. Signals
    that the process ignores stay ignored; outside the main thread, where Python allows no handlers, none are held.
    """

    def __init__(self) -> None:
        self.busy = False
        self._signal: int | None = None
        self._error: BaseException | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            found = {number: signal.getsignal(number) for number in ENDING}
            self._before = {number: old for number, old in found.items() if old not in (signal.SIG_IGN, None)}
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
    def asked(self) -> bool:
        """Whether something wants the run to stop."""
        return self._signal is not None or self._error is not None

    def release(self) -> None:
        """Raise the error, or call the handler of the signal, that was held back."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._signal is not None:
            number, self._signal = self._signal, None
            self._restore()
            signal.raise_signal(number)
            self._install()  # whoever handled it wants the run to go on

    def patient(self, report: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the same reporter of progress; an error that it raises in the middle of a step is held back."""

        def tell(progress: Any) -> None:
            if self._error is not None:
                return
            try:
                report(progress)
            except BaseException as error:
                if not self.busy:
                    raise
                self._error = error

        return tell

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self._signal is not None and number != HANGUP  # a terminal that is lost may say so twice
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


# One file for one run: locked while it trains, written at intervals and before it stops, checked before it goes on.

INTERVAL = 10.0  # seconds between two writings, at least
LARGEST_SHARE = 0.02  # of a run's time that may go into them


class State(NamedTuple):
    """The state of a stage: the number of its next step, the arrays that steps change, and plain numbers."""

    position: int
    arrays: Mapping[str, np.ndarray]
    numbers: Mapping[str, Any]


class Checkpoint:
    """Keeps the states of a run's stages in a file, for as long as the block lasts.

    identity: the run, from `identify`; a file of another run is refused, but parameters that are `free` may differ.
    interval: the least seconds of the `clock` between two writings. share: the part of the time that they may take.
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
        self._open = ExitStack()  # its lock and its patience
        self._kept: dict[str, State] = {}  # read from the file, of stages that have not begun
        self._states: dict[str, Callable[[], State]] = {}  # of the stages that have
        self._written, self._cost = clock(), 0.0
        self.stale = False  # whether steps were taken since the file was written

    def __enter__(self) -> Self:
        if self.path.is_dir():
            raise CheckpointError(f"{self.path}: is a folder; name a file in it")
        with ExitStack() as stack:
            path = Path(os.path.realpath(self.path))  # one lock for all names that a link gives the file
            stack.enter_context(locked(path))
            remove_abandoned(path.parent)
            if self.path.exists():
                self._load()
            stack.enter_context(self.patience)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._open.__exit__(*error)
        finally:
            self._kept.clear()
            self._states.clear()

    def take(self, stage: str) -> State | None:
        """Return the state in which a stage was left; None where it had not begun."""
        return self._kept.pop(stage, None)

    def add(self, stage: str, state: Callable[[], State], *, new: bool) -> None:
        """Keep the state of a stage from now on; one that is `new` is written if it is time to."""
        self._states[stage] = state
        if new:
            self._kept.clear()
            self.patience.busy = True
            self.end_step()

    def begin_step(self) -> None:
        """Hold back what would stop the run until the step is over; forget kept stages, which come after this one."""
        self.patience.busy = self.stale = True
        self._kept.clear()

    def end_step(self, *, save: bool = False) -> None:
        """Write the states if it is time to, or if the run is asked to stop, which it then does.

        save: write what the file lacks also before it is time to.
        """
        waited = self._clock() - self._written
        if self.patience.asked or save or waited >= max(self._interval, self._cost / self._share):
            self._save()
        self.patience.busy = False
        self.patience.release()

    def _load(self) -> None:
        about, arrays = tensors.read(self.path, CHECKPOINT)
        require_same(self.path, about, self.identity, self._free)
        for at, (stage, state) in enumerate(about["stages"].items()):
            own = {name.partition("/")[2]: one for name, one in arrays.items() if name.startswith(f"{at}/")}
            self._kept[stage] = State(state["position"], own, state["numbers"])

    def _save(self) -> None:
        """Write all states, unless a number in them is NaN or infinite; training goes on where that fails."""
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
            warnings.warn(
                f"{self.path}: the checkpoint could not be written ({error.strerror or error}); training goes on, and "
                "tries again later",
                stacklevel=2,
            )
        self._written = self._clock()
        self._cost = self._written - begun


def is_finite(array: np.ndarray, block: int = 65_536) -> bool:
    """Tell whether all numbers of an array are finite, some rows at a time."""
    return all(np.isfinite(array[at : at + block]).all() for at in range(0, len(array), block))


def kept_seed(path: str | Path) -> int | None:
    """Return the seed of the run that a file keeps; None where there is no such file."""
    seed = tensors.read_about(path, CHECKPOINT).get("seed") if Path(path).is_file() else None
    return seed if isinstance(seed, int) else None


# Training in stages whose state is kept: what a method sees of a checkpoint.
#
# A stage is either made at once or trained in steps::
#
#     text = stages.once("text", lambda: reduce(attributes))
#     for epoch in stages.stage("factors").steps(epochs, {"nodes": nodes, "parts": parts}):
#         update(nodes, parts)
#
# `steps` counts on from where the checkpoint was left, with the arrays as they were then. Without a checkpoint nothing
# is kept, and it counts from 0.

Arrays = Mapping[str, np.ndarray]


class Stages:
    """The stages of one training, in the order in which they are asked for; each name is used once."""

    def __init__(self, checkpoint: Checkpoint | None = None, prefix: str = ""):
        self._checkpoint, self._prefix = checkpoint, prefix

    def once(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Make an array at once, or return the one that was kept; it must not be changed afterwards."""
        return self.all_once(name, lambda: (make(),))[0]

    def all_once(self, name: str, make: Callable[[], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
        """Do the same for several arrays that are made together."""
        if self._checkpoint is None:
            return make()
        kept = self._checkpoint.take(self._prefix + name)
        made = make() if kept is None else tuple(kept.arrays[f"made {at}"] for at in range(len(kept.arrays)))
        arrays = {f"made {at}": array for at, array in enumerate(made)}
        self._checkpoint.add(self._prefix + name, lambda: State(1, arrays, {}), new=kept is None)
        return made

    def stage(self, name: str) -> Stage:
        """Begin a stage that is trained in steps."""
        return Stage(self._checkpoint, self._prefix + name)

    def within(self, name: str) -> Stages:
        """Return the stages of a method that is a part of this one."""
        return Stages(self._checkpoint, f"{self._prefix}{name}, ")


class Stage:
    """Steps that change arrays and a few numbers."""

    def __init__(self, checkpoint: Checkpoint | None, name: str):
        self._checkpoint, self._name = checkpoint, name
        self.kept = checkpoint.take(name) if checkpoint else None  # where it was left; None at a start

    @property
    def position(self) -> int:
        """The number of the step that comes first."""
        return self.kept.position if self.kept else 0

    def restore(self, arrays: Arrays, numbers: dict[str, Any]) -> None:
        """Bring arrays and numbers to where they were left, in place."""
        if self.kept is None or self._checkpoint is None:
            return
        was, now = (
            {name: (one.shape, str(one.dtype)) for name, one in some.items()} for some in (self.kept.arrays, arrays)
        )
        if was != now:
            raise CHECKPOINT.damaged(self._checkpoint.path, f"the arrays of stage '{self._name}' are {was}, not {now}")
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
        """Yield the numbers of the steps that are left, up to `total`, or until `until` ends the stage before a step.

        arrays: changed in place by every step, and restored before the first; or a function that returns them, for
        arrays on a device: then the caller has called `restore`. numbers: plain numbers and lists that steps set; a
        step sees the earlier ones. per_epoch: how many steps an epoch has.
        """
        numbers = {} if numbers is None else numbers
        if not callable(arrays):
            self.restore(arrays, numbers)
        first, self.kept = self.position, None
        if self._checkpoint is None:
            yield from takewhile(lambda _: not until(), range(total))
            return
        if first > total:  # the vectors would not be those of a shorter run
            trained, asked = -(-first // per_epoch), total // per_epoch
            raise CheckpointError(
                f"{self._checkpoint.path}: this checkpoint has trained {trained:,} epochs, more than the {asked:,} "
                f"that are asked for; ask for as many or more to go on, {AFRESH}"
            )
        fetch = arrays if callable(arrays) else lambda: arrays
        position = first
        self._checkpoint.add(self._name, lambda: State(position, fetch(), numbers), new=False)
        while position < total and not until():
            self._checkpoint.begin_step()
            yield position
            position += 1
            self._checkpoint.end_step()
        ended = State(position, fetch(), numbers)
        self._checkpoint.add(self._name, lambda: ended, new=False)  # the device that had the arrays may be let go
        if position > first and self._checkpoint.stale:
            self._checkpoint.patience.busy = True
            self._checkpoint.end_step(save=True)
