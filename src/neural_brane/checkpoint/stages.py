"""Training in stages whose state is kept: what a method sees of a checkpoint.

A stage is either made at once or trained in steps::

    text = stages.once("text", lambda: reduce(attributes))
    for epoch in stages.stage("factors").steps(epochs, {"nodes": nodes, "parts": parts}):
        update(nodes, parts)

`steps` counts on from where the checkpoint was left, with the arrays as they were then. Without a checkpoint nothing is
kept, and it counts from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from neural_brane.checkpoint.checkpoint import Checkpoint, State

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
