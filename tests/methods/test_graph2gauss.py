import numpy as np
import pytest
from scipy import sparse

from neural_brane import Graph2Gauss, load
from neural_brane.errors import GraphError
from neural_brane.methods import graph2gauss
from neural_brane.sampling.walks import HopSampler

torch = pytest.importorskip("torch", reason="graph2gauss needs torch: pip install 'neural-brane[torch]'")

GOLDEN = 0.9440
FIRST, SECOND = np.array([0, 3, 2, 4]), np.array([1, 1, 0, 4])


def draw_gaussians():
    rng = np.random.default_rng(0)
    return rng.standard_normal((5, 3)), rng.random((5, 3)) + 0.2


def divergence(mean, variance, i, j):
    """Return the divergence of j from i by the textbook's formula with full covariance matrices."""
    cov_i, cov_j = np.diag(variance[i]), np.diag(variance[j])
    inverse, apart = np.linalg.inv(cov_i), mean[i] - mean[j]
    log_ratio = np.log(np.linalg.det(cov_j) / np.linalg.det(cov_i))
    return 0.5 * (np.trace(inverse @ cov_j) + apart @ inverse @ apart - mean.shape[1] - log_ratio)


def loss_of(mean, variance, triplets):
    return sum(
        weight * (divergence(mean, variance, i, near) ** 2 + np.exp(-divergence(mean, variance, i, far)))
        for i, near, far, weight in zip(*triplets, strict=True)
    )


def test_energies_are_the_closed_form():
    mean, variance = draw_gaussians()
    energies = graph2gauss.energy(*map(torch.from_numpy, (mean, variance)), FIRST, SECOND)
    expected = [divergence(mean, variance, i, j) for i, j in zip(FIRST, SECOND, strict=True)]
    np.testing.assert_allclose(energies, expected, rtol=1e-10, atol=1e-12)
    assert energies[3] == 0


@pytest.mark.parametrize("which", ["energy", "loss"])
def test_gradients_are_finite_differences_of_the_closed_form(which):
    mean, variance = draw_gaussians()
    triplets = graph2gauss.Triplets(FIRST, SECOND, np.array([2, 2, 4, 1]), np.array([0.1, 0.2, 0.3, 0.4]))
    tensors = [torch.from_numpy(part).requires_grad_() for part in (mean, variance)]
    if which == "energy":
        graph2gauss.energy(*tensors, FIRST, SECOND).sum().backward()
    else:
        graph2gauss.rank_loss(*tensors, triplets).backward()

    def value():
        if which == "loss":
            return loss_of(mean, variance, triplets)
        return sum(divergence(mean, variance, i, j) for i, j in zip(FIRST, SECOND, strict=True))

    step = 1e-6
    for table, tensor in zip((mean, variance), tensors, strict=True):
        for place in np.ndindex(table.shape):
            before = table[place]
            table[place] = before + step
            above = value()
            table[place] = before - step
            slope = (above - value()) / (2 * step)
            table[place] = before
            assert tensor.grad[place].item() == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_triplets_weigh_what_they_stand_for(small_graph):
    method = Graph2Gauss(hops=2, weighted=True)
    sampler = HopSampler(small_graph.adjacency, hops=2, seed=0)
    anchors, near, far, weights = method._triplets(sampler, 0)
    steps = sparse.csgraph.shortest_path(small_graph.adjacency, unweighted=True)
    steps = np.minimum(np.where(np.isinf(steps), 3, steps), 3).astype(int)
    assert (steps[anchors, near] < steps[anchors, far]).all()
    sizes = np.stack([(steps == hop).sum(axis=1) for hop in range(4)], axis=1)
    stand_for = sizes[anchors, steps[anchors, near]] * sizes[anchors, steps[anchors, far]]
    np.testing.assert_allclose(weights, stand_for / stand_for.sum(), rtol=1e-6)
    assert weights.dtype == np.float32
    plain = Graph2Gauss(hops=2, weighted=False)._triplets(sampler, 0)
    np.testing.assert_allclose(plain.weights, 1 / len(anchors))


def test_vectors_are_the_trained_means(small_graph):
    method = Graph2Gauss(dim=5, hidden=7, epochs=3, seed=0).fit(small_graph)
    weights = graph2gauss.GaussianWeights(*map(torch.from_numpy, method.weights_))
    rows = graph2gauss.backend.SparseRows(small_graph.attributes, "cpu")
    mean, variance = graph2gauss.gaussians(weights, rows)
    np.testing.assert_allclose(method.embedding_.vectors, mean, rtol=1e-4, atol=1e-6)
    assert (variance > 0).all()


@pytest.mark.parametrize("hops", [1, 3])
def test_training_lowers_the_loss(hops):
    history = Graph2Gauss(dim=16, hidden=32, hops=hops, epochs=60, learning_rate=0.01, seed=0).fit(load("stdlib"))
    assert np.mean(history.loss_history_[-5:]) < 0.6 * history.loss_history_[0]


def test_a_complete_graph_is_refused():
    complete = sparse.csr_array(1 - np.eye(5, dtype=np.float32))
    with pytest.raises(GraphError, match="no node of this graph has a neighbour and a node farther away"):
        Graph2Gauss().fit((complete, complete))


def test_golden_loss():
    """A change of this is a change of what everybody's seed gives: it belongs in the changelog."""
    method = Graph2Gauss(dim=16, hidden=32, epochs=30, learning_rate=0.01, seed=0, device="cpu").fit(load("stdlib"))
    assert method.loss_history_[-1] == pytest.approx(GOLDEN, rel=1e-2)
