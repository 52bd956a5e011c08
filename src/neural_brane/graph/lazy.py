"""Import Polars on first use: most work needs no tables, and GPU machines may lack Polars."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from neural_brane.errors import DependencyError, OutOfMemoryError
from neural_brane.graph.memory import left_by_limits, show_size

LEAST = 1 << 30  # bytes of address space; with less, Polars panics or hangs when it starts its threads

if TYPE_CHECKING:
    import polars as pl
else:

    class _Lazy:
        """A stand-in for a module that imports it when a name is first used."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            if self._name not in sys.modules and (left := left_by_limits()) < LEAST:
                raise OutOfMemoryError(
                    f"Polars, which reads tables, needs {show_size(LEAST)} of address space, but the limit of this "
                    f"process leaves {show_size(max(left, 0))}; raise the limit, as with: ulimit -v unlimited"
                )
            return getattr(importlib.import_module(self._name), name)

    pl = _Lazy("polars")

__all__ = ["check_polars", "pl"]

# The threads of Polars do not survive a fork. A forked process that waits for them would never continue.

_used = False  # True once this process has used Polars
_used_before_fork = False  # True if the parent process had used Polars before the fork


def check_polars() -> None:
    """Raise an error if Polars would wait forever because this process was forked after Polars started."""
    global _used
    if _used_before_fork:
        raise DependencyError(
            "this process was forked after Polars had started, and its threads do not survive a fork; read the graph "
            "before the fork, or start processes with multiprocessing.get_context('spawn')"
        )
    _used = True


def _after_fork() -> None:
    global _used_before_fork
    _used_before_fork = _used


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
