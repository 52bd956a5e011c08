from __future__ import annotations

import numpy as np
import pytest

from neural_brane.errors import DatasetError, ParameterError
from neural_brane.files.datasets import load
from neural_brane.graph.adjacency import is_symmetric
from neural_brane.graph.synthetic import synthetic


@pytest.fixture(scope="module")
def graph():
    return synthetic(5000, seed=3)


def test_sizes_are_exact(graph):
    assert graph.edges == 50_000
    assert graph.attributes.shape == (5000, 500)
    assert set(np.diff(graph.attributes.indptr)) == {20}
    assert graph.classes.tolist() == [str(label) for label in range(10)]
    assert not graph.adjacency.diagonal().any()
    assert is_symmetric(graph.adjacency)


def test_classes_show_in_links_and_attributes_as_much_as_mixing_says(graph):
    def alike(graph) -> float:
        entries = graph.adjacency.tocoo()
        return (graph.labels[entries.row] == graph.labels[entries.col]).mean()

    # A tenth of the mixed links join nodes of the same class by chance; the deviation is about 0.002.
    assert alike(graph) == pytest.approx(0.8 + 0.2 / 10, abs=0.01)
    assert alike(synthetic(5000, mixing=1.0)) == pytest.approx(0.1, abs=0.01)
    assert alike(synthetic(5000, mixing=0.0)) == 1.0

    def overlap(graph) -> np.ndarray:
        """Return the mean number of attributes that two nodes share, by their classes."""
        indicator = np.equal.outer(graph.classes, graph.labels) / 500.0
        profiles = indicator @ graph.attributes
        return profiles @ profiles.T

    shared = overlap(graph)
    other = shared[~np.eye(10, dtype=bool)].mean()
    assert np.diag(shared).min() > 5 * other
    plain = overlap(synthetic(5000, mixing=1.0))
    assert np.diag(plain).mean() == pytest.approx(plain.mean(), rel=0.05)


def test_a_seed_gives_one_graph(graph):
    assert synthetic(5000, seed=3).digest() == graph.digest()
    assert synthetic(5000, seed=4).digest() != graph.digest()


def test_by_name():
    assert load("synthetic:1500").digest() == synthetic(1500).digest()
    assert load("synthetic:1500").name == "synthetic:1500"
    with pytest.raises(DatasetError, match=r"'synthetic:many'.*nodes"):
        load("synthetic:many")


@pytest.mark.parametrize("nodes", [2, 7, 60])
def test_graphs_too_small_for_their_edges_have_what_fits(nodes):
    graph = synthetic(nodes, classes=1, attributes_per_node=3)
    assert 0 < graph.edges <= nodes * (nodes - 1) // 2
    assert set(np.diff(graph.attributes.indptr)) == {3}


def test_nodes_may_have_no_attributes():
    assert synthetic(100, attributes_per_node=0).attributes.nnz == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 1}, "nodes is 1; give at least 2"),
        ({"nodes": 10, "degree": 0}, "degree is 0"),
        ({"nodes": 10, "classes": 11}, "classes is 11; give 1 to 10"),
        ({"nodes": 10, "attributes": 5}, "attributes_per_node is 20; give 0 to 5"),
        ({"nodes": 10, "mixing": 1.5}, "mixing is 1.5; give a share from 0 to 1"),
    ],
)
def test_impossible_sizes_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        synthetic(**arguments)
