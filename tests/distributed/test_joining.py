"""Ranks join both parts of their vectors as one process does."""

import numpy as np
import pytest

pytest.importorskip("torch")

from neural_brane.methods.neural_brane.parts import join
from neural_brane.methods.spectral import Decomposition


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_join_their_vectors_as_one_process_does(found, cases, ranks):
    spectral, learned = cases.two_parts()
    whole = join(Decomposition(spectral, cases.VALUES), iter([learned]), cases.JOINING)
    got = [np.load(found / f"joined-{ranks}-{rank}.npz") for rank in range(ranks)]
    for name in ("vectors", "divisors"):
        joined = np.concatenate([one[name] for one in got])
        np.testing.assert_allclose(joined, getattr(whole, name), rtol=1e-6, atol=1e-7)
    for one in got:
        np.testing.assert_allclose(one["centre"], whole.centre, rtol=1e-6)
