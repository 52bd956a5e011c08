"""Compile kernels, keep their code and run them: on any machine, in forked processes and several threads at once."""

import ctypes
import hashlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial, wraps
from importlib.metadata import PackageNotFoundError, files
from io import BytesIO
from pathlib import Path
from threading import RLock
from typing import IO, Any, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.np.ufunc import parallel

from neural_brane.errors import DependencyError

# The threads that parallel kernels run on, and how they stand forks and several callers.
#
# Numba has three kinds of threads. Those of TBB may be forked and used by several threads at once. The package `tbb`
# brings them where it has wheels, but puts its library where Numba does not look, so it is opened here before Numba
# starts its threads. OpenMP's on Linux end a forked process that uses them, and a process pool waits for it without
# end: there an error is raised instead. Those of workqueue end a process in which two threads use them at once: there
# callers take turns.

LIBRARY = {"linux": "libtbb.so.12", "win32": "tbb12.dll", "darwin": "libtbb.12.dylib"}
_turns = RLock()
_forked = False  # whether this process is the child of one whose threads had been started


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
    return cast(str | None, parallel._threading_layer)


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


# Compiled code in files, as Numba keeps it, but with a digest: what is damaged is compiled again.
#
# Numba keeps code in NUMBA_CACHE_DIR, beside the source or in the user's cache, whichever can be written to. Where none
# can, as for a container's user without a home, kernels are compiled in memory. That is told once.

DIGEST_BYTES = 16
_log = logging.getLogger("neural_brane")


class CheckedFiles(IndexDataCacheFile):
    """Numba's two files of a function, each followed by a digest; one whose digest is wrong counts as absent."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[IO[bytes]]:
        content = BytesIO()
        yield content
        data = content.getvalue()
        with super()._open_for_write(filepath) as file:
            file.write(data + _digest(data))

    def _load_index(self) -> dict[Any, str]:
        return cast(dict[Any, str], super()._load_index() if _is_whole(self._index_path) else {})

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_whole(path):
            raise FileNotFoundError(path)  # for Numba: compile it again
        return super()._load_data(name)


class KeptCode(FunctionCache):
    """The kept code of one function. Nothing that happens to its files stops a run."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        self._cache_file = CheckedFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write code; a disk that is full, or has become read-only, does not take it."""
        try:
            super().save_overload(sig, data)
        except OSError:
            _tell_once()


def _is_whole(path: str) -> bool:
    try:
        data = Path(path).read_bytes()
    except OSError:
        return False
    return len(data) > DIGEST_BYTES and _digest(data[:-DIGEST_BYTES]) == data[-DIGEST_BYTES:]


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


@cache
def _tell_once() -> None:
    _log.warning(
        "compiled kernels cannot be kept, since no folder for them can be written to: every process compiles them "
        "anew, which takes up to a minute; set NUMBA_CACHE_DIR to a folder of yours"
    )


# Functions that Numba compiles: their code is kept where that is possible, parallel ones run on safe threads.


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile with `numba.njit`; code is kept for the next process, and parallel functions run on safe threads."""
    if function is None:
        return partial(njit, **options)
    kernel = numba.njit(**options)(function)
    if hasattr(kernel, "_cache"):  # with NUMBA_DISABLE_JIT=1 the function is run as it is
        try:
            kernel._cache = KeptCode(kernel.py_func)
        except RuntimeError:  # Numba has found no folder
            _tell_once()
    if not options.get("parallel"):
        return kernel

    @wraps(kernel)
    def call(*arguments: Any) -> Any:
        check_threads()
        with _turns if started() in (None, "workqueue") else nullcontext():
            return kernel(*arguments)

    return call
