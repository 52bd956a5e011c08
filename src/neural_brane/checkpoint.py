"""A run's state on disk, so that one that was stopped goes on where it was and ends with the same vectors."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import ParameterError
from neural_brane.io.atomic import atomic
from neural_brane.kernels.model import Model

LARGEST_SHARE = 0.05  # of a run's time that may go into writing


class Checkpoint:
    """One file for one run: its parameters after an epoch, and what the run is, to know it again.

    identity says what the run is: settings and data that must be the same to go on. The file is safetensors.
    """

    def __init__(self, path: str | Path, identity: dict[str, Any]):
        self.path = Path(path)
        self.identity = json.loads(json.dumps(identity))
        self._cost = 0.0
        self._written = -np.inf

    def exists(self) -> bool:
        """Whether there is a run to go on with."""
        return self.path.is_file()

    def load(self, like: Model) -> tuple[Model, list[float]]:
        """The parameters, copied into a model of the same shapes, and the loss of every epoch so far."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.path, framework="numpy") as file:
                state = json.loads(file.metadata()["state"])
                self._refuse_another(state["identity"])
                for name, theta in like._asdict().items():
                    theta[:] = file.get_tensor(name)
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, ParameterError):
                raise
            raise ParameterError(
                f"checkpoint {self.path} cannot be read ({error}); remove it to start afresh"
            ) from error
        return like, state["losses"]

    def save(self, model: Model, losses: list[float], *, force: bool = False) -> None:
        """Write the state after an epoch, unless that was done so lately that it would slow the run down."""
        from safetensors.numpy import save_file

        begun = time.perf_counter()
        if not force and (begun - self._written) * LARGEST_SHARE < self._cost:
            return
        state = json.dumps({"identity": self.identity, "losses": losses})
        tensors = {name: np.ascontiguousarray(theta) for name, theta in model._asdict().items()}
        with atomic(self.path) as draft:
            save_file(tensors, draft, metadata={"state": state})
        self._written = time.perf_counter()
        self._cost = self._written - begun

    def _refuse_another(self, found: dict[str, Any]) -> None:
        names = {**found, **self.identity}
        different = [name for name in names if found.get(name) != self.identity.get(name)]
        if different:
            name = different[0]
            raise ParameterError(
                f"checkpoint {self.path} is of another run ({name} was {found.get(name)!r}, now "
                f"{self.identity.get(name)!r}); remove it to start afresh, or name another file"
            )
