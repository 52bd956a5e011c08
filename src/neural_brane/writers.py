"""Who writes a graph to a file. `io` stands below `graph`, so a graph cannot import it: it is told here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_find_graph_writer: Callable[[], Callable[..., None]] | None = None


def register_graph_writer(find: Callable[[], Callable[..., None]]) -> None:
    """Say how the function is found that writes a graph to a path; it is looked for at the first graph saved."""
    global _find_graph_writer
    _find_graph_writer = find


def write(graph: Any, path: Any, **options: Any) -> None:
    """Write a graph with the function that was registered."""
    if _find_graph_writer is None:  # the package registers one when it is imported
        raise RuntimeError("no writer of graphs is registered; import neural_brane first")
    _find_graph_writer()(graph, path, **options)
