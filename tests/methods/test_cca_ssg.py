import numpy as np
import pytest

from neural_brane import CCASSG, load
from neural_brane.errors import ParameterError
from neural_brane.linalg.weights import without_self_loops
from neural_brane.methods import cca_ssg, convolution

torch = pytest.importorskip("torch", reason="cca-ssg needs torch: pip install 'neural-brane[torch]'")


def dense_loss(first, second, decorrelation):
    """Return the loss from NumPy's correlations, scaled by (n − 1) / n as in the authors' program."""
    nodes, width = first.shape
    correlations = np.corrcoef(first.T, second.T) * (nodes - 1) / nodes
    same = np.trace(correlations[:width, width:])
    others = (correlations[part, part] for part in (slice(width), slice(width, None)))
    return -same + decorrelation * sum(np.sum((block - np.eye(width)) ** 2) for block in others)


def piece_of(graph):
    links = without_self_loops(graph.adjacency)
    return convolution.Subgraph(links, convolution.shares(graph.attributes), "cpu")


def tensors(weights, grad=False):
    return cca_ssg.Correlation(*(torch.from_numpy(part).requires_grad_(grad) for part in weights))


def test_the_loss_is_the_formula():
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 30, 4)) * [1, 10, 0.1, 3] + 5
    loss = cca_ssg.correlation_loss(torch.from_numpy(first), torch.from_numpy(second), 0.3)
    assert loss.item() == pytest.approx(dense_loss(first, second, 0.3), rel=1e-8)


def test_views_that_agree_and_do_not_repeat_are_the_minimum():
    table = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 5)))[0]
    table = np.linalg.qr(table - table.mean(axis=0))[0] * 7
    loss = cca_ssg.correlation_loss(torch.from_numpy(table), torch.from_numpy(table), 0.0)
    assert loss.item() == pytest.approx(-5 * 49 / 50, rel=1e-8)
    repeated = torch.from_numpy(np.repeat(table[:, :1], 5, axis=1))
    assert cca_ssg.correlation_loss(repeated, repeated, 1.0) > 30


@pytest.mark.parametrize("layers", [1, 2])
def test_gradients_are_finite_differences_of_the_dense_network(layers, small_graph):
    rng = np.random.default_rng(1)
    piece = piece_of(small_graph)
    shapes = ((5, 3), (1, 3), (3 if layers == 2 else 0, 3), (1, 3))
    arrays = cca_ssg.Correlation(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes))
    views = [cca_ssg.draw_view(piece, 0.4, 0.2, np.random.default_rng(at)) for at in range(2)]
    weights = tensors(arrays, grad=True)
    loss = cca_ssg.correlation_loss(*(cca_ssg.forward(weights, piece, view) for view in views), 0.1)
    loss.backward()
    attributes = piece.entries.toarray().astype(float)

    def dense(table):
        vectors = []
        for view in views:
            averages = np.zeros((12, 12))
            rows = np.repeat(np.arange(12), np.diff(view.averages.rows.indptr.numpy()))
            averages[rows, view.averages.rows.indices.numpy()] = view.averages.rows.values.numpy()
            hidden = averages @ (attributes * view.kept.numpy()[:, 0]) @ table + arrays.bias
            last = averages @ np.maximum(hidden, 0) @ arrays.second + arrays.second_bias if layers == 2 else hidden
            vectors.append(last)
        return dense_loss(*vectors, 0.1)

    assert loss.item() == pytest.approx(dense(arrays.table.astype(float)), rel=1e-4)
    step = 1e-5
    for place in np.ndindex(5, 3):
        moved = np.zeros((5, 3))
        moved[place] = step
        slope = (dense(arrays.table + moved) - dense(arrays.table - moved)) / (2 * step)
        assert weights.table.grad[place].item() == pytest.approx(slope, rel=2e-2, abs=2e-3)


@pytest.mark.parametrize("layers", [1, 2])
def test_vectors_are_the_formula(layers, small_graph):
    method = CCASSG(dim=6, layers=layers, epochs=5, seed=0).fit(small_graph)
    piece = piece_of(small_graph)
    averages = convolution.normalised(piece.links).toarray()
    table, bias, second, second_bias = method.weights_
    expected = averages @ piece.entries.toarray() @ table + bias
    if layers == 2:
        expected = averages @ np.maximum(expected, 0) @ second + second_bias
    np.testing.assert_allclose(method.embedding_.vectors, expected * method.scale_, rtol=1e-4, atol=1e-5)


def test_views_lack_the_shares_asked_for_in_both_directions():
    graph = load("stdlib")
    piece = piece_of(graph)
    view = cca_ssg.draw_view(piece, 0.4, 0.3, np.random.default_rng(0))
    rows = view.averages.rows
    links = len(rows.indices) - len(graph)  # without the entries of nodes with themselves
    assert links / piece.links.nnz == pytest.approx(0.6, abs=0.03)
    assert view.kept.mean().item() == pytest.approx(0.7, abs=0.05)
    starts = np.repeat(np.arange(len(graph)), np.diff(rows.indptr.numpy()))
    pairs = set(zip(starts.tolist(), rows.indices.tolist(), strict=True))
    assert all((end, start) in pairs for start, end in pairs)
    whole = cca_ssg.draw_view(piece, 0.0, 0.0, np.random.default_rng(0))
    np.testing.assert_array_equal(whole.averages.rows.values, piece.averages.rows.values)


def test_training_draws_views_together_and_columns_apart():
    repeated = []
    for decorrelation in (0.0, 0.05):
        method = CCASSG(dim=16, epochs=40, learning_rate=0.01, decorrelation=decorrelation, seed=0).fit(load("stdlib"))
        assert method.loss_history_[-1] < method.loss_history_[0] - 1
        repeated.append(np.abs(np.corrcoef(method.embedding_.vectors.T) - np.eye(16)).mean())
    assert repeated[1] < 0.5 * repeated[0]


@pytest.mark.parametrize("name", ["edge_dropout", "attribute_dropout"])
def test_views_of_nothing_are_refused(name, small_graph):
    with pytest.raises(ParameterError, match=f"{name}=1.0 makes no sense; give a number from 0 and below 1"):
        CCASSG(**{name: 1.0}).fit(small_graph)
