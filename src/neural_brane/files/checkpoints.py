"""Keep the state of a training on disk, so that a stopped training resumes and ends with the same vectors."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, Self

import numpy as np

from neural_brane import __version__
from neural_brane.errors import BraneError, CheckpointError
from neural_brane.files import tensors
from neural_brane.files.storage import remove_abandoned

# The file of a checkpoint: a safetensors file of `io.tensors`, with a checksum of every bit.

AFRESH = "remove it to start afresh, or name another file"
CHECKPOINT = tensors.Kind(
    "checkpoint",
    "2",
    CheckpointError,
    mend=f"restore it from a copy, or {AFRESH}",
    outdated=f"finish it with the version that wrote it, or {AFRESH}",
)


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file that appears whole or not at all; `about` is anything that JSON can hold."""
    tensors.write(path, CHECKPOINT, about, arrays)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is told and the arrays; refused where the file is no checkpoint, or where a single bit is not as written."""
    return tensors.read(path, CHECKPOINT)


def read_about(path: Path) -> dict[str, Any]:
    """What is told, with the arrays left unread and so without a check of the sum; {} where it cannot be read."""
    return tensors.read_about(path, CHECKPOINT)


def damaged(path: Path, why: str) -> BraneError:
    """The error for a file that is not as it was written."""
    return CHECKPOINT.damaged(path, why)


# Which run a checkpoint belongs to: the method, its parameters and seed, the graph, and the code that computes it.

COMPUTING = ("checkpoint", "kernels", "linalg", "methods", "sampling")  # the packages that decide what a step does
LIBRARIES = ("numpy", "scipy", "numba", "torch")  # on which the last bits of a step depend


def identify(
    method: str,
    parameters: Mapping[str, Any],
    seed: int,
    graph: Mapping[str, Any],
    *,
    computing: tuple[str, ...] = COMPUTING,
) -> dict[str, Any]:
    """What a run is, as JSON keeps it; `graph` tells its name, its size and its digest.

    computing: the packages of this one that decide what a step does.
    """
    about = {
        "method": method,
        "graph": graph,
        "parameters": parameters,
        "seed": seed,
        "version": __version__,
        "code": code_digest(computing),
        "libraries": _libraries(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(about))
    return plain


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
            raise _refusal(path, what, "give the earlier value to go on, ")
    if was["code"] != now["code"]:
        versions = [f"version {one['version']} (code {one['code']})" for one in (was, now)]
        what = f"was written by {versions[0]}, and this is {versions[1]}, whose steps may differ"
        raise _refusal(path, what, "finish it with the code that wrote it, ")
    changed = [name for name in LIBRARIES if was["libraries"].get(name) != now["libraries"].get(name)]
    if changed:
        told = ", ".join(f"{name} {was['libraries'].get(name)} → {now['libraries'].get(name)}" for name in changed)
        warnings.warn(
            f"{path}: the run goes on with other libraries than it began with ({told}); the last bits of its vectors "
            "may differ from those of a run that was never stopped",
            stacklevel=2,
        )


@cache
def code_digest(computing: tuple[str, ...] = COMPUTING) -> str:
    """Sixteen hexadecimal digits of the source that decides what a step computes: any change to it shows."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for name in computing for path in (root / name).rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _libraries() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def _describe(graph: Mapping[str, Any]) -> str:
    sizes = ", ".join(f"{graph[name]:,} {name}" for name in ("nodes", "edges", "attributes"))
    return f"'{graph['name']}' ({sizes}, digest {graph['digest']})"


def _refusal(path: Path, what: str, instead: str = "") -> CheckpointError:
    return CheckpointError(f"{path}: this checkpoint {what}; {instead}{AFRESH}")


# A lock beside a checkpoint, so that two runs never write the same one.

try:
    import fcntl
except ImportError:  # as on Windows
    fcntl = None  # type: ignore[assignment]

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # what such file systems answer


