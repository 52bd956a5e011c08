"""The threads that parallel kernels run on, and how they stand forks and several callers.

Numba has three kinds of threads. Those of TBB may be forked and used by several threads at once. The package `tbb`
brings them where it has wheels, but puts its library where Numba does not look, so it is opened here before Numba
starts its threads. OpenMP's on Linux end a forked process that uses them, and a process pool waits for it without end:
there an error is raised instead. Those of workqueue end a process in which two threads use them at once: there callers
take turns.
"""

import ctypes
import os
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from threading import RLock

from numba.np.ufunc import parallel

from neural_brane.errors import DependencyError

LIBRARY = {"linux": "libtbb.so.12", "win32": "tbb12.dll", "darwin": "libtbb.12.dylib"}
_turns = RLock()
_forked = False  # whether this process is the child of one whose threads had been started


def in_turn() -> AbstractContextManager[object]:
    """What to hold while a parallel kernel runs; refuses to run one where it would hang or end the process."""
    check_threads()
    return _turns if started() in (None, "workqueue") else nullcontext()


def check_threads() -> None:
    """Prepare Numba's threads before their first use, and refuse those that a fork has made unusable."""
    _open_tbb()
    if _forked and started() == "omp" and sys.platform == "linux":
        raise DependencyError(
            "this process was forked from one that had trained already, and its kernels cannot run here: OpenMP's "
            "threads do not survive a fork; pip install tbb, or start processes with "
            "multiprocessing.get_context('spawn'), or set NUMBA_THREADING_LAYER=workqueue"
        )


def started() -> str | None:
    """The kind of threads that kernels run on, "tbb", "omp" or "workqueue"; None before they are started."""
    layer: str | None = parallel._threading_layer
    return layer


@cache
def _open_tbb() -> None:
    """Open TBB's library, so that Numba, which asks for it by name, finds it loaded."""
    name = LIBRARY.get(sys.platform)
    if name is None or started() is not None:
        return
    for place in (name, *_installed(name)):
        try:
            ctypes.CDLL(place, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return


def _installed(name: str) -> list[str]:
    """Where the package `tbb` may have put its library: as its own list says, or as wheels do."""
    try:
        listed = [str(file.locate()) for file in files("tbb") or () if file.name == name]
    except PackageNotFoundError:
        listed = []
    usual = "Library/bin" if sys.platform == "win32" else "lib"
    return [*listed, str(Path(sys.prefix) / usual / name)]


def _after_fork() -> None:
    global _forked, _turns
    _forked = started() is not None
    _turns = RLock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
