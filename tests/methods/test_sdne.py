import numpy as np
import pytest
from scipy import sparse

from neural_brane import SDNE, AttributedGraph, load, synthetic
from neural_brane.errors import GraphError
from neural_brane.methods import sdne

torch = pytest.importorskip("torch", reason="sdne needs torch: pip install 'neural-brane[torch]'")


@pytest.fixture
def graph():
    """40 nodes with weights."""
    graph = synthetic(40, seed=2)
    rows = np.repeat(np.arange(40), np.diff(graph.adjacency.indptr))
    graph.adjacency.data[:] = 1 + (graph.adjacency.indices + rows) % 3
    return graph


def drawn_weights(nodes, hidden=7, dim=5):
    """Return initial weights, but with biases that are not 0."""
    rng = np.random.default_rng(4)
    weights = sdne.first_weights(nodes, hidden, dim, rng, "cpu")
    with torch.no_grad():
        for bias in weights[1::2]:
            bias.copy_(torch.from_numpy(rng.standard_normal(bias.shape).astype(np.float32)))
    return weights


def textbook(weights, dense, batch, *, alpha, beta):
    """Return the loss computed with dense matrices in double precision."""
    hidden, hidden_bias, code, code_bias, back, back_bias, output, output_bias = weights
    rows = dense[batch]
    codes = torch.tanh(torch.tanh(rows @ hidden + hidden_bias) @ code + code_bias)
    written = torch.tanh(codes @ back + back_bias) @ output.T + output_bias
    second = (((written - rows) * torch.where(rows != 0, beta, 1.0)) ** 2).sum()
    first = sum(
        dense[u, v] * ((codes[i] - codes[j]) ** 2).sum() for i, u in enumerate(batch) for j, v in enumerate(batch)
    )
    scale = (len(dense) - 1) / (len(batch) - 1)
    return (second + alpha * scale * first) / len(batch)


@pytest.mark.parametrize("size", [11, 40])
def test_loss_and_gradients_are_those_of_dense_matrices(graph, size):
    links = sdne.scaled(graph.adjacency, 1.7)
    batch = np.sort(np.random.default_rng(0).permutation(40)[:size])
    weights = drawn_weights(40)
    loss = SDNE(alpha=0.3, beta=4.0, device="cpu")._loss(weights, links, batch)
    loss.backward()
    doubles = [weight.detach().double().requires_grad_() for weight in weights]
    expected = textbook(doubles, torch.from_numpy(links.toarray().astype(float)), batch, alpha=0.3, beta=4.0)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    for weight, double in zip(weights, doubles, strict=True):
        scale = double.grad.abs().max()
        assert scale > 0
        np.testing.assert_allclose(weight.grad / scale, double.grad / scale, atol=1e-5)


def test_batches_estimate_the_distances_of_all_links():
    """Over all batches of two nodes, the mean estimate is the sum over all links."""
    links, weights = sdne.scaled(synthetic(12, seed=2).adjacency, 1.0), drawn_weights(12)
    pairs = [np.array([u, v]) for u in range(12) for v in range(u + 1, 12)]
    with torch.no_grad():
        parts = [SDNE(alpha=alpha, device="cpu") for alpha in (1.0, 0.0)]
        mean = np.mean([parts[0]._loss(weights, links, pair) - parts[1]._loss(weights, links, pair) for pair in pairs])
        codes, _ = sdne.apply_layers(weights, sdne.backend.SparseRows(links, "cpu"))
    squares = ((codes[:, None] - codes[None]) ** 2).sum(2).numpy()
    assert mean == pytest.approx((links.toarray() * squares).sum() / 12, rel=1e-3)


def test_squares_of_all_are_those_of_the_written_rows():
    rng = np.random.default_rng(1)
    hidden, weights, bias = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((6, 3), (20, 3), (1, 20)))
    expected = ((hidden @ weights.T + bias) ** 2).sum()
    assert sdne.squares_of_all(hidden, weights, bias).item() == pytest.approx(expected.item(), rel=1e-12)


