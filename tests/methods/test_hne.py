from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

from neural_brane import HNE, AttributedGraph, synthetic
from neural_brane.linalg.tables import tables_on
from neural_brane.methods.hne import Adam, LinkSampler, Pairs, slopes, weighed


def weighted_graph():
    graph = synthetic(80, attributes=50, attributes_per_node=5, seed=3)
    adjacency = graph.adjacency.copy()
    rows = np.repeat(np.arange(80), np.diff(adjacency.indptr))
    adjacency.data[:] = 1 + (adjacency.indices + rows) % 3
    return replace(graph, adjacency=adjacency)


def textbook_loss(graph, table, threshold, pairs, l2):
    """Return the objective by its formula, dense and in double precision."""
    vectors = TfidfTransformer().fit_transform(graph.attributes).toarray() @ table
    total = 0.0
    for first, second, sign, weight in zip(*pairs, strict=True):
        total += weight * np.log(1 + np.exp(-sign * (vectors[first] @ vectors[second] - threshold)))
    return total / len(pairs.signs) + l2 * (table**2).sum()


def slopes_of(graph, table, threshold, pairs, l2):
    attributes = weighed(graph.attributes, graph.attributes)
    given = table.astype(np.float32), np.array([threshold], np.float32)
    return slopes(attributes, *given, pairs, l2=l2, tables=tables_on("cpu"))


def test_gradients_are_finite_differences_of_the_objective():
    graph, rng = weighted_graph(), np.random.default_rng(0)
    table, threshold, l2 = rng.standard_normal((50, 3)), 0.4, 0.01
    pairs = LinkSampler(graph.adjacency).draw(60, rng)
    loss, gradient, slope = slopes_of(graph, table, threshold, pairs, l2)
    assert loss == pytest.approx(textbook_loss(graph, table, threshold, pairs, l2), rel=1e-6)
    for at in [(0, 0), (7, 2), (20, 1), (49, 2)]:
        moved = np.zeros_like(table)
        moved[at] = 1e-5
        ends = (textbook_loss(graph, table + sign * moved, threshold, pairs, l2) for sign in (1, -1))
        assert gradient[at] == pytest.approx(np.subtract(*ends) / 2e-5, rel=1e-4, abs=1e-6)
    ends = (textbook_loss(graph, table, threshold + sign * 1e-5, pairs, l2) for sign in (1, -1))
    assert slope[0] == pytest.approx(np.subtract(*ends) / 2e-5, rel=1e-4)


def test_steps_are_those_of_another_adam():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    ours = {"U": rng.standard_normal((4, 3)).astype(np.float32), "t": np.zeros(1, np.float32)}
    theirs = [torch.tensor(weight, dtype=torch.float64, requires_grad=True) for weight in ours.values()]
    adam, other = Adam(ours, 0.01), torch.optim.Adam(theirs, lr=0.01)
    for number in range(1, 6):
        gradients = [rng.standard_normal(weight.shape).astype(np.float32) for weight in ours.values()]
        for weight, gradient in zip(theirs, gradients, strict=True):
            weight.grad = torch.tensor(gradient, dtype=torch.float64)
        other.step()
        adam.step(gradients, number)
    for weight, expected in zip(ours.values(), theirs, strict=True):
        np.testing.assert_allclose(weight, expected.detach().numpy(), rtol=1e-5, atol=1e-7)


