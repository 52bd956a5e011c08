import numpy as np
import pytest

from neural_brane import PTE, AttributedGraph, Line, classify, load
from neural_brane.errors import GraphError


@pytest.fixture(scope="module")
def stdlib():
    return load("stdlib")


def likeness(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit @ unit.T


def test_each_half_of_line_has_length_one(small_graph):
    vectors = Line(dim=7, samples=2000, seed=0).fit_transform(small_graph).vectors
    np.testing.assert_allclose(np.linalg.norm(vectors[:, :3], axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors[:, 3:], axis=1), 1, rtol=1e-5)


def test_the_first_order_is_of_links_and_the_second_of_shared_neighbours():
    """In two separate stars, a leaf is linked to its hub; two leaves are not linked, but share a neighbour."""
    edges = [(hub, 2 + 10 * hub + leaf) for hub in (0, 1) for leaf in range(10)]
    graph = AttributedGraph.from_edges(edges, ids=np.arange(22))
    vectors = Line(dim=16, samples=300_000, learning_rate=0.1, seed=0).fit_transform(graph).vectors
    first, second = likeness(vectors[:, :8]), likeness(vectors[:, 8:])
    own, strange = slice(2, 12), slice(12, 22)
    assert first[0, own].mean() > first[0, strange].mean() + 0.3
    assert second[own, own].mean() > second[own, strange].mean() + 0.3
    assert second[0, own].mean() < second[own, own].mean() - 0.3


def test_line_of_width_one_and_of_self_loops_alone(small_graph):
    assert Line(dim=1, samples=100, seed=0).fit_transform(small_graph).vectors.shape == (12, 1)
    loops = AttributedGraph.from_edges([(0, 0), (1, 1)], ids=[0, 1, 2])
    with pytest.warns(UserWarning, match=r"3.*6 columns"):
        vectors = Line(dim=6, samples=100, seed=0).fit_transform(loops).vectors
    assert not vectors[:, :3].any()
    assert vectors[:, 3:].any(axis=1).all()


def test_pte_reads_attributes_and_does_without(small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    with_attributes, without = (
        PTE(dim=8, samples=50_000, learning_rate=0.1, seed=0).fit_transform(graph).vectors
        for graph in (small_graph, bare)
    )
    kim, leo, ann = (small_graph.ids.tolist().index(name) for name in ("kim", "leo", "ann"))
    near = likeness(with_attributes)[kim]
    assert near[leo] > near[ann] + 0.2  # kim has no link, but shares leo's attribute beer
    assert np.abs(without[kim]).max() <= 0.5 / 8


def test_pte_refuses_attributes_it_cannot_draw(small_graph):
    negative = small_graph.attributes.copy()
    negative.data[0] = -1
    with pytest.raises(GraphError, match=r"attribute.*-1\.0.*pte"):
        PTE(dim=4, samples=10).fit(AttributedGraph.from_sparse(small_graph.adjacency, negative))


@pytest.mark.parametrize("method", [Line, PTE])
def test_progress_counts_edges_to_the_end(small_graph, method):
    seen = []
    method(dim=4, samples=700_000, seed=0, progress=seen.append).fit(small_graph)
    assert (seen[-1].done, seen[-1].total, seen[-1].unit) == (1_400_000, 1_400_000, "edges")


@pytest.mark.parametrize(("method", "expected"), [(Line, 0.6239), (PTE, 0.6641)])
def test_golden_value(stdlib, method, expected):
    vectors = method(dim=32, samples=1_000_000, seed=0).fit_transform(stdlib).vectors
    assert classify(vectors, stdlib.labels, train=[0.7], as_they_are=True).at(0.7).macro.mean == pytest.approx(
        expected, abs=0.01
    )