class Lock:
    """Held by one process at a time, for as long as the block lasts: a file `.NAME.lock` beside the checkpoint.

    The system lets go of it when a process dies, however it dies. Where the file system has no locks, the file itself
    is the lock: it tells the process and the machine, and that of a process that has died is taken over.

    flock: what locks an open file; None where the system has nothing of the kind.
    """

    def __init__(self, path: Path, *, flock: Any = fcntl and fcntl.flock):
        self.checkpoint = path
        self.path = path.with_name(f".{path.name}.lock")
        self._flock = flock
        self._file: int | None = None

    def __enter__(self) -> Self:
        while self._file is None:
            self._file = self._try()
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is None:
            return
        if self._flock is None:  # Windows removes no open file
            os.close(self._file)
        self.path.unlink(missing_ok=True)  # where it is locked, before it is let go: nobody else can hold it yet
        if self._flock is not None:
            os.close(self._file)
        self._file = None

    def _try(self) -> int | None:
        """The open file once it is ours; None where another run removed it meanwhile, and it must be made again."""
        file, made = self._open()
        try:
            if not self._take(file, made):
                raise self._refusal(_holder(file))
            if not self._is_current(file):
                os.close(file)
                return None
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, f"{os.getpid()} {socket.gethostname()}\n".encode())
        except BaseException:
            os.close(file)
            raise
        return file

    def _open(self) -> tuple[int, bool]:
        """The lock's file, and whether it was made just now."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644), True
            except FileExistsError:
                return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), False
        except OSError as error:
            raise CheckpointError(
                f"{self.checkpoint}: no checkpoint can be written there ({error.strerror}); name a file in a folder "
                "that can be written to"
            ) from error

    def _take(self, file: int, made: bool) -> bool:
        """Lock the file; False where another run has it."""
        if self._flock is not None:
            try:
                self._flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno not in WITHOUT_LOCKS:
                    raise
        if made:
            return True
        holder = _holder(file)
        if len(holder) != 2 or _lives(*holder):
            return False
        self.path.unlink(missing_ok=True)  # and so it is made again
        return True

    def _is_current(self, file: int) -> bool:
        """Whether the path still leads to this file: another run may have removed it between opening and locking."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _refusal(self, holder: list[str]) -> CheckpointError:
        who = "process {} on {}".format(*holder) if len(holder) == 2 else "another process"
        return CheckpointError(
            f"{self.checkpoint}: {who} is training with this checkpoint; wait until it ends, or name another file "
            f"(if no such process runs any more, remove {self.path})"
        )


def _holder(file: int) -> list[str]:
    """The process and the machine that wrote a lock; another number of words where it does not tell them."""
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, 200).decode(errors="replace").split()


def _lives(process: str, host: str) -> bool:
    """Whether the process that wrote a lock may still run; one on another machine may."""
    if host != socket.gethostname() or not process.isdigit():
        return host != socket.gethostname()
    if sys.platform == "win32":  # where os.kill with 0 would end it
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


# Signals that end a process wait until the step in progress is over, so that what is kept is whole.

# Ctrl-C, a request to end, and the terminal's end, which Windows does not know.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Patience:
    """Holds back, while `busy`, whatever would stop a run: signals, and errors of the function that is told progress.

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
        """Let happen what was held back."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._signal is not None:
            number, self._signal = self._signal, None
            self._restore()
            signal.raise_signal(number)
            self._install()  # whoever handled it wants the run to go on

    def patient(self, report: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same function of progress; what it raises in the middle of a step is held back."""

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
        first = self._signal is None
        self._signal = number
        if not (first and self.busy):
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
        """An array that is made at once, or the one that was kept; it must not be changed afterwards."""
        return self.all_once(name, lambda: (make(),))[0]

    def all_once(self, name: str, make: Callable[[], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
        """The same for several arrays that are made together."""
        if self._checkpoint is None:
            return make()
        kept = self._checkpoint.take(self._prefix + name)
        made = make() if kept is None else tuple(kept.arrays[f"made {at}"] for at in range(len(kept.arrays)))
        arrays = {f"made {at}": array for at, array in enumerate(made)}
        self._checkpoint.add(self._prefix + name, lambda: State(1, arrays, {}), new=kept is None)
        return made

    def stage(self, name: str) -> Stage:
        """A stage that is trained in steps."""
        return Stage(self._checkpoint, self._prefix + name)

    def within(self, name: str) -> Stages:
        """The stages of a method that is a part of this one."""
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
        self._checkpoint.require_like(self._name, self.kept.arrays, arrays)
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
        """The numbers of the steps that are left, up to `total`, or until `until` says before a step that all is done.

        arrays: changed in place by every step, and brought to where they were left before the first; or a function
        that gives them, for arrays that live elsewhere: then `restore` has been called. numbers: plain numbers and
        lists that steps set; a step sees the earlier ones. per_epoch: how many steps an epoch has.
        """
        numbers = {} if numbers is None else numbers
        if not callable(arrays):
            self.restore(arrays, numbers)
        first, self.kept = self.position, None
        if self._checkpoint is None:
            for at in range(total):
                if until():
                    return
                yield at
            return
        self._checkpoint.require_no_more(first, total, per_epoch)
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
        if position > first:
            self._checkpoint.save_latest()
