"""Compare the triplets of the GPU sampler with those of the CPU sampler; without a GPU, in Triton's interpreter."""

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")
triplets = pytest.importorskip("neural_brane.sampling.triplets")
triplets_gpu = pytest.importorskip("neural_brane.sampling.triplets_gpu")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def graph(weighted: bool) -> sparse.csr_array:
    """Make 30 nodes; the first is linked to nearly all others, so that the exact draw finds some of its j."""
    rng = np.random.default_rng(3)
    dense = np.triu(rng.random((30, 30)) * (rng.random((30, 30)) < 0.15), 1)
    dense[0, 1:28] = 1
    dense[28, 29] = dense[2, 2] = 1
    return sparse.csr_array(((dense + dense.T) if weighted else (dense + dense.T > 0)).astype(np.float32))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("allow_self_negative", [False, True])
@pytest.mark.parametrize(("seed", "first"), [(2**62 + 7, 12_345_678_901), (1, 1), (0, 0)])
def test_the_triplets_are_those_of_the_cpu(weighted, allow_self_negative, seed, first):
    options, count = {"seed": seed, "allow_self_negative": allow_self_negative}, 200
    found = triplets_gpu.TripletSampler(graph(weighted), device=DEVICE, **options).draw(first, count)
    expected = triplets.TripletSampler(graph(weighted), **options).draw(first, count)
    np.testing.assert_array_equal(found.cpu().numpy(), expected)
