"""Fixtures that the tests of linear algebra share."""

import numpy as np
import pytest
from scipy import sparse

from neural_brane.linalg.tables import OnTorch, Tables


@pytest.fixture
def matrix():
    return sparse.random_array((90, 70), density=0.1, rng=np.random.default_rng(0), format="csr")


@pytest.fixture(params=["numpy", "torch"])
def tables(request):
    """Tables of NumPy and of PyTorch, on the CPU."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="tables on a GPU need torch: pip install 'neural-brane[torch]'")
        return OnTorch("cpu")
    return Tables()
