"""Vectors are the same as when the digests were written: to the bit on the machines seen so far, nearly on others."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

specification = importlib.util.spec_from_file_location("digests", Path(__file__).parent / "digests.py")
digests = importlib.util.module_from_spec(specification)
specification.loader.exec_module(digests)
HERE = digests.digests_here()
NEAR = 0.05  # of the largest inner product: what other machines may differ by


def test_every_training_is_watched():
    if HERE is not None:
        assert HERE.keys() == digests.trainings().keys()
    assert set(np.load(digests.PRODUCTS)) == set(digests.trainings())


@pytest.mark.parametrize("name", digests.trainings())
def test_vectors_are_as_they_were(name, request):
    graph, method, _ = digests.trainings()[name]
    if graph == "citeseer":
        request.getfixturevalue("real_data")
    if extra := digests.METHODS[method].extra:
        pytest.importorskip(extra)
    vectors = digests.compute(name)
    if HERE is not None:
        assert digests.digest(vectors) == HERE[name]
    before, now = np.load(digests.PRODUCTS)[name], digests.products(vectors)
    assert abs(now - before).max() <= NEAR * abs(before).max()
