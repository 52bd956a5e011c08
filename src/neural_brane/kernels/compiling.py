"""Compile kernels, cache their code and run them safely after a fork and from several threads."""

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

# Choose the threads that parallel kernels run on.
#
# Numba has three threading layers. TBB works after a fork and with several callers at once. The package `tbb` installs
# its library where Numba does not look, so we open it before Numba starts its threads. OpenMP on Linux kills a forked
# process that uses its threads, and a process pool then waits forever; we raise an error instead. Workqueue kills the
# process when two threads use it at once, so its callers take turns.

LIBRARY = {"linux": "libtbb.so.12", "win32": "tbb12.dll", "darwin": "libtbb.12.dylib"}
_turns = RLock()
_forked = False  # True in a process forked from one whose threads were running


if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
    raise DependencyError("NUMBA_DISABLE_JIT is set, but the kernels run only compiled; run: unset NUMBA_DISABLE_JIT")


def check_threads() -> None:
    """Open TBB before Numba's threads start; raise DependencyError if a fork has made the threads unusable."""
    _open_tbb()
    if _forked and started() == "omp" and sys.platform == "linux":
        raise DependencyError(
            "kernels cannot run in a process forked after training, because OpenMP's threads do not survive a fork; "
            "pip install tbb, use multiprocessing.get_context('spawn'), or set NUMBA_THREADING_LAYER=workqueue"
        )


def started() -> str | None:
    """Return Numba's threading layer, "tbb", "omp" or "workqueue"; None before its threads start."""
    return cast(str | None, parallel._threading_layer)


@cache
def _open_tbb() -> None:
    """Load TBB's library, so that Numba finds it by name."""
    name = LIBRARY.get(sys.platform)
    if name is None or started() is not None:
        return
    for path in (name, *_installed(name)):
        try:
            ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        return


def _installed(name: str) -> list[str]:
    """Return the paths where the package `tbb` may have installed its library."""
    try:
        listed = [str(file.locate()) for file in files("tbb") or () if file.name == name]
    except PackageNotFoundError:
        listed = []
    usual = "Library/bin" if sys.platform == "win32" else "lib"
    return [*listed, str(Path(sys.prefix) / usual / name)]


def _after_fork() -> None:
    global _forked, _turns
    _forked = started() is not None
    _turns = RLock()  # another thread of the parent may hold the old lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# Cache compiled code in files with a digest, so that damaged code is compiled again.
#
# Numba writes code to NUMBA_CACHE_DIR, beside the source or to the user's cache, whichever is writable. If none is, for
# example for a container's user without a home, kernels are compiled in memory, and we warn once.

DIGEST_BYTES = 16
_log = logging.getLogger("neural_brane")


class CheckedFiles(IndexDataCacheFile):
    """Numba's two cache files of a function, each with a digest at its end; a file with a wrong digest is ignored."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[IO[bytes]]:
        content = BytesIO()
        yield content
        data = content.getvalue()
        with super()._open_for_write(filepath) as file:
            file.write(data + _digest(data))

    def _load_index(self) -> dict[Any, str]:
        try:
            return cast(dict[Any, str], super()._load_index() if _is_whole(self._index_path) else {})
        except (ImportError, AttributeError):  # an earlier version wrote it, with types that have moved since
            return {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_whole(path):
            raise FileNotFoundError(path)  # makes Numba compile again
        return super()._load_data(name)


class CheckedCache(FunctionCache):
    """The cached code of one function; an error with its files never stops a run."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__(function)
        self._cache_file = CheckedFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write compiled code to the cache; warn if the disk is full or read-only."""
        try:
            super().save_overload(sig, data)
        except OSError:
            _warn_once()


def _is_whole(path: str) -> bool:
    try:
        data = Path(path).read_bytes()
    except OSError:
        return False
    return len(data) > DIGEST_BYTES and _digest(data[:-DIGEST_BYTES]) == data[-DIGEST_BYTES:]


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


@cache
def _warn_once() -> None:
    found = "no folder is writable for compiled kernels, so every process compiles them again,"
    _log.warning(f"{found} which takes up to a minute; set NUMBA_CACHE_DIR to a folder that you can write to")


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function with `numba.njit`, cache its code, and guard a parallel function's threads."""
    if function is None:
        return partial(njit, **options)
    kernel = numba.njit(**options)(function)
    if hasattr(kernel, "_cache"):  # absent with NUMBA_DISABLE_JIT=1
        try:
            kernel._cache = CheckedCache(kernel.py_func)
        except RuntimeError:  # Numba found no writable folder
            _warn_once()
    if not options.get("parallel"):
        return kernel

    @wraps(kernel)
    def call(*arguments: Any) -> Any:
        check_threads()
        with _turns if started() in (None, "workqueue") else nullcontext():
            return kernel(*arguments)

    return call
