"""Fixtures for checkpoints."""

import math

import pytest

from neural_brane.files.checkpoints import Checkpoint, identify

GRAPH = {"name": "small", "nodes": 12, "edges": 14, "attributes": 5, "digest": "0123456789abcdef"}
CODE = {"behaviour": "00", "sample": [1.0, -2.0], "untried": False}


@pytest.fixture
def make(tmp_path):
    """Return a function that makes the checkpoint run.checkpoint, which is saved after every step."""

    def checkpoint(parameters=None, *, method="nnmf", graph=None, seed=1, code=None, **options):
        identity = identify(method, parameters or {}, seed, GRAPH | (graph or {}), CODE | (code or {}))
        return Checkpoint(tmp_path / "run.checkpoint", identity, **{"interval": 0, "share": math.inf} | options)

    return checkpoint
