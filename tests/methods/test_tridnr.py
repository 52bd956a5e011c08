import numpy as np
import pytest

from neural_brane import AttributedGraph, TriDNR, synthetic
from neural_brane.errors import GraphError, ParameterError
from neural_brane.kernels import sgns
from neural_brane.kernels.model import padded

SMALL = {"dim": 8, "walks_per_node": 2, "seed": 3, "learning_rate": 0.1}


@pytest.fixture
def graph():
    return synthetic(60, degree=6, attributes=20, attributes_per_node=5, classes=3, seed=2)


@pytest.mark.parametrize("labelled", [False, True])
def test_it_takes_the_steps_of_the_plain_reference(graph, labelled, monkeypatch, skip_gram):
    """Plain NumPy in double precision gives the same vectors from the same walks, words and negatives."""
    labels = graph.labels if labelled else None
    fast = TriDNR(**SMALL).fit_transform(graph, labels=labels).vectors
    plain = {}

    def train(source, target, tiles, *rates):
        for table in (source, target):
            plain.setdefault(id(table), table.astype(np.float64))
        skip_gram.train(plain[id(source)], plain[id(target)], tiles, *rates)
        source[:], target[:] = plain[id(source)], plain[id(target)]

    monkeypatch.setattr(sgns, "train", train)
    slow = TriDNR(**SMALL).fit_transform(graph, labels=labels).vectors
    np.testing.assert_allclose(fast, slow, rtol=1e-3, atol=1e-5)


def parts_of(graph, monkeypatch, **settings):
    """Return the parts that the method would train, without training them."""
    seen = []
    monkeypatch.setattr(TriDNR, "_train", lambda self, parts, unit, epochs: seen.extend(parts))
    labels = settings.pop("labels", None)
    TriDNR(**SMALL | settings).fit(graph, labels=labels)
    return seen


def test_pairs_are_drawn_as_the_papers_objective_weighs_them(graph, monkeypatch):
    """Documents give the share alpha of all pairs: each word once for its node and once for the node's label."""
    known = np.where(np.arange(60) < 40, graph.labels, "")
    (walks, _), (texts, model) = parts_of(graph, monkeypatch, labels=known, text_weight=0.75)
    assert texts.total == pytest.approx(3 * walks.total * walks.pairs)
    words = graph.attributes.toarray().astype(float)
    names = np.unique(known[known != ""])
    expected = np.vstack([words, *(words[known == name].sum(axis=0) for name in names)])
    drawn = texts.draw(0, 400_000)
    counts = np.zeros_like(expected)
    np.add.at(counts, (drawn[:, 0], drawn[:, 1]), 1)
    np.testing.assert_allclose(counts / 400_000, expected / expected.sum(), atol=8e-4)
    assert model.source.shape == (63, padded(8))


def test_without_labels_two_parties_are_left_and_without_text_one(graph, monkeypatch):
    assert parts_of(graph, monkeypatch)[1][1].source.shape == (60, padded(8))
    assert len(parts_of(graph, monkeypatch, text_weight=0.0)) == 1
    bare = AttributedGraph.from_sparse(graph.adjacency)
    assert len(parts_of(bare, monkeypatch)) == 1


def test_one_table_of_vectors_serves_walks_and_documents(graph, monkeypatch):
    (_, walks), (_, texts) = parts_of(graph, monkeypatch, labels=graph.labels)
    assert walks.source is texts.source
    assert walks.target is not texts.target


def test_a_share_of_one_and_negative_attributes_are_refused(graph):
    with pytest.raises(ParameterError, match=r"text_weight=1.0.*number.*0.*1"):
        TriDNR(text_weight=1.0).fit(graph)
    negative = AttributedGraph.from_sparse(graph.adjacency, -graph.attributes)
    with pytest.raises(GraphError, match="tridnr draws attributes in proportion"):
        TriDNR(**SMALL).fit(negative)