def test_a_training_follows_the_objective_step_by_step():
    """With the same draws, a dense objective and PyTorch's gradients in double precision give the same steps."""
    torch = pytest.importorskip("torch")
    graph = weighted_graph()
    model = HNE(dim=4, epochs=5, l2=2.0, batch_size=50, seed=7).fit(graph)
    start = (np.random.default_rng(7).random((50, 4), np.float32) - 0.5) * 2 * np.sqrt(6 / 54)
    table = torch.tensor(start.astype(np.float64), requires_grad=True)
    threshold = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    attributes = torch.from_numpy(TfidfTransformer().fit_transform(graph.attributes).toarray().astype(np.float64))
    adam, links = torch.optim.Adam([table, threshold], lr=0.01), LinkSampler(graph.adjacency)
    losses = []
    for epoch in range(5):
        first, second, signs, weights = map(torch.from_numpy, links.draw(50, np.random.default_rng([7, epoch])))
        vectors = attributes @ table
        apart = signs * ((vectors[first.long()] * vectors[second.long()]).sum(1) - threshold)
        loss = (weights * (-torch.nn.functional.logsigmoid(apart))).mean() + 2.0 / links.count * (table**2).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    np.testing.assert_allclose(model.loss_history_, losses, rtol=1e-5)
    np.testing.assert_allclose(model.embedding_.vectors, (attributes @ table).detach().numpy(), atol=1e-4)
    assert model.threshold_[0] == pytest.approx(threshold.item(), abs=1e-5)


def test_unlinked_pairs_are_not_linked():
    graph = weighted_graph()
    links = LinkSampler(graph.adjacency)
    pairs = links.draw(links.count, np.random.default_rng(0))
    dense = graph.adjacency.toarray()
    assert (dense[pairs.first, pairs.second] > 0).tolist() == (pairs.signs > 0).tolist()
    assert (pairs.first != pairs.second).all()
    assert np.count_nonzero(pairs.signs > 0) == links.count
    few = links.draw(30, np.random.default_rng(0))
    assert np.count_nonzero(few.signs > 0) == 30
    assert len(np.unique(few.first[:30] * 80 + few.second[:30])) == 30


def test_weights_of_links_count():
    links = LinkSampler(weighted_graph().adjacency)
    pairs = links.draw(links.count, np.random.default_rng(0))
    linked = pairs.weights[pairs.signs > 0]
    assert linked.mean() == pytest.approx(1)
    assert len(np.unique(linked.round(6))) == 3


def test_linked_nodes_come_to_have_larger_inner_products():
    graph = synthetic(300, seed=1)
    model = HNE(dim=16, epochs=80, seed=0).fit(graph)
    vectors, linked = model.embedding_.vectors, graph.adjacency.toarray() > 0
    alike = vectors @ vectors.T
    np.fill_diagonal(linked, False)
    apart = ~linked & ~np.eye(300, dtype=bool)
    assert alike[linked].mean() > 5 * alike[apart].mean()
    assert model.loss_history_[-1] < 0.9 * model.loss_history_[0]


def test_new_nodes_are_mapped_by_their_attributes(small_graph):
    model = HNE(dim=4, epochs=5, seed=0).fit(small_graph)
    known = small_graph.ids[0]
    bag = small_graph.attribute_names[small_graph.attributes[[0]].indices].tolist()
    placed = model.transform({"new": bag}).vectors[0]
    np.testing.assert_allclose(placed, model.embedding_[known], rtol=1e-5)


def test_a_graph_in_which_all_are_linked_can_be_learned_from():
    edges = [("a", "b"), ("b", "c"), ("c", "a")]
    graph = AttributedGraph.from_edges(edges, attributes={"a": ["x"], "b": ["y"], "c": ["x", "y"]})
    assert np.isfinite(HNE(dim=2, epochs=3, seed=0).fit_transform(graph).vectors).all()


def test_without_attributes_each_node_is_its_own():
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "d")]
    vectors = HNE(dim=8, epochs=300, seed=0).fit_transform(AttributedGraph.from_edges(edges)).vectors
    alike = vectors @ vectors.T
    assert alike[0, 1] > alike[0, 4]
    assert alike[4, 5] > alike[0, 4]


def test_pairs_are_looked_at_only_where_they_are():
    """Nodes that are in no pair add nothing to the gradient."""
    graph = weighted_graph()
    pairs = Pairs(np.array([0]), np.array([1]), np.array([1.0]), np.array([1.0]))
    _, gradient, _ = slopes_of(graph, np.ones((50, 2)), 0.0, pairs, 0.0)
    held = np.unique(graph.attributes[[0, 1]].indices)
    assert np.flatnonzero(gradient.any(axis=1)).tolist() == held.tolist()