def test_vectors_are_what_the_trained_layers_make_of_rows(graph):
    method = SDNE(dim=5, hidden=7, epochs=3, seed=0, device="cpu").fit(graph)
    encoder, scale = method.encoder_, method.scale_
    assert scale == pytest.approx(graph.adjacency.data.mean())
    hidden = np.tanh(graph.adjacency.toarray() / scale @ encoder.hidden + encoder.hidden_bias)
    np.testing.assert_allclose(
        method.embedding_.vectors, np.tanh(hidden @ encoder.code + encoder.code_bias), rtol=1e-4, atol=1e-6
    )


def test_only_proportions_of_weights_count(graph):
    plain = SDNE(dim=4, hidden=8, epochs=2, seed=0, device="cpu").fit_transform(graph)
    larger = graph.adjacency.copy()
    larger.data *= 4
    scaled = SDNE(dim=4, hidden=8, epochs=2, seed=0, device="cpu").fit_transform(AttributedGraph.from_sparse(larger))
    np.testing.assert_array_equal(plain.vectors, scaled.vectors)


def test_training_lowers_the_loss_and_alpha_draws_neighbours_together():
    graph = load("stdlib")
    far, near = (
        SDNE(dim=16, hidden=32, epochs=15, alpha=alpha, seed=0, device="cpu").fit(graph) for alpha in (0.0, 1.0)
    )
    assert far.loss_history_[-1] < 0.7 * far.loss_history_[0]

    def apart(vectors):
        entries = graph.adjacency.tocoo()
        return np.linalg.norm(vectors[entries.row] - vectors[entries.col], axis=1).mean()

    assert apart(near.embedding_.vectors) < 0.7 * apart(far.embedding_.vectors)


def test_a_large_graph_has_few_steps_an_epoch():
    assert sdne.steps_of_epoch(None, 150) == 1
    assert sdne.steps_of_epoch(None, 2_000) == 10
    assert sdne.steps_of_epoch(None, 1_000_003) == 20
    assert sdne.steps_of_epoch(64, 1_000) == 16


def test_a_new_node_with_a_known_nodes_links_has_its_vector(small_graph):
    method = SDNE(dim=4, hidden=8, epochs=3, seed=0, device="cpu").fit(small_graph)
    new = AttributedGraph.from_edges([("zoe", "joy"), ("zoe", "gus")], weights=[4.0, 1.0])  # the same links as leo
    np.testing.assert_allclose(method.transform(new)["zoe"], method.embedding_["leo"], atol=1e-6)


def test_a_new_node_linked_to_new_nodes_alone_has_their_mean(small_graph):
    method = SDNE(dim=4, hidden=8, epochs=1, seed=0, device="cpu").fit(small_graph)
    edges = [("zoe", "ann"), ("yan", "joy"), ("xia", "zoe"), ("xia", "yan")]
    found = method.transform(AttributedGraph.from_edges(edges, [1.0, 1.0, 3.0, 1.0], attributes={"xia": ["tea"]}))
    np.testing.assert_allclose(found["xia"], 0.75 * found["zoe"] + 0.25 * found["yan"], rtol=1e-5)
    assert np.abs(found["zoe"] - found["yan"]).max() > 0.01


def test_new_nodes_without_links_are_told(small_graph):
    method = SDNE(dim=4, hidden=8, epochs=1, seed=0, device="cpu").fit(small_graph)
    bags = {"zoe": ["tea"], "yan": ["tea"]}
    with pytest.raises(GraphError, match=r"'zoe'.*links"):
        method.transform(AttributedGraph.from_edges([("zoe", "yan")], attributes=bags))
    with pytest.warns(UserWarning, match=r"1.*nodes.*'yan'"):
        method.transform(AttributedGraph.from_edges([("zoe", "ann")], attributes=bags, ids=["ann", "zoe", "yan"]))


def test_nodes_without_neighbours_share_a_vector():
    links = sparse.csr_array(np.pad(1 - np.eye(5, dtype=np.float32), (0, 2)))
    vectors = SDNE(dim=3, hidden=4, epochs=2, seed=0, device="cpu").fit_transform(links).vectors
    np.testing.assert_array_equal(vectors[5], vectors[6])
    assert np.abs(vectors[5] - vectors[0]).max() > 0
