import numpy as np
import pytest

from neural_brane import DGI, load
from neural_brane.linalg.weights import without_self_loops
from neural_brane.methods import convolution, dgi

torch = pytest.importorskip("torch", reason="dgi needs torch: pip install 'neural-brane[torch]'")


def tensors(weights):
    return dgi.Infomax(*(torch.from_numpy(part).requires_grad_() for part in weights))


def weights_for(attributes, dim):
    rng = np.random.default_rng(0)
    shapes = ((attributes, dim), (1, dim), (1, 1), (dim, dim))
    return dgi.Infomax(*(rng.standard_normal(shape).astype(np.float32) * 0.7 for shape in shapes))


def without_weights(graph):
    links = without_self_loops(graph.adjacency)
    links.data[:] = 1
    return links


def test_the_loss_and_its_gradients_are_those_of_torch_geometric(small_graph):
    """torch_geometric's loss, with the same weights and shuffled nodes; it adds the two means."""
    nn = pytest.importorskip("torch_geometric.nn")
    links, shuffled = without_weights(small_graph), np.random.default_rng(1).permutation(12)
    weights = weights_for(5, 6)
    attributes = convolution.shares(small_graph.attributes)

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution, self.activation = nn.GCNConv(5, 6), torch.nn.PReLU()

        def forward(self, x, edges):
            return self.activation(self.convolution(x, edges))

    theirs = nn.DeepGraphInfomax(
        6, Encoder(), lambda z, *_: z.mean(0).sigmoid(), lambda x, edges: (x[torch.from_numpy(shuffled)], edges)
    )
    with torch.no_grad():
        theirs.encoder.convolution.lin.weight.copy_(torch.from_numpy(weights.table.T))
        theirs.encoder.convolution.bias.copy_(torch.from_numpy(weights.bias[0]))
        theirs.encoder.activation.weight.copy_(torch.from_numpy(weights.slope[0]))
        theirs.weight.copy_(torch.from_numpy(weights.score))
    edges = torch.from_numpy(np.stack(links.nonzero()).astype(np.int64))
    expected = theirs.loss(*theirs(torch.from_numpy(attributes.toarray()), edges)) / 2
    expected.backward()

    ours = tensors(weights)
    loss = dgi.infomax_loss(ours, convolution.Subgraph(links, attributes, "cpu"), shuffled)
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    np.testing.assert_allclose(ours.table.grad, theirs.encoder.convolution.lin.weight.grad.T, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(ours.score.grad, theirs.weight.grad, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(ours.slope.grad[0], theirs.encoder.activation.weight.grad, rtol=1e-4, atol=1e-7)


def test_vectors_are_the_formula(small_graph):
    method = DGI(dim=6, epochs=5, seed=0).fit(small_graph)
    averages = convolution.normalised(without_self_loops(small_graph.adjacency)).toarray()
    table, bias, slope, _ = method.weights_
    hidden = averages @ convolution.shares(small_graph.attributes).toarray() @ table + bias
    expected = np.where(hidden > 0, hidden, slope * hidden)
    assert np.mean(method.embedding_.vectors**2) == pytest.approx(1, rel=1e-5)
    np.testing.assert_allclose(method.embedding_.vectors, expected * method.scale_, rtol=1e-4, atol=1e-6)


def test_training_ends_with_the_weights_of_the_lowest_loss():
    graph = load("stdlib")
    method = DGI(dim=16, patience=3, learning_rate=0.1, epochs=300, seed=0).fit(graph)
    losses = method.loss_history_
    assert len(losses) < 300
    assert len(losses) - 1 - np.argmin(losses) == 3
    shorter = DGI(dim=16, patience=3, learning_rate=0.1, epochs=int(np.argmin(losses)) + 1, seed=0).fit(graph)
    np.testing.assert_array_equal(method.embedding_.vectors, shorter.embedding_.vectors)


def test_training_tells_nodes_from_shuffled_ones():
    losses = DGI(dim=32, epochs=100, learning_rate=0.01, seed=0).fit(load("stdlib")).loss_history_
    assert losses[0] == pytest.approx(np.log(2), rel=0.05)
    assert min(losses) < 0.5 * losses[0]


def test_an_early_end_is_kept_in_the_checkpoint(tmp_path):
    graph = load("stdlib")
    settings = {"dim": 8, "patience": 2, "learning_rate": 0.1, "seed": 0, "device": "cpu"}
    whole = DGI(**settings).fit(graph)
    for _ in range(2):
        again = DGI(checkpoint=tmp_path / "run", **settings).fit(graph)
        assert again.loss_history_ == whole.loss_history_
        np.testing.assert_array_equal(again.embedding_.vectors, whole.embedding_.vectors)
