"""Links are scored by all that a graph says; suggested links are new and come with what few other nodes share."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from neural_brane import AttributedGraph, Attributes, PropagatedAttributes, load, load_model
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate import hold_out_edges
from neural_brane.insight.links import LinkScorer, SharedFinder
from neural_brane.insight.pairs import edge_pairs, spectral_vectors


@pytest.fixture(scope="module")
def held_out():
    return hold_out_edges(load("stdlib"), seed=1)


@pytest.fixture(scope="module")
def scorer(held_out):
    return LinkScorer(held_out.graph, seed=0)


@pytest.fixture
def model(small_graph):
    return PropagatedAttributes(dim=4, seed=0).fit(small_graph)


def test_held_out_edges_are_told_from_other_pairs_better_than_by_any_feature(held_out, scorer):
    pairs = np.concatenate([held_out.positives, held_out.negatives])
    truth = np.repeat([1, 0], [len(held_out.positives), len(held_out.negatives)])
    alone = [roc_auc_score(truth, feature) for feature in scorer.features(pairs)[:, :7].T]
    assert roc_auc_score(truth, scorer.score(pairs)) > max(0.93, *alone)


def test_what_is_learned_comes_from_a_graph_without_the_edges(held_out):
    seen = []

    def embed(graph, seed, report):
        seen.append(graph)
        return spectral_vectors(graph, seed, report)

    LinkScorer(held_out.graph, embed=embed)
    smaller, whole = (set(map(tuple, edge_pairs(graph).tolist())) for graph in seen)
    assert smaller < whole
    assert len(whole - smaller) == round(0.1 * len(whole))
    assert np.array_equal(seen[0].attributes.toarray(), seen[1].attributes.toarray())


def test_the_same_seed_gives_the_same_scores(held_out, scorer):
    pairs = held_out.positives
    np.testing.assert_array_equal(LinkScorer(held_out.graph, seed=0).score(pairs), scorer.score(pairs))
    assert (LinkScorer(held_out.graph, seed=1).score(pairs) != scorer.score(pairs)).any()


def test_vectors_of_any_kind_can_take_the_place_of_spectral_ones(held_out):
    by_attributes = LinkScorer(
        held_out.graph, embed=lambda graph, seed, _: Attributes(dim=8, seed=seed).fit_transform(graph).vectors
    )
    assert by_attributes.features.vectors.shape == (554, 8)
    assert by_attributes.score(held_out.positives).mean() > by_attributes.score(held_out.negatives).mean()


@pytest.mark.parametrize(
    ("edges", "attributes", "nodes"),
    [
        ([], {node: ["red"] for node in range(3)}, 3),
        ([], {0: ["red"], 1: ["red"], 2: ["blue"]}, 3),
        ([(0, 1), (0, 2), (1, 2)], {}, 3),
        ([(0, 0)], {}, 2),
        ([(0, 1), (1, 2), (2, 3)], {0: ["red"], 3: ["red"]}, 5),
    ],
    ids=["nothing", "attributes", "complete", "self-loop", "path"],
)
def test_a_graph_of_few_edges_is_scored_by_plain_weights(edges, attributes, nodes):
    graph = AttributedGraph.from_edges(np.reshape(edges, (-1, 2)).astype(int), attributes=attributes, ids=range(nodes))
    scorer = LinkScorer(graph)
    pairs = np.argwhere(np.triu(np.ones((nodes, nodes)), 1))
    assert np.isfinite(scorer.score(pairs)).all()
    linked = {*map(tuple, edges), *((v, u) for u, v in edges)}
    rows, _ = scorer.rank(0, 9)
    assert set(rows.tolist()) == {v for v in range(1, nodes) if (0, v) not in linked}


def test_with_few_edges_every_feature_but_those_of_degrees_counts_the_same(small_graph):
    scorer = LinkScorer(small_graph)
    pairs = np.argwhere(np.triu(np.ones((12, 12)), 1))
    assert (scorer.weights[:7] > 0).all()
    assert not scorer.weights[7:11].any()
    cat_and_ann, cat_and_kim = scorer.score(np.array([[2, 0], [2, 10]]))
    assert cat_and_ann > cat_and_kim
    assert len(scorer.score(pairs)) == 66


def test_the_first_suggestions_are_those_of_all_nodes(held_out, scorer):
    links = held_out.graph.adjacency
    for row in range(0, 554, 50):
        free = np.setdiff1d(np.arange(554), [row, *links[[row]].indices])
        scores = scorer.score(np.column_stack([np.full(len(free), row), free]))
        best = free[np.argsort(-scores, kind="stable")[:10]]
        np.testing.assert_array_equal(scorer.rank(row, 10)[0], best)


def test_a_grown_graph_keeps_the_weights(held_out, scorer):
    graph = held_out.graph
    ids = graph.ids.tolist()
    attributes = {node: names_of(graph, row) for row, node in enumerate(ids)} | {
        "my_json": names_of(graph, ids.index("json"))
    }
    edges = [(ids[u], ids[v]) for u, v in edge_pairs(graph)] + [("my_json", "json.decoder")]
    grown = AttributedGraph.from_edges(edges, attributes=attributes, ids=[*ids, "my_json"])
    larger = scorer.extended(grown)
    np.testing.assert_array_equal(larger.weights, scorer.weights)
    first = [ids[row] for row in larger.rank(len(ids), 5)[0]]
    assert {"json", "json.encoder"} <= set(first)


def names_of(graph, row):
    return graph.attribute_names[graph.attributes[[row]].indices].tolist()


def test_neither_the_node_nor_its_neighbours_nor_the_excluded_are_suggested(model):
    found = model.suggest("ann", k=50, exclude=["kim", "leo"])
    assert {one.id for one in found} == {"dan", "eve", "fay", "gus", "hal", "ian", "joy"}
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_scores_of_suggestions_and_pairs_are_the_same(model):
    found = model.suggest("ann", k=5)
    pairs = [("ann", one.id) for one in found]
    np.testing.assert_array_equal(model.score_links(pairs), [one.score for one in found])
    np.testing.assert_allclose(model.score_links(pairs), model.score_links([pair[::-1] for pair in pairs]), rtol=1e-9)
    assert ((model.score_links(pairs) > 0) & (model.score_links(pairs) < 1)).all()


def test_a_saved_model_keeps_what_its_scorer_has_learned(held_out, tmp_path):
    model = PropagatedAttributes(dim=4, seed=0).fit(held_out.graph)
    model.save(tmp_path / "before.brane")
    pairs = held_out.graph.ids[held_out.positives]
    scores = model.score_links(pairs)
    model.save(tmp_path / "after.brane")
    before, after = (load_model(tmp_path / f"{name}.brane") for name in ("before", "after"))
    steps = {}
    for name, again in (("before", before), ("after", after)):
        again = load_model(tmp_path / f"{name}.brane").set_params(
            progress=lambda one, name=name: steps.update({name: one})
        )
        again.suggest("json", k=1)
    assert steps["before"].done == steps["before"].total == 2 * steps["after"].total  # only `before` has to learn
    np.testing.assert_array_equal(after.score_links(pairs), scores)
    np.testing.assert_array_equal(before.score_links(pairs), scores)


def shared(graph, one, other, top=3):
    ids = graph.ids.tolist()
    return SharedFinder(graph).find(ids.index(one), [ids.index(other)], top)[0]


def test_reasons_are_what_few_nodes_share():
    groups = np.repeat(np.arange(20), 20)  # links join only nodes of one group
    rng = np.random.default_rng(0)
    mates = [(one, int(other)) for one in range(400) for other in rng.choice(np.flatnonzero(groups == groups[one]), 4)]
    words = {
        node: [f"group {groups[node]}", "all"] + ["of"] * (rng.random() < 0.08) + ["hub's"] * (node % 3 == 0)
        for node in range(400)
    }
    words[0], words[1] = ([*words[node], "of", "rare"] for node in (0, 1))
    hub = [(400, node) for node in range(0, 400, 2)]
    edges = [pair for pair in mates if pair[0] != pair[1]] + hub + [(0, 2), (1, 2), (1, 400)]
    attributes = {node: sorted(set(names)) for node, names in words.items()}
    graph = AttributedGraph.from_edges(edges, attributes=attributes, ids=range(401))
    found = shared(graph, 0, 1, top=10)
    assert [name for name, _ in found.attributes] == ["group 0", "rare"]  # neither "all" nor "of"
    common = set(graph.adjacency[[0]].indices) & set(graph.adjacency[[1]].indices)
    assert 400 in common
    assert {name for name, _ in found.neighbours} == common - {400}
    assert sum(share for _, share in found.attributes) == pytest.approx(1)


def test_the_shares_of_attributes_are_profiles_times_rarity(small_graph):
    has = (small_graph.attributes.toarray() > 0).astype(float)
    links = (small_graph.adjacency.toarray() > 0) & ~np.eye(12, dtype=bool)
    profiles = has / 2 + links / np.maximum(links.sum(axis=1, keepdims=True), 1) @ has / 2
    holders = has.sum(axis=0)
    expected = profiles[0] * profiles[3] * (np.log(13 / (1 + holders)) + 1) * ((profiles[[0, 3]] >= 0.1).all(axis=0))
    ids = small_graph.ids.tolist()
    found = dict(shared(small_graph, ids[0], ids[3], top=100).attributes)
    known = dict(zip(small_graph.attribute_names.tolist(), (expected / expected.sum()).tolist(), strict=True))
    assert found == pytest.approx({name: share for name, share in known.items() if share > 0}, rel=1e-5)
    assert found


def test_suggestions_are_printed_and_become_json(model):
    one = model.suggest("ann", k=1)[0]
    assert json.loads(json.dumps(one.as_dict()))["id"] == one.id
    texts = [str(found.reasons) for found in model.suggest("kim", k=50)]  # kim knows nobody
    assert "nothing rare in common" in texts


def test_suggestions_do_not_depend_on_the_method(fitted):
    several = [[one.id for one in fitted(name).suggest("ann", k=5)] for name in ("tadw", "deepwalk", "neural-brane")]
    assert several[0] == several[1] == several[2]


def test_what_makes_no_sense_is_refused(model):
    with pytest.raises(EmbeddingError, match="node 'zoe'"):
        model.suggest("zoe")
    with pytest.raises(EmbeddingError, match="zoe"):
        model.score_links([("ann", "zoe")])
    with pytest.raises(ParameterError, match="k=0"):
        model.suggest("ann", k=0)


def test_planted_mates_are_suggested(planted):
    known = planted(6, 60)
    model = PropagatedAttributes(dim=32, seed=0).fit(known.graph)
    hits = [known.groups[one.id] == known.groups[node] for node in range(0, 360, 30) for one in model.suggest(node)]
    assert np.mean(hits) >= 0.8  # by chance it is 1 / 6
