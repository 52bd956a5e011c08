"""Compiled code in files, as Numba keeps it, but with a digest: what is damaged is compiled again.

Numba keeps code in NUMBA_CACHE_DIR, beside the source or in the user's cache, whichever can be written to. Where none
can, as for a container's user without a home, kernels are compiled in memory. That is told once.
"""

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

DIGEST_BYTES = 16
_log = logging.getLogger("neural_brane")


def keep(kernel: Any) -> None:
    """Let a kernel look for its code in files before it is compiled, and write it there after."""
    if not hasattr(kernel, "_cache"):  # NUMBA_DISABLE_JIT=1: the function is run as it is
        return
    try:
        kernel._cache = KeptCode(kernel.py_func)
    except RuntimeError:  # Numba has found no folder
        _tell_once()


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
        found: dict[Any, str] = super()._load_index() if _is_whole(self._index_path) else {}
        return found

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
