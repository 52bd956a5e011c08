"""A method's training beside its checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from neural_brane.checkpoint import Checkpoint, Stages, identify
from neural_brane.methods.known import identify_labels

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


@contextmanager
def keeping(method: Embedder, graph: Callable[[], dict[str, Any]]) -> Iterator[Stages]:
    """The stages that a method trains in; where it has a checkpoint, they are kept in it and go on from it.

    method: a copy whose parameters are in force. graph: gives its size and digest, which take a
    while on a large one.
    """
    path, given = method.get_params().get("checkpoint"), method.progress
    if path is None:
        yield Stages()
        return
    values = method.deciding_parameters()
    if method.uses_labels:
        values |= {"labels": identify_labels(method._known)}
    identity = identify(method.title, values, cast(int, method.seed), graph())
    with Checkpoint(path, identity, free=method.prolongs) as checkpoint:
        if given is not None:
            method.progress = checkpoint.patience.patient(given)
        try:
            yield Stages(checkpoint)
        finally:
            method.progress = given
