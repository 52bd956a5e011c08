"""Polars, loaded when it is first used: most work needs no tables, and a GPU's machine may not have it."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from neural_brane.errors import DependencyError

if TYPE_CHECKING:
    import polars as pl
else:

    class _Lazy:
        """Stand for a module until one of its names is asked for."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self._name), name)

    pl = _Lazy("polars")

__all__ = ["check_polars", "pl"]

# Polars in forked processes: its threads do not survive a fork, and what waits for them waits without end.

_used = False  # whether Polars has been at work in this process
_stranded = False  # whether it had been in the one that this was forked from


def check_polars() -> None:
    """Call before Polars works on tables: an error instead of a wait without end."""
    global _used
    if _stranded:
        raise DependencyError(
            "this process was forked from one that had read tables already, and the threads that read them (Polars) "
            "do not survive a fork; read the graph before the fork and hand it over, or start processes with "
            "multiprocessing.get_context('spawn')"
        )
    _used = True


def _after_fork() -> None:
    global _stranded
    _stranded = _used


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
