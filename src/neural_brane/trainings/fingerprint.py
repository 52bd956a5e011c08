"""A method's fingerprint: the digest of the vectors of one small training.

It changes when the method's code computes something else, and stays when files are moved or renamed.
"""

from __future__ import annotations

import hashlib
import warnings
from functools import cache
from typing import Any

from neural_brane.blas import one_blas_thread
from neural_brane.datasets import synthetic
from neural_brane.errors import BraneError
from neural_brane.methods import METHODS

# Sizes of a training that takes a fraction of a second, by parameter, for the methods that have it.
SMALL = {
    "epochs": 2, "nnmf_epochs": 2, "batches_per_epoch": 100, "walks_per_node": 1, "walk_length": 10, "samples": 20_000,
    "score_steps": 10,
}  # fmt: skip
NODES, DIM = 200, 8
RUN = ("device", "deterministic")  # choices of where to train, which the fingerprint does not follow


def fingerprint(method: str, parameters: dict[str, Any]) -> str:
    """Sixteen hexadecimal digits of the vectors that a method learns from a small synthetic graph.

    One that learns from labels is trained without labels and again with all of them.

    Words and truth values among the parameters choose which code runs, so they are taken from `parameters`. Numbers
    decide how much of it runs, so they have small fixed values. The training runs on the CPU, on one thread: a change
    in the GPU's kernels alone is not noticed. The last bits of a sum may differ between kinds of processors and between
    versions of the numeric libraries; trainings finished on such another machine then count as others.

    A method that cannot be trained here, because a package is missing or a parameter makes no sense, has the
    fingerprint "".

    >>> fingerprint("attributes", {"dim": 150}) == fingerprint("attributes", {"dim": 32})
    True
    """
    choices = {name: value for name, value in parameters.items() if isinstance(value, bool | str) and name not in RUN}
    return _fingerprint(method, tuple(sorted(choices.items())))


@cache
def _fingerprint(method: str, choices: tuple[tuple[str, Any], ...]) -> str:
    fixed = SMALL | {"dim": DIM, "seed": 0, "threads": 1, "device": "cpu"}
    try:
        model = METHODS[method](**dict(choices))
        model.set_params(**{name: value for name, value in fixed.items() if name in model.get_params()})
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so short a training learns little
            graph = synthetic(NODES)
            digest = hashlib.sha256(model.fit_transform(graph).vectors.tobytes())
            if model.uses_labels:
                digest.update(model.fit_transform(graph, labels=graph.labels).vectors.tobytes())
    except BraneError:
        return ""
    return digest.hexdigest()[:16]
