from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from neural_brane import AttributedGraph, NeuralBrane, synthetic
from neural_brane.errors import ParameterError

SEEN = 500


@pytest.fixture(scope="module")
def graph():
    """A graph with three classes, which links and attributes separate."""
    return synthetic(600, classes=3, seed=1)


@pytest.fixture(scope="module")
def model(graph):
    return NeuralBrane(dim=24, epochs=4, seed=0).fit(graph.subgraph(np.arange(600) < SEEN))


@pytest.mark.parametrize("brought", ["attributes and links", "attributes", "links"])
def test_newcomers_are_told_apart_by_what_they_bring(brought, model, graph):
    known = np.arange(600) < SEEN
    attributes = graph.attributes.tolil()
    if brought == "links":
        attributes[SEEN:] = 0
    adjacency = graph.adjacency if "links" in brought else np.zeros((600, 600))
    names = {"ids": graph.ids, "attribute_names": graph.attribute_names}
    given = AttributedGraph.from_sparse(adjacency, attributes.tocsr(), **names)
    embedding = model.transform(given)
    np.testing.assert_array_equal(embedding.vectors[known], model.embedding_.vectors)
    np.testing.assert_allclose(np.linalg.norm(embedding.vectors, axis=1), 4, rtol=1e-5)
    assert set(embedding.made_from[known].tolist()) == {"known"}
    assert set(embedding.made_from[~known].tolist()) == {brought}
    regression = LogisticRegression(max_iter=1000).fit(embedding.vectors[known], graph.labels[known])
    assert regression.score(embedding.vectors[~known], graph.labels[~known]) > 0.9


def test_the_graph_learned_from_has_the_vectors_learned(model, graph):
    seen = graph.subgraph(np.arange(600) < SEEN)
    np.testing.assert_array_equal(model.transform(seen).vectors, model.embedding_.vectors)


def test_a_twin_of_a_known_node_lies_where_it_does(graph):
    """A twin has the same attributes and neighbours."""
    twins = graph.adjacency[:50].tocoo()
    edges = [(f"twin {u}", str(v)) for u, v in zip(twins.row.tolist(), twins.col.tolist(), strict=True)]
    bags = {f"twin {u}": graph.attribute_names[graph.attributes[[u]].indices].tolist() for u in range(50)}
    strings = replace(graph, ids=graph.ids.astype(str))
    model = NeuralBrane(dim=24, epochs=4, seed=0).fit(strings)
    new = model.transform(AttributedGraph.from_edges(edges, attributes=bags))
    cosines = [new[f"twin {u}"] @ model.embedding_[str(u)] / 16 for u in range(50)]
    assert np.mean(cosines) > 0.98


@pytest.mark.parametrize("recipe", ["paper", "default"])
def test_one_part_is_enough(recipe, graph):
    settings = (
        {"spectral_dim": 24} if recipe == "default" else {"recipe": "paper", "batches_per_epoch": 50, "epochs": 2}
    )
    old = graph.subgraph(np.arange(600) < SEEN)
    vectors = NeuralBrane(dim=24, seed=0, **settings).fit(old).transform(graph).vectors
    assert vectors.shape == (600, 24)
    assert vectors[SEEN:].any(axis=1).all()


def test_the_released_programs_vectors_are_of_known_nodes_alone(graph):
    old = graph.subgraph(np.arange(600) < SEEN)
    model = NeuralBrane(dim=8, recipe="released", epochs=1, batches_per_epoch=2, seed=0).fit(old)
    with pytest.raises(ParameterError, match=r"output='released'.*nodes"):
        model.transform(graph)
