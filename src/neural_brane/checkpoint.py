"""A run's state on disk, so that one that was stopped goes on where it was and ends with the same vectors."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import ParameterError
from neural_brane.io.atomic import atomic

LARGEST_SHARE = 0.05  # of a run's time that may go into writing


class Checkpoint:
    """One safetensors file for one run: its arrays after an epoch, and what the run is, to know it again.

    `identity` holds the settings and the data's digest, which must be the same for a run to go on.
    """

    def __init__(self, path: str | Path, identity: dict[str, Any], *, clock: Callable[[], float] = time.perf_counter):
        self.path = Path(path)
        self.identity = json.loads(json.dumps(identity))
        self._clock = clock
        self._cost = 0.0
        self._written = -np.inf

    def exists(self) -> bool:
        """Whether there is a run to go on with."""
        return self.path.is_file()

    def load(self, arrays: Mapping[str, np.ndarray]) -> list[float]:
        """Copy the kept state into arrays of the same names and shapes; returns the loss of every epoch so far."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.path, framework="numpy") as file:
                state = json.loads(file.metadata()["state"])
                self._refuse_another(state["identity"])
                for name, array in arrays.items():
                    array[:] = file.get_tensor(name)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError(
                f"checkpoint {self.path} cannot be read ({error}); remove it to start afresh"
            ) from error
        losses: list[float] = state["losses"]
        return losses

    def save(self, arrays: Mapping[str, np.ndarray], losses: list[float], *, force: bool = False) -> None:
        """Write the state after an epoch, unless writing would take too large a share of the run's time."""
        from safetensors.numpy import save_file

        begun = self._clock()
        if not force and (begun - self._written) * LARGEST_SHARE < self._cost:
            return
        state = json.dumps({"identity": self.identity, "losses": losses})
        tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        with atomic(self.path) as draft:
            save_file(tensors, draft, metadata={"state": state})
        self._written = self._clock()
        self._cost = self._written - begun

    def _refuse_another(self, found: dict[str, Any]) -> None:
        for name in {**found, **self.identity}:
            was, now = found.get(name), self.identity.get(name)
            if was != now:
                raise ParameterError(
                    f"checkpoint {self.path} is of another run ({name} was {was!r}, now {now!r}); remove it to start "
                    "afresh, or name another file"
                )
