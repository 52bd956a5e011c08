import numpy as np
import pytest

from neural_brane import GraphMAE, load
from neural_brane.errors import ParameterError
from neural_brane.linalg.weights import without_self_loops
from neural_brane.methods import convolution, graphmae
from neural_brane.methods import graphmae as attention

torch = pytest.importorskip("torch", reason="graphmae needs torch: pip install 'neural-brane[torch]'")


def same(table):
    return table


def piece_of(graph, weighted=True):
    links = without_self_loops(graph.adjacency)
    if not weighted:
        links.data[:] = 1
    return convolution.Subgraph(links, convolution.shares(graph.attributes), "cpu")


def random_weights(attributes, dim, seed=0):
    rng = np.random.default_rng(seed)
    first = GraphMAE(dim=dim, device="cpu")._first_weights(rng, attributes)
    parts = (torch.from_numpy(rng.standard_normal(tuple(part.shape)).astype(np.float32) * 0.6) for part in first)
    return graphmae.GraphMAEWeights(*(part.requires_grad_() for part in parts))


def their_layer(inputs, width, heads, parts, *, bias):
    """Return torch_geometric's attention layer with given weights."""
    nn = pytest.importorskip("torch_geometric.nn")
    layer = nn.GATConv(inputs, width // heads, heads)
    table, looking, looked_at = parts
    with torch.no_grad():
        layer.lin.weight.copy_(table.T)
        layer.att_dst.copy_(looking.reshape(1, heads, -1))
        layer.att_src.copy_(looked_at.reshape(1, heads, -1))
        layer.bias.copy_(bias[0])
    return layer


def test_the_error_and_its_gradients_are_those_of_a_dense_program(small_graph):
    """The dense program uses torch_geometric's attention and computes all predicted attributes."""
    piece, heads = piece_of(small_graph, weighted=False), 2
    masks = graphmae.draw_masks(piece, 0.5, 0.4, np.random.default_rng(2))
    assert len(masks.tokens) < len(masks.hidden)
    ours, theirs = random_weights(5, 6), random_weights(5, 6)
    edges = attention.edges_of(piece.links, "cpu")
    shown = graphmae.mask(ours, piece.attributes, masks, ours.token)
    states = graphmae.decode(ours, edges, graphmae.encode(ours, edges, shown, heads, same, None), masks, same, None)
    error = graphmae.scaled_cosine_error(ours, piece, states, masks.hidden, 2.0)

    attributes = torch.from_numpy(piece.entries.toarray())
    layers = [
        their_layer(5, 6, heads, (theirs.table, theirs.looking, theirs.looked_at), bias=theirs.bias),
        their_layer(
            6, 6, heads, (theirs.second, theirs.second_looking, theirs.second_looked_at), bias=theirs.second_bias
        ),
        their_layer(6, 5, 1, (theirs.told.T, theirs.told_looking, theirs.told_looked_at), bias=theirs.told_bias),
    ]
    links = torch.from_numpy(np.stack(piece.links.nonzero()).astype(np.int64))
    x = attributes[masks.sources]
    x[masks.tokens] = theirs.token.detach()
    for layer, slope in zip(layers[:2], (theirs.slope, theirs.second_slope), strict=True):
        x = torch.nn.functional.prelu(layer(x, links), slope.reshape(1))
    rows = x @ theirs.bridge
    rows = rows.clone()
    rows[masks.hidden] = 0
    told = layers[2](rows, links)[masks.hidden]
    cosines = torch.nn.functional.cosine_similarity(told, attributes[masks.hidden])
    expected = (1 - cosines).pow(2).mean()
    assert error.item() == pytest.approx(expected.item(), rel=1e-5)

    error.backward()
    expected.backward()
    assert ours.table.grad.abs().max() > 1e-4
    for mine, layer in ((ours.table, layers[0]), (ours.second, layers[1]), (ours.told.T, layers[2])):
        grad = ours.told.grad.T if mine.shape == (6, 5) else mine.grad
        np.testing.assert_allclose(grad, layer.lin.weight.grad.T, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(ours.bridge.grad, theirs.bridge.grad, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(ours.second_looking.grad[0], layers[1].att_dst.grad.ravel(), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(ours.told_looked_at.grad[0], layers[2].att_src.grad.ravel(), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(ours.told_bias.grad[0], layers[2].bias.grad, rtol=1e-3, atol=1e-6)


def test_training_and_embedding_are_one_network(small_graph):
    method = GraphMAE(dim=7, heads=3, epochs=4, seed=0).fit(small_graph)
    weights = graphmae.GraphMAEWeights(*map(torch.from_numpy, method.weights_))
    piece = piece_of(small_graph)
    edges = attention.edges_of(piece.links, "cpu")
    vectors = graphmae.encode(weights, edges, piece.attributes @ weights.table, 3, same, None)
    np.testing.assert_allclose(method.embedding_.vectors, vectors * method.scale_, rtol=1e-4, atol=1e-6)


def test_attention_is_a_share_of_neighbours_in_proportion_to_weights(small_graph):
    piece = piece_of(small_graph)
    edges = attention.edges_of(piece.links, "cpu")
    shares = attention.attend(edges, torch.zeros((len(edges.ends), 1)))[:, 0].numpy()
    looped = convolution.with_loops(piece.links)
    np.testing.assert_allclose(shares, (looped.data / np.repeat(looped.sum(axis=1), np.diff(looped.indptr))), rtol=1e-5)


def test_every_edge_knows_its_other_direction(small_graph):
    edges = attention.edges_of(piece_of(small_graph).links, "cpu")
    np.testing.assert_array_equal(edges.starts[edges.turned], edges.ends)
    np.testing.assert_array_equal(edges.ends[edges.turned], edges.starts)


@pytest.mark.parametrize(("width", "heads", "widths"), [(8, 4, [2, 2, 2, 2]), (7, 3, [2, 2, 3]), (1, 4, [1])])
def test_heads_share_out_any_width(width, heads, widths):
    columns = attention.head_columns(width, heads)
    assert [part.stop - part.start for part in columns] == widths


def test_masks_hide_the_shares_asked_for_of_nodes_with_attributes():
    graph = load("stdlib")
    masks = graphmae.draw_masks(piece_of(graph), 0.5, 0.2, np.random.default_rng(0))
    described = np.flatnonzero(np.diff(graph.attributes.indptr))
    assert len(masks.hidden) == len(described) // 2
    assert set(masks.hidden) <= set(described)
    assert len(masks.hidden) - len(masks.tokens) == int(0.2 * len(masks.hidden))
    moved = np.flatnonzero(masks.sources != np.arange(len(graph)))
    assert set(moved) <= set(masks.hidden) - set(masks.tokens)


def test_training_learns_to_tell_attributes():
    losses = GraphMAE(dim=32, epochs=60, learning_rate=0.01, seed=0).fit(load("stdlib")).loss_history_
    assert np.mean(losses[-5:]) < 0.7 * losses[0]


def test_the_learning_rate_falls_as_a_cosine(small_graph):
    method = GraphMAE(dim=4, epochs=10, learning_rate=0.5, device="cpu")
    descent = method._descent(random_weights(5, 4))
    rates = []
    for done in (0, 0.5, 1):
        method._set_rate(descent, done)
        rates.append(descent.adam.param_groups[0]["lr"])
    assert rates == pytest.approx([0.5, 0.25, 0])


@pytest.mark.parametrize("name", ["hidden_share", "replaced_share", "dropout", "attention_dropout"])
def test_shares_of_all_are_refused(name, small_graph):
    with pytest.raises(ParameterError, match=f"{name}=1.0 makes no sense; give a number .* and below 1"):
        GraphMAE(**{name: 1.0}).fit(small_graph)


@pytest.mark.parametrize(("nodes", "epochs"), [(100, 600), (5_000, 300), (1_000_000, 150)])
def test_a_small_graph_is_seen_more_often_than_a_large_one(nodes, epochs):
    assert GraphMAE()._epochs_for(nodes) == epochs
    assert GraphMAE(epochs=7)._epochs_for(nodes) == 7


def test_the_epochs_of_a_graph_are_told(small_graph):
    assert GraphMAE().parameters_for(small_graph)["epochs"] == 600
    assert GraphMAE(epochs=np.int64(7)).parameters_for(small_graph)["epochs"] == 7
