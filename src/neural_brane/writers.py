"""Who writes graphs and models to files, and who trains by ranks: these stand below their callers, so they register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_find_graph_writer: Callable[[], Callable[..., None]] | None = None
_find_model_writer: Callable[[], Callable[..., None]] | None = None
_find_ranks: Callable[[], Callable[..., Any]] | None = None


def register_graph_writer(find: Callable[[], Callable[..., None]]) -> None:
    """Say how the function is found that writes a graph to a path; it is looked for at the first graph saved."""
    global _find_graph_writer
    _find_graph_writer = find


def write(graph: Any, path: Any, **options: Any) -> None:
    """Write a graph with the function that was registered."""
    if _find_graph_writer is None:  # the package registers one when it is imported
        raise RuntimeError("no writer of graphs is registered; import neural_brane first")
    _find_graph_writer()(graph, path, **options)


def register_model_writer(find: Callable[[], Callable[..., None]]) -> None:
    """Say how the function is found that writes a fitted method to a path; it is looked for at the first one saved."""
    global _find_model_writer
    _find_model_writer = find


def write_model(model: Any, path: Any) -> None:
    """Write a fitted method with the function that was registered."""
    if _find_model_writer is None:
        raise RuntimeError("no writer of models is registered; import neural_brane first")
    _find_model_writer()(model, path)


def register_ranks(find: Callable[[], Callable[..., Any]]) -> None:
    """Say how the function is found by which ranks learn together; it is looked for when they first do."""
    global _find_ranks
    _find_ranks = find


def learn_by_ranks(graph: Any, settings: dict[str, Any], seed: int) -> Any:
    """The spectral part, and the learned part or None, of a graph that every rank has; all ranks call it at once."""
    if _find_ranks is None:
        raise RuntimeError("nobody is registered who trains by ranks; import neural_brane first")
    return _find_ranks()(graph, settings, seed)
