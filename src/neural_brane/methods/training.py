"""The training loop of all methods: steps and progress, divergence, the device, and the memory that is needed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from neural_brane.errors import ParameterError
from neural_brane.files.checkpoints import Arrays, Stage, is_finite
from neural_brane.graph.memory import Sizes, available, require_memory
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.linalg.eigenvectors import OVERSAMPLING
from neural_brane.linalg.tables import BLOCK_ROWS
from neural_brane.progress import Meter

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


class Loop:
    """The steps of a training. It resumes from a checkpoint, reports progress and stops a diverging training.

    stage: saves the state between two steps. meter: counts units of progress; several loops may share one. steps:
    number of steps in the whole run; an epoch has `per_epoch` of them. units: returns the number of units before a
    step; by default a step is one unit. remedies: what the user can change if training diverges, as for `diverged`.

    `numbers` is saved in a checkpoint beside the arrays: the mean loss of every epoch, the losses of the current
    epoch, and anything that steps add to it.
    """

    def __init__(
        self,
        stage: Stage,
        meter: Meter,
        steps: int,
        *,
        per_epoch: int = 1,
        units: Callable[[int], int] = lambda step: step,
        **remedies: Any,
    ):
        self.stage, self.meter, self.steps, self.per_epoch = stage, meter, steps, per_epoch
        self.units, self.remedies = units, remedies
        self.numbers: dict[str, Any] = {"losses": [], "epoch": []}

    @classmethod
    def over_epochs(cls, method: Embedder, stage: str, *, per_epoch: int = 1, **remedies: Any) -> Self:
        """Return a loop over all epochs; its unit is a step, and the default remedy is a lower learning rate."""
        values = method.get_params(deep=False)
        steps, remedies = values["epochs"] * per_epoch, remedies or {"learning_rate": values["learning_rate"]}
        meter = Meter(method.progress, steps, "steps", epochs=values["epochs"])
        return cls(method._stages.stage(stage), meter, steps, per_epoch=per_epoch, **remedies)

    def run(
        self,
        arrays: Arrays | Callable[[], Arrays],
        step: Callable[[int], float | None],
        *,
        numbers: dict[str, Any] | None = None,
        until: Callable[[], bool] = lambda: False,
    ) -> list[float]:
        """Return the mean loss of every epoch after all steps that are left.

        arrays: the arrays that steps change in place, which are restored first; or a function that returns them, if
        they are on a device and the caller has restored them. step: takes the step with a given number and returns its
        loss, or None. numbers: given if steps store their losses in it themselves and return the loss to be reported.
        until: called before every step; training ends when it returns True.
        """
        averages, self.numbers = numbers is None, self.numbers if numbers is None else numbers
        if not callable(arrays):
            self.stage.restore(arrays, self.numbers)
        fetch = arrays if callable(arrays) else lambda: arrays
        self._sum, begin = sum(self.numbers.get("epoch", ())), self.meter.done
        self.meter.resume(begin + self.units(self.stage.position))
        for at in self.stage.steps(self.steps, fetch, self.numbers, per_epoch=self.per_epoch, until=until):
            loss = step(at)
            if loss is not None and not np.isfinite(loss):
                diverged(f"in {self._place(at)}: the loss is NaN or infinite", **self.remedies)
            shown = self._count(at, loss) if averages else loss
            done = begin + self.units(at + 1) - self.meter.done
            self.meter.advance(done, epoch=min(at // self.per_epoch + 1, self.meter.epochs), loss=shown)
        self.require_finite(self.steps - 1, **fetch())
        return list(self.numbers["losses"])

    def require_finite(self, step: int, **arrays: np.ndarray) -> None:
        """Raise an error if an array has NaN or infinite values after a step."""
        require_finite(arrays, self._place(step), **self.remedies)

    def _place(self, step: int) -> str:
        if self.meter.epochs == 1 < self.steps:
            return f"step {step + 1} of {self.steps}"
        return f"epoch {step // self.per_epoch + 1}"

    def _count(self, at: int, loss: float | None) -> float | None:
        """Return the mean loss of the epoch so far, after adding the loss of a step."""
        losses: list[float] = self.numbers["epoch"]
        if loss is not None:
            losses.append(loss)
        if not losses:
            return None
        self._sum += losses[-1] if loss is not None else 0.0
        if (at + 1) % self.per_epoch:
            return self._sum / len(losses)
        mean = float(np.mean(losses))
        self.numbers["losses"].append(mean)
        losses.clear()
        self._sum = 0.0
        return mean


def require_finite(arrays: Mapping[str, np.ndarray], where: str, advice: str = "", **lower: Any) -> None:
    """Raise an error if an array is not finite at `where`; suggest to lower parameters, or another `advice`."""
    lost = [name for name, array in arrays.items() if not is_finite(array)]
    if lost:
        diverged(f"in {where}: {' and '.join(lost)} contain NaN or infinity", advice, **lower)


LARGEST = 1e6  # largest number in a vector; those of trained vectors stay below 100, and below √(nodes × dim)


def require_bounded(vectors: np.ndarray, method: Embedder) -> np.ndarray:
    """Return vectors; raise an error if one has NaN, infinity or a number beyond `LARGEST`."""
    most = np.maximum(vectors.max(initial=0), -vectors.min(initial=0))  # NaN if any number is
    if not most <= LARGEST:
        rate = {"learning_rate": method.learning_rate} if hasattr(method, "learning_rate") else {}
        diverged(f"to vectors with the number {most:g}, beyond {LARGEST:g}", "bring amounts closer to 1", **rate)
    return vectors


def diverged(where: str, advice: str = "", **lower: Any) -> NoReturn:
    """Raise the error of a training that diverged."""
    changes = [f"lower {name}={value:g}" for name, value in lower.items()] + ([advice] if advice else [])
    raise ParameterError(f"training diverged {where}; {' or '.join(changes)}")


_INSTALL = "pip install 'neural-brane[torch]' on a machine with an NVIDIA GPU, or train with device='cpu'"
_log = logging.getLogger("neural_brane")


def resolve(device: str, *, needs: Sequence[str] = ("torch", "triton")) -> str:
    """Return the device to train on; "auto" chooses the GPU if there is one, and logs the choice."""
    missing = None if device in ("cpu", "distributed") else _missing(needs)
    if device == "cuda" and missing:
        raise ParameterError(f"device='cuda' cannot be used: {missing}; {_INSTALL}")
    if device == "auto":
        device = "cpu" if missing else "cuda"
        _log.warning("device='auto': training on the %s", f"CPU ({missing})" if missing else f"GPU ({gpu_name()})")
    return device


def _missing(packages: Sequence[str]) -> str | None:
    """Return the reason why the GPU cannot be used; None if it can."""
    for package in packages:
        if find_spec(package) is None:
            return f"the package {package} is not installed"
    import torch

    return None if torch.cuda.is_available() else f"PyTorch {torch.__version__} finds no GPU"


def gpu_name() -> str:
    """Return the name of the GPU."""
    import torch

    return str(torch.cuda.get_device_name())


# Formulas for the memory of a training; nothing is allocated. A method lists the moments that may take the most memory
# and, for each, the bytes of every group of arrays besides the graph. Change the formula when you change the arrays;
# `benchmarks/estimate.py` compares the formulas with measurements.

Moments = Mapping[str, Mapping[str, int]]  # moment -> group of arrays -> bytes

SINGLE, DOUBLE = 4, 8  # bytes per number
WEIGHED = DOUBLE + 4  # bytes per entry of a weighed matrix: a float64 and a column index
FOLLOWING = ("spectral_dim", "attribute_dim", "hidden")  # derived from dim if they are None
ALIAS = 56  # bytes per item while an alias table is made; 8 remain


def largest(moments: Moments) -> tuple[str, dict[str, int]]:
    """Return the moment that takes the most memory, and the bytes of its groups of arrays."""
    name = max(moments, key=lambda one: sum(moments[one].values()))
    return name, dict(moments[name])


def needed(method: Embedder, sizes: Sizes) -> int:
    """Return the bytes that a training takes besides the graph."""
    return sum(largest(method.memory(sizes))[1].values())


def check_room(method: Embedder, sizes: Sizes, *, beside: int = 0, room: int | None = None) -> None:
    """Raise an error before a training allocates more than `room`, if `beside` bytes are needed for something else."""
    room = available() if room is None else room
    asked = needed(method, sizes) + beside
    if room is None or asked <= room or method.get_params(deep=False).get("device") == "cuda":
        return  # a GPU has its own memory, which is checked before it is used
    dim = widest(method, sizes, room - beside)
    remedy = f"dim={dim} would fit" if dim else "no dim would fit: use a machine with more memory"
    what = f"{method.title} with dim={method.dim} on a graph of {sizes.nodes:,} nodes"
    require_memory(asked, what, f"{remedy}; 'brane estimate' shows the memory of every method", room=room)


def widest(method: Embedder, sizes: Sizes, room: int) -> int | None:
    """Return the largest of dim / 2, dim / 4, … that fits into `room` bytes; None if none does."""
    values, dim = method.get_params(deep=False), method.dim
    given = {name: value for name, value in values.items() if name not in FOLLOWING}
    while dim > 2:
        dim //= 2
        if needed(type(method)(**given | {"dim": dim}), sizes) <= room:
            return dim
    return None


def spectral_moments(sizes: Sizes, dim: int, *, hops: int, links: bool = False) -> Moments:
    """Return the memory for the leading directions of attributes (and links) over several hops, on the CPU.

    The matrices are the weighed attributes and their transpose; the adjacency is scaled without a copy. The basis is
    one table, `OVERSAMPLING` wider than the result and rounded up to a multiple of `SLAB_COLUMNS`; slabs of it are
    multiplied hop by hop. At the end the averages over neighbours fill a second table.
    """
    n, entries = sizes.nodes, sizes.attribute_entries
    width = spectral_width(n, dim)
    basis = SINGLE * n * width + 3 * DOUBLE * width * width
    blocks = (os.cpu_count() or 1) * min(BLOCK_ROWS, n) * width * DOUBLE  # one per thread, in double precision
    slab = SINGLE * n * SLAB_COLUMNS
    matrices = 16 * entries + 16 * sizes.attributes + 32 * n + (48 * n if hops > 1 or links else 0)
    held = {"spectral part": matrices + basis}
    slabs = hops + (4 if links or hops > 1 else 3)
    second = basis + blocks if hops > 1 else blocks
    return {
        "weighing attributes": {"spectral part": max(2 * WEIGHED * entries, 8 * entries + DOUBLE * sizes.links)},
        "spectral products": {"spectral part": held["spectral part"] + max(slabs * slab, second)},
        "spectral vectors": held | {"vectors": SINGLE * n * dim},
    }


def spectral_width(nodes: int, dim: int) -> int:
    """Return the number of columns of the basis from which `dim` directions are computed."""
    return -(-min(nodes, dim + OVERSAMPLING) // SLAB_COLUMNS) * SLAB_COLUMNS


def neighbour_bytes(sizes: Sizes) -> int:
    """Return the bytes for drawing neighbours besides the adjacency: offsets, and sums of weights if there are any."""
    return 8 * sizes.nodes + (DOUBLE * sizes.links if sizes.weighted else 0)
