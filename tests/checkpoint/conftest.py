"""Fixtures for checkpoints."""

import math
from functools import partial

import pytest

from neural_brane.checkpoint import Checkpoint, identify
from neural_brane.methods import keeping

GRAPH = {"name": "small", "nodes": 12, "edges": 14, "attributes": 5, "digest": "0123456789abcdef"}


@pytest.fixture
def kept_at_every_step(monkeypatch):
    """Methods write their checkpoint after every step, however short."""
    monkeypatch.setattr(keeping, "Checkpoint", partial(Checkpoint, interval=0, share=math.inf))


@pytest.fixture
def make(tmp_path):
    """A checkpoint in run.checkpoint that is written after every step."""

    def checkpoint(parameters=None, *, method="nnmf", graph=None, seed=1, **options):
        identity = identify(method, parameters or {}, seed, GRAPH | (graph or {}))
        return Checkpoint(tmp_path / "run.checkpoint", identity, **{"interval": 0, "share": math.inf} | options)

    return checkpoint
