import numpy as np
import pytest
from scipy import sparse

from neural_brane import DNGR, load, synthetic
from neural_brane.errors import GraphError, ParameterError
from neural_brane.methods import dngr

torch = pytest.importorskip("torch", reason="dngr needs torch: pip install 'neural-brane[torch]'")


@pytest.fixture
def graph():
    """40 nodes with weights and a self-loop, the last of them without neighbours."""
    graph = synthetic(39, seed=2)
    rows = np.repeat(np.arange(39), np.diff(graph.adjacency.indptr))
    graph.adjacency.data[:] = 1 + (graph.adjacency.indices + rows) % 3
    links = np.pad(graph.adjacency.toarray(), (0, 1))
    links[3, 3] = 2
    return dngr.AttributedGraph.from_sparse(sparse.csr_array(links))


def information(links, *, steps, restart):
    """Dense random surfing as in the paper, and the positive pointwise mutual information of its result."""
    weighed = links.astype(float)
    np.fill_diagonal(weighed, 0)
    walk = weighed / np.maximum(weighed.sum(axis=1, keepdims=True), 1e-300)
    begin = np.eye(len(walk))
    now, total = begin, np.zeros_like(walk)
    for _ in range(steps):
        now = (1 - restart) * now @ walk + restart * begin
        total += now
    np.fill_diagonal(total, 0)
    total /= np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
    expected = np.outer(total.sum(axis=1), total.sum(axis=0)) / total.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.nan_to_num(np.log(total / expected), nan=0, neginf=0)
    return np.maximum(found, 0)


def matrix_of(method, graph, rows=7):
    blocks = [slice(at, at + rows) for at in range(0, len(graph), rows)]
    return method._matrix(graph, blocks, lambda: None).toarray()


@pytest.mark.parametrize("restart", [0.0, 0.02, 0.5])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_matrix_is_that_of_the_formulas(graph, steps, restart):
    expected = information(graph.adjacency.toarray(), steps=steps, restart=restart)
    found = matrix_of(DNGR(steps=steps, restart=restart, threads=1), graph)
    np.testing.assert_allclose(found, expected / expected.max(), atol=1e-5)


def test_few_numbers_in_a_row_change_the_matrix_and_many_do_not(graph):
    whole, bounded, short = (matrix_of(DNGR(row_entries=most, threads=1), graph) for most in (None, 40, 4))
    np.testing.assert_array_equal(whole, bounded)
    assert (np.count_nonzero(short, axis=1) <= 4).all()
    assert np.count_nonzero(short) > 40


def test_loss_and_gradients_are_those_of_dense_matrices(graph):
    matrix = sparse.csr_array(matrix_of(DNGR(), graph))
    rng = np.random.default_rng(3)
    layer = dngr.first_layer(40, 6, rng, "cpu")
    with torch.no_grad():
        for bias in layer[1::2]:
            bias.copy_(torch.from_numpy(rng.standard_normal(bias.shape).astype(np.float32)))
    rows = matrix[[3, 8, 20, 39]]
    loss = DNGR(noise=0.3, device="cpu")._sparse_loss(layer, rows, np.random.default_rng(5))
    loss.backward()
    seen = rows.copy()
    seen.data *= np.random.default_rng(5).random(seen.nnz, np.float32) >= 0.3
    assert 0 < np.count_nonzero(seen.data) < seen.nnz
    into, into_bias, back, back_bias = doubles = [weight.detach().double().requires_grad_() for weight in layer]
    hidden = torch.tanh(torch.from_numpy(seen.toarray().astype(float)) @ into + into_bias)
    written = hidden @ back.T + back_bias
    expected = ((written - torch.from_numpy(rows.toarray().astype(float))) ** 2).sum() / 4
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for weight, double in zip(layer, doubles, strict=True):
        scale = double.grad.abs().max()
        assert scale > 0
        np.testing.assert_allclose(weight.grad / scale, double.grad / scale, atol=1e-5)


def test_training_lowers_the_loss_of_both_layers():
    history = DNGR(dim=16, hidden=32, epochs=15, seed=0, device="cpu").fit(load("stdlib")).loss_history_
    assert len(history) == 30
    assert history[14] < 0.7 * history[0]
    assert history[29] < 0.7 * history[15]


def test_noise_changes_what_is_learned(small_graph):
    plain, noisy = (
        DNGR(dim=4, hidden=8, epochs=3, noise=noise, seed=0, device="cpu").fit_transform(small_graph).vectors
        for noise in (0.0, 0.5)
    )
    assert np.abs(plain - noisy).max() > 1e-3


@pytest.mark.parametrize("name", ["restart", "noise"])
def test_shares_of_one_and_more_are_refused(name, small_graph):
    with pytest.raises(ParameterError, match=rf"{name}=1\.0 makes no sense; give a number from 0 and below 1"):
        DNGR(device="cpu", **{name: 1.0}).fit(small_graph)


def test_self_loops_alone_are_refused():
    with pytest.raises(GraphError, match=r"graph 'graph'.*link.*surfer"):
        DNGR(device="cpu").fit(sparse.csr_array(np.eye(4, dtype=np.float32)))
