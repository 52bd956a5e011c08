"""Shares sum to the cosine, equal those of a dense reference, and name the attributes that were planted."""

import json

import numpy as np
import pytest

from neural_brane import TADW, Attributes, NeuralBrane, PropagatedAttributes, SmoothedAttributes
from neural_brane.errors import EmbeddingError, NotFittedError, ParameterError
from neural_brane.linalg.weights import average_scales, inverse_frequency, link_scales, weigh

SPECTRAL = [
    Attributes(dim=4, seed=0),
    SmoothedAttributes(dim=4, seed=0),
    PropagatedAttributes(dim=4, seed=0),
    PropagatedAttributes(dim=4, weights=(2, 0, 0.5, 1), seed=0),
]
LEARNED = [
    {"recipe": "default"},
    {"recipe": "paper"},
    {"recipe": "released", "output": "hidden"},
    {"recipe": "released"},
    {"pooling": "mean"},
    {"recipe": "paper", "pooling": "sum", "learning_rate": 0.01},
]


def brane(**settings):
    return NeuralBrane(**{"dim": 8, "seed": 0, "epochs": 2, "batches_per_epoch": 5, **settings})


def dense_matrices(graph, *, link_weight=0.0):
    """X and Â as dense arrays."""
    attributes = weigh(graph.attributes, inverse_frequency(graph.attributes)).toarray()
    if link_weight:
        rows, columns = link_scales(graph.adjacency)
        attributes = np.hstack([attributes, link_weight * rows[:, None] * graph.adjacency.toarray() * columns])
    scale, diagonal = average_scales(graph.adjacency)
    return attributes, scale[:, None] * graph.adjacency.toarray() + np.diag(diagonal)


def dense_shares(graph, weights, vectors, values, node, target, **options):
    """Return what each column of X adds in all, through each first neighbour, and on paths that stay at the node."""
    columns, averages = dense_matrices(graph, **options)
    shares = np.divide(vectors, values, out=np.zeros_like(vectors), where=values > 0)
    added, through = np.zeros(columns.shape[1]), np.zeros(len(graph))
    own = np.zeros(columns.shape[1])

    def walk(at, hops, chance, first):
        """Yield all paths from a node: (their end, their weight, the first node entered that is not the start)."""
        if hops == 0:
            yield at, chance, first
            return
        for step in np.flatnonzero(averages[at]):
            entered = first if first is not None or step == node else step
            yield from walk(step, hops - 1, chance * averages[at, step], entered)

    for hop, weight in enumerate(weights):
        directions = weight * columns.T @ np.linalg.matrix_power(averages.T, hop) @ shares
        projected = directions @ target
        for end, chance, first in walk(node, hop, weight, None):
            terms = chance * columns[end] * projected
            added += terms
            if first is None:
                own += terms
            else:
                through[first] += terms.sum()
    return added, through, own


@pytest.mark.parametrize("method", SPECTRAL, ids=lambda method: str(method))
@pytest.mark.parametrize("node", ["ann", "dan", "kim"])
def test_spectral_shares_are_those_of_a_dense_reference(method, node, small_graph):
    model = method.fit(small_graph)
    vectors, row = model.embedding_.vectors.astype(float), small_graph.ids.tolist().index(node)
    added, through, _ = dense_shares(small_graph, method._weights(), vectors, model.values_, row, vectors[row])
    found = model.explain(node, top=100)
    squared = vectors[row] @ vectors[row]
    by_name = dict(found.attributes)
    for name, share in zip(small_graph.attribute_names.tolist(), added / squared, strict=True):
        assert by_name.get(name, 0) == pytest.approx(share, abs=1e-5)
    by_id = dict(found.neighbours)
    for name, share in zip(small_graph.ids.tolist(), through / squared, strict=True):
        assert by_id.get(name, 0) == pytest.approx(share, abs=1e-5)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert abs(found.shares["rest"]) < 1e-4


def test_links_count_to_the_neighbour_they_lead_to(small_graph):
    model = brane(spectral_dim=8).fit(small_graph)
    reasons, row = model._fitted.reasons, 2
    vectors, width = model.embedding_.vectors.astype(float), len(small_graph.attribute_names)
    directions = vectors * reasons.divisors[:, :1] / reasons.scale
    target = vectors[row] * reasons.scale / reasons.divisors[row, 0]
    added, through, own = dense_shares(small_graph, (1, 1, 1), directions, model.values_, row, target, link_weight=0.3)
    found, squared = model.explain("cat", top=100), vectors[row] @ vectors[row]
    by_name, by_id = dict(found.attributes), dict(found.neighbours)
    for name, share in zip(small_graph.attribute_names.tolist(), added[:width] / squared, strict=True):
        assert by_name.get(name, 0) == pytest.approx(share, abs=1e-5)
    for name, share in zip(small_graph.ids.tolist(), (through + own[width:]) / squared, strict=True):
        assert by_id.get(name, 0) == pytest.approx(share, abs=1e-5)


