"""Compute the fingerprint of a method's code, a digest of the vectors of one tiny training, to judge old results."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane.errors import BraneError
from neural_brane.graph.synthetic import synthetic
from neural_brane.kernels.threads import one_blas_thread

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

FIXED = {"dim": 8, "seed": 0, "threads": 1, "device": "cpu"}
NODES = 200
RUN = ("device", "deterministic")  # not tried, because the tiny training runs on the CPU


class Behaviour(NamedTuple):
    """The fingerprint of a method, and sums that show how far two differ; empty if it cannot be trained."""

    digest: str = ""
    sample: tuple[float, ...] = ()


def behaviour(method: type[Embedder], parameters: Mapping[str, Any]) -> Behaviour:
    """Return the fingerprint of a method, from a training on a small synthetic graph.

    A method that can use labels is trained with and without them. Texts and flags among the parameters choose which
    code runs, so they are taken from `parameters`; numbers only change its amount, so they have small fixed values. The
    training uses one CPU thread, so a change in GPU kernels alone goes unnoticed. The last bits of a sum may differ
    between processors and between versions of numeric libraries; the digest then differs, too.

    Examples
    --------
    >>> from neural_brane import Attributes
    >>> behaviour(Attributes, {"dim": 150}) == behaviour(Attributes, {"dim": 32})
    True
    """
    choices = {name: value for name, value in parameters.items() if isinstance(value, bool | str) and name not in RUN}
    return _behaviour(method, tuple(sorted(choices.items())))


@cache
def _behaviour(method: type[Embedder], choices: tuple[tuple[str, Any], ...]) -> Behaviour:
    digest, sample = hashlib.sha256(), []
    try:
        model = method(**dict(choices)).set_params(**method.small)
        model.set_params(**{name: value for name, value in FIXED.items() if name in model.get_params()})
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Such a short training warns that it learns little.
            graph = synthetic(NODES)
            for labels in (None, graph.labels) if method.uses_labels else (None,):
                given: dict[str, Any] = {} if labels is None else {"labels": labels}
                vectors = model.fit_transform(graph, **given).vectors
                digest.update(vectors.tobytes())
                sample += np.nan_to_num(np.cos(np.arange(NODES)) @ vectors).tolist()
    except BraneError:
        return Behaviour()
    return Behaviour(digest.hexdigest()[:16], tuple(sample))


def identify_code(method: type[Embedder], parameters: Mapping[str, Any], *, on_cpu: bool) -> dict[str, Any]:
    """Return a training's fingerprint, and whether some of its code was not tried (off the CPU of this machine)."""
    found = behaviour(method, parameters)
    return {"behaviour": found.digest, "sample": found.sample, "untried": not (on_cpu and found.digest)}
