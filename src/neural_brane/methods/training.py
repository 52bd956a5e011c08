"""Train: the one loop of all methods, the device it runs on, the memory it takes, and what happens when it diverges."""

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
    """The steps of a training: resumed from a checkpoint, reported, and stopped where numbers are lost.

    stage: keeps the state between two steps. meter: counts units of progress; several loops may share one. steps: of
    the whole run; an epoch has `per_epoch` of them. units: how many units come before a step; a step is one unless
    given. remedies: what the user may change where training diverges, as `diverged` takes them.

    `numbers` holds what a checkpoint keeps beside arrays: the mean loss of every epoch, the losses of the epoch in
    progress, and whatever steps add to it.
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
    def of(cls, method: Embedder, stage: str, *, per_epoch: int = 1, **remedies: Any) -> Self:
        """Make the loop over all epochs of a method, whose progress counts steps.

        remedies: a lower learning rate unless given.
        """
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
        """Take every step that is left, or all until `until` says before one that training ends.

        arrays: what steps change in place; they are restored first. Or a function that gives them, where they live
        elsewhere and the caller has restored them. step: takes the step of a number and returns its loss, or None.
        numbers: given by steps that keep their losses there themselves, and return what progress shows as the loss.
        Returns the mean loss of every epoch.
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
                diverged(f"in {self._place(at)}: the loss is no longer a number", **self.remedies)
            shown = self._count(at, loss) if averages else loss
            done = begin + self.units(at + 1) - self.meter.done
            self.meter.advance(done, epoch=min(at // self.per_epoch + 1, self.meter.epochs), loss=shown)
        self.require_finite(self.steps - 1, **fetch())
        return list(self.numbers["losses"])

    def require_finite(self, step: int, **arrays: np.ndarray) -> None:
        """Refuse arrays that hold NaN or infinite values after a step."""
        require_finite(arrays, self._place(step), **self.remedies)

    def _place(self, step: int) -> str:
        if self.meter.epochs == 1 < self.steps:
            return f"step {step + 1} of {self.steps}"
        return f"epoch {step // self.per_epoch + 1}"

    def _count(self, at: int, loss: float | None) -> float | None:
        """Add the loss of a step to its epoch; returns the mean of the epoch so far."""
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
    """Refuse arrays that hold NaN or infinite values.

    where: the step or epoch. lower: parameters in force that a lower value would mend. advice: what else would.
    """
    lost = [name for name, array in arrays.items() if not is_finite(array)]
    if lost:
        diverged(f"in {where}: {' and '.join(lost)} no longer hold numbers", advice, **lower)


def diverged(what: str, advice: str = "", **lower: Any) -> NoReturn:
    """Raise the error of a training that diverged."""
    changes = [f"lower {name}={value:g}" for name, value in lower.items()] + ([advice] if advice else [])
    raise ParameterError(f"training diverged {what}; {' or '.join(changes)}")


_INSTALL = "pip install 'neural-brane[torch]' on a machine with an NVIDIA GPU, or train with device='cpu'"
_log = logging.getLogger("neural_brane")


def resolve(device: str, *, needs: Sequence[str] = ("torch", "triton")) -> str:
    """Choose the device that training runs on; "auto" takes the GPU where there is one, and logs which."""
    missing = None if device in ("cpu", "distributed") else _missing(needs)
    if device == "cuda" and missing:
        raise ParameterError(f"device='cuda' cannot be used: {missing}; {_INSTALL}")
    if device == "auto":
        device = "cpu" if missing else "cuda"
        _log.warning("device='auto': training on the %s", f"CPU ({missing})" if missing else f"GPU ({gpu_name()})")
    return device


def _missing(packages: Sequence[str]) -> str | None:
    """Say why the GPU cannot be used; None where it can."""
    for package in packages:
        if find_spec(package) is None:
            return f"the package {package} is not installed"
    import torch

    return None if torch.cuda.is_available() else f"PyTorch {torch.__version__} sees no GPU"


def gpu_name() -> str:
    """The GPU's name."""
    import torch

    return str(torch.cuda.get_device_name())


# How much memory a training takes, by formulas: nothing is allocated to find out.
#
# A method names the moments at which it takes most memory and, for each, the bytes of every part besides the graph. The
# formulas count arrays as the code makes them, so whoever changes the arrays changes the formula beside them;
# `benchmarks/estimate.py` compares them with what is measured.

Moments = Mapping[str, Mapping[str, int]]  # the bytes of each part, by moment

SINGLE, DOUBLE = 4, 8  # bytes of a float32 and of a float64
WEIGHED = DOUBLE + 4  # bytes of an entry of a weighed matrix: a float64 and a column's number
FOLLOWING = ("spectral_dim", "attribute_dim", "hidden")  # follow from dim, unless they are given
ALIAS = 56  # bytes an item while an alias table is made; 8 stay


def largest(moments: Moments) -> tuple[str, dict[str, int]]:
    """The moment that takes most, and its parts."""
    name = max(moments, key=lambda one: sum(moments[one].values()))
    return name, dict(moments[name])


def needed(method: Embedder, sizes: Sizes) -> int:
    """The bytes that a training takes besides the graph."""
    return sum(largest(method.memory(sizes))[1].values())


def check_room(method: Embedder, sizes: Sizes, *, beside: int = 0, room: int | None = None) -> None:
    """Refuse, before anything is allocated, a training that does not fit.

    beside: bytes that something else will take, as a graph that is not there yet. room: what is available unless given.
    """
    room = available() if room is None else room
    asked = needed(method, sizes) + beside
    if room is None or asked <= room or method.get_params(deep=False).get("device") == "cuda":
        return  # a GPU has a memory of its own, which is looked at before it is used
    dim = widest(method, sizes, room - beside)
    mend = f"dim={dim} would fit" if dim else "no dim would fit: use a machine with more memory"
    what = f"{method.title} with dim={method.dim} on a graph of {sizes.nodes:,} nodes"
    advice = "'brane estimate' shows what takes how much, also for other methods"
    require_memory(asked, what, f"{mend}; {advice}", room=room)


def widest(method: Embedder, sizes: Sizes, room: int) -> int | None:
    """The largest of dim / 2, dim / 4, … that fits into so many bytes; None where none does."""
    values, dim = method.get_params(deep=False), method.dim
    given = {name: value for name, value in values.items() if name not in FOLLOWING}
    while dim > 2:
        dim //= 2
        if needed(type(method)(**given | {"dim": dim}), sizes) <= room:
            return dim
    return None


def spectral_moments(sizes: Sizes, dim: int, *, hops: int, links: bool = False) -> Moments:
    """Estimate the memory of finding the leading directions of attributes (and links) over some hops, on the CPU.

    The matrices are the weighed attributes and their transpose; the adjacency is used as it is, between scales. The
    basis is one table, `OVERSAMPLING` wider than the result and a multiple of `SLAB_COLUMNS`; slabs of it are
    multiplied hop by hop. At the end the averages over neighbours fill a second table.
    """
    n, entries = sizes.nodes, sizes.attribute_entries
    width = spectral_width(n, dim)
    basis = SINGLE * n * width + 3 * DOUBLE * width * width
    blocks = (os.cpu_count() or 1) * min(BLOCK_ROWS, n) * width * DOUBLE  # one for each thread, in double precision
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
    """The columns of the basis that `dim` directions are found with."""
    return -(-min(nodes, dim + OVERSAMPLING) // SLAB_COLUMNS) * SLAB_COLUMNS


def neighbour_bytes(sizes: Sizes) -> int:
    """Estimate what drawing neighbours takes beside the adjacency: running sums where edges have weights."""
    return 8 * sizes.nodes + (DOUBLE * sizes.links if sizes.weighted else 0)