def test_without_attributes_neighbours_explain_everything(small_graph):
    bare = type(small_graph).from_sparse(small_graph.adjacency, ids=small_graph.ids)
    found = PropagatedAttributes(dim=4, seed=0).fit(bare).explain("dan")
    assert found.attributes == []
    assert {name for name, _ in found.neighbours} <= {"cat", "eve", "dan"}
    assert sum(found.shares.values()) == pytest.approx(1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", LEARNED, ids=str)
@pytest.mark.parametrize("pair", [("ann",), ("ian",), ("ann", "cat"), ("ann", "gus")])
def test_shares_sum_to_one_or_to_the_cosine(settings, pair, small_graph):
    model = brane(**settings).fit(small_graph)
    found = model.explain(*pair, top=100)
    one, other = (model.embedding_[node].astype(float) for node in (pair * 2)[:2])
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert found.similarity == pytest.approx(cosine)
    assert sum(found.shares.values()) == pytest.approx(cosine)
    if len(pair) == 1:
        parts = found.shares
        assert sum(share for _, share in found.attributes) == pytest.approx(
            sum(share for name, share in parts.items() if "attributes" in name)
        )
        assert sum(share for _, share in found.neighbours) == pytest.approx(
            sum(parts.get(name, 0) for name in
                ("own links", "neighbours' attributes", "neighbours' links", "learned neighbours"))
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_a_coordinate_is_its_winners(small_graph):
    model = brane(recipe="paper", centre=False).fit(small_graph)
    vector, row = model.embedding_["cat"].astype(float), 2
    table, d1 = model.model_.attribute_table, model.kernel_settings_.attribute_dim
    bag = small_graph.attributes[[row]].indices
    expected = dict.fromkeys(small_graph.attribute_names[bag].tolist(), 0.0)
    for column in range(d1):
        winner = bag[np.argmax(table[bag, column])]
        expected[small_graph.attribute_names[winner]] += vector[column] ** 2 / (vector @ vector)
    assert dict(model.explain("cat").attributes) == pytest.approx(expected)


@pytest.fixture(scope="module")
def known(planted):
    return planted(6, 60)


@pytest.fixture(scope="module")
def model(known):
    return NeuralBrane(dim=32, seed=0).fit(known.graph)


def test_planted_attributes_come_first(known, model):
    found = [
        np.mean([name.startswith(f"group{known.groups[node]}-") for name, _ in model.explain(node, top=5).attributes])
        for node in range(0, len(known.graph), 5)
    ]
    assert np.mean(found) >= 0.9


def test_planted_attributes_that_two_nodes_share_are_named(known, model):
    rng, found = np.random.default_rng(0), []
    for _ in range(60):
        one, other = rng.choice(known.members(rng.integers(6)), 2, replace=False).tolist()
        shared = known.carried[one] & known.carried[other]
        listed = [name for name, _ in model.explain(one, other, top=5).attributes]
        found.append(len(shared & set(listed)) / len(shared))
    assert np.mean(found) >= 0.9


def test_an_explanation_is_shown_safely_and_goes_into_json(small_graph):
    bag = {"ann": ["\x1b[2J", "<b>"], "bob": ["<b>"], "cat": ["tea"]}
    graph = type(small_graph).from_edges([("ann", "bob"), ("bob", "cat")], attributes=bag)
    found = Attributes(dim=2, seed=0).fit(graph).explain("ann")
    assert "\x1b" not in repr(found)
    assert "\\x1b[2J" in repr(found)
    assert "<b>" not in found._repr_html_()
    assert json.loads(json.dumps(found.as_dict()))["nodes"] == ["ann"]


def test_what_cannot_be_explained_is_refused(small_graph):
    with pytest.raises(NotFittedError, match=r"Attributes.*fit"):
        Attributes().explain("ann")
    model = Attributes(dim=2, seed=0).fit(small_graph)
    with pytest.raises(EmbeddingError, match="node 'zoe'"):
        model.explain("zoe")
    with pytest.raises(EmbeddingError, match="node 'zoe'"):
        model.explain("ann", "zoe")
    with pytest.raises(ParameterError, match="top=0"):
        model.explain("ann", top=0)
    other = TADW(dim=2, seed=0).fit(small_graph)
    with pytest.raises(ParameterError, match=r"tadw.*vectors"):
        other.explain("ann")
