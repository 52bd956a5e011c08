"""Tell whether code computes the same: the digest of the vectors that one tiny training learns.

It changes when a method's code computes something else, and stays when a docstring changes or files move. The store of
finished trainings and checkpoints both ask here.
"""

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
RUN = ("device", "deterministic")  # choices of where to train, which the behaviour does not follow


class Behaviour(NamedTuple):
    """What a tiny training learned: the digest of its vectors, and sums over the nodes, which tell how close two are.

    A method that cannot be trained here, because a package is missing or a parameter makes no sense, has neither.
    """

    digest: str = ""
    sample: tuple[float, ...] = ()


def behaviour(method: type[Embedder], parameters: Mapping[str, Any]) -> Behaviour:
    """Return what a method learns from a small synthetic graph; one that takes labels is trained with and without them.

    Words and truth values among the parameters choose which code runs, so they are taken from `parameters`. Numbers
    decide how much of it runs, so they have small fixed values. The training runs on the CPU, on one thread: a change
    in the GPU's kernels alone is not noticed. The last bits of a sum may differ between kinds of processors and between
    versions of the numeric libraries, and then the digest differs too.

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
            warnings.simplefilter("ignore")  # so short a training learns little
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
    """Describe the code of a training for its checkpoint: what it computes, and whether some of it was not tried.

    on_cpu: the training runs on this machine's CPU alone. On a GPU or on several ranks other code runs too, which is
    taken to be the same only in the same version of the package.
    """
    found = behaviour(method, parameters)
    return {"behaviour": found.digest, "sample": found.sample, "untried": not (on_cpu and found.digest)}
