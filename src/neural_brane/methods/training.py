"""What trainings share: devices, memory by formulas, divergence, and continuing from a fitted model."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from neural_brane.errors import NotFittedError, ParameterError
from neural_brane.files.checkpoints import is_finite
from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Changes, find_changes
from neural_brane.graph.memory import Sizes, available, require_memory
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.linalg.eigenvectors import OVERSAMPLING
from neural_brane.linalg.tables import BLOCK_ROWS
from neural_brane.methods.parameters import RUN

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder, Fitted


# The choice between the CPU and an NVIDIA GPU, the same for every method that has it.

_INSTALL = "pip install 'neural-brane[torch]' on a machine with an NVIDIA GPU, or train with device='cpu'"
_log = logging.getLogger("neural_brane")


def resolve(device: str, *, needs: Sequence[str] = ("torch", "triton")) -> str:
    """The device that training runs on; "auto" takes the GPU where there is one, and logs which."""
    missing = None if device in ("cpu", "distributed") else _missing(needs)
    if device == "cuda" and missing:
        raise ParameterError(f"device='cuda' cannot be used: {missing}; {_INSTALL}")
    if device == "auto":
        device = "cpu" if missing else "cuda"
        _log.warning("device='auto': training on the %s", f"CPU ({missing})" if missing else f"GPU ({gpu_name()})")
    return device


def _missing(packages: Sequence[str]) -> str | None:
    """What stands in the way of the GPU, or None."""
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
# A method names the moments at which it takes most, and for each of them what is there besides the graph: bytes by
# part. The formulas count arrays as the code makes them, so whoever changes the arrays changes the formula beside them;
# `benchmarks/estimate.py` compares them with what is measured.

Moments = Mapping[str, Mapping[str, int]]  # the bytes of each part, by moment

SINGLE, DOUBLE = 4, 8  # bytes of a float32 and of a float64
WEIGHED = DOUBLE + 4  # of an entry of a weighed matrix: a float64 and a column's number
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
    dim = method.dim
    while dim > 2:
        dim //= 2
        if needed(clone(method).set_params(dim=dim), sizes) <= room:
            return dim
    return None


def clone(method: Embedder) -> Embedder:
    """A method with the same parameters, whose widths follow from dim where that is how they came to be."""
    values = method.get_params(deep=False)
    return type(method)(**{name: value for name, value in values.items() if name not in FOLLOWING})


def spectral_moments(sizes: Sizes, dim: int, *, hops: int, links: bool = False) -> Moments:
    """Of the leading directions of attributes (and links) seen over some hops, on the CPU.

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
    """Of what neighbours are drawn from: the adjacency's own entries, and running sums where edges have weights."""
    return 8 * sizes.nodes + (DOUBLE * sizes.links if sizes.weighted else 0)


# What is done where training diverges: it stops, and says which of the settings in force to change.


def require_finite(arrays: Mapping[str, np.ndarray], where: str, advice: str = "", **lower: Any) -> None:
    """Refuse to go on where some numbers are none.

    where: the step or epoch. lower: parameters that a lower value would mend, as they are in force. advice: what else.
    """
    if all(is_finite(array) for array in arrays.values()):
        return
    told = [name for name, array in arrays.items() if not is_finite(array)]
    diverged(f"in {where}: {' and '.join(told)} no longer hold numbers", advice, **lower)


def diverged(what: str, advice: str = "", **lower: Any) -> NoReturn:
    """Raise the error of a training that diverged."""
    changes = [f"lower {name}={value:g}" for name, value in lower.items()] + ([advice] if advice else [])
    raise ParameterError(f"training diverged {what}; {' or '.join(changes)}")


# Going on from a fitted model on a changed graph: what may go on from what, and what is told of it.


class Start(NamedTuple):
    """What an update goes on from: what was learned before, and how the graph has changed since."""

    learned: Any
    changes: Changes
    updated: dict[str, Any]  # what the provenance will tell


def find_start(method: Embedder, init: Any, graph: AttributedGraph) -> tuple[dict[str, Any], Start]:
    """The parameters that an update goes on with, and what it goes on from; refused where it cannot be.

    method: whose parameters are as given. Those left as None are those that the earlier training had in force: what
    follows from the size of a graph stays as it was.
    """
    if not method.updates:
        raise ParameterError(
            f"{method.title} cannot go on from what it has learned: {method.why_not}; learn anew with fit(graph), or "
            "choose a method that 'brane methods' lists with updates"
        )
    if type(init) is not type(method):
        raise ParameterError(
            f"init={init!r} makes no sense; give a fitted {type(method).__name__}, whose tables this one can go on from"
        )
    before: Fitted | None = init.__dict__.get("_fitted")
    if before is None:
        raise NotFittedError(f"this {type(init).__name__} has not learned yet, so nothing can go on from it; fit it")
    values = _parameters(method, before.settings)
    updated = {"times": 1, "first": before.data, "before": before.data}
    if before.updated is not None:
        updated |= {"times": before.updated["times"] + 1, "first": before.updated["first"]}
    return values, Start(before.learned, find_changes(before.graph, graph), updated)


def _parameters(method: Embedder, before: dict[str, Any]) -> dict[str, Any]:
    """What was in force, beside what is given of the run; refused where another parameter differs."""
    given = {name: one.check(getattr(method, name)) for name, one in method.parameters().items()}
    for name, value in given.items():
        if name not in RUN and value is not None and value != before[name]:
            raise ParameterError(
                f"{name}={value!r} makes no sense where training goes on from a model that learned with "
                f"{name}={before[name]!r}; give that value, or learn anew with fit(graph)"
            )
    if given.get("checkpoint") is not None:
        raise ParameterError(
            f"checkpoint={str(given['checkpoint'])!r} makes no sense for an update, which is short and keeps no state; "
            "set_params(checkpoint=None) first"
        )
    run = {name: given[name] for name in RUN if name in given}
    if run["seed"] is None:
        run["seed"] = before["seed"]
    return before | run


def own_seed(seed: int, times: int) -> int:
    """The seed of an update: that of the model, but other draws than in the training and in the updates before."""
    return int(np.random.SeedSequence((seed, times)).generate_state(1, np.uint64)[0] >> np.uint64(1))
