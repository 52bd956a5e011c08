"""Clusters are found without labels; their number is chosen by modularity; planted attributes name them."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from neural_brane import AttributedGraph, Embedding
from neural_brane.errors import EmbeddingError, GraphError, ParameterError
from neural_brane.insight.groups import join_nearest, modularity, name_groups, split_large
from neural_brane.search.exact import unit_rows


def blobs(k, size=40, seed=0):
    """Vectors around k corners, and which one each belongs to."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(k), size)
    return (np.eye(12)[groups] + rng.normal(0, 0.1, (k * size, 12))).astype(np.float32), groups


@pytest.mark.parametrize("k", [2, 4, 10])
def test_the_rule_finds_as_many_as_there_are(k):
    vectors, groups = blobs(k)
    found = Embedding(vectors, np.arange(len(groups))).clusters()
    assert (found.k, found.rule) == (k, f"{k} clusters: more would hardly make neighbours agree more")
    assert len({*zip(groups.tolist(), found.assignments.tolist(), strict=True)}) == k


def test_lengths_are_ignored_and_the_largest_cluster_comes_first():
    vectors = np.array([[1, 0], [50, 0.1], [3, 0], [0, 2], [0.1, 40]])
    found = Embedding(vectors, list("abcde")).clusters(2)
    assert found.assignments.tolist() == [0, 0, 0, 1, 1]
    assert [one.size for one in found] == [3, 2]
    assert set(found[1].centre) == {"d", "e"}


def test_a_seed_gives_the_same_clusters():
    vectors, groups = blobs(3)
    embedding = Embedding(vectors, np.arange(len(groups)))
    np.testing.assert_array_equal(embedding.clusters(seed=3).assignments, embedding.clusters(seed=3).assignments)


def test_clusters_are_named_by_what_is_over_represented():
    vectors, groups = blobs(3)
    rng = np.random.default_rng(0)
    bags = {at: [f"theme-{one}", "everywhere", f"noise-{rng.integers(30)}"] for at, one in enumerate(groups.tolist())}
    graph = AttributedGraph.from_edges([(0, 1)], attributes=bags, ids=np.arange(len(groups)))
    found = Embedding(vectors, np.arange(len(groups))).clusters(graph=graph)
    names = [[name.attribute for name in one.attributes] for one in found]
    assert sorted(map(tuple, names)) == [("theme-0",), ("theme-1",), ("theme-2",)]
    assert found[0].attributes[0].lift == pytest.approx(3)
    assert found[0].attributes[0].share == 1
    assert "theme-" in repr(found)
    assert found.as_dict()["clusters"][0]["attributes"][0]["lift"] == pytest.approx(3)


def test_random_clusters_get_no_name():
    rng = np.random.default_rng(0)
    bags = {node: [f"a{one}" for one in rng.choice(200, 10, replace=False)] for node in range(300)}
    graph = AttributedGraph.from_edges([(0, 1)], attributes=bags, ids=np.arange(300))
    clusters = rng.integers(5, size=300)
    assert name_groups(graph.attributes, graph.attribute_names, clusters, 5, 5) == [[]] * 5


def test_modularity_is_that_of_networkx():
    import networkx as nx

    vectors, groups = blobs(4)
    graph, clusters = join_nearest(vectors), (groups + (np.arange(len(groups)) % 7 == 0)) % 4
    communities = [set(np.flatnonzero(clusters == at).tolist()) for at in range(4)]
    expected = nx.community.modularity(nx.from_scipy_sparse_array(graph), communities)
    assert modularity(graph, clusters) == pytest.approx(expected)


def test_what_cannot_be_divided_is_refused():
    embedding = Embedding(np.eye(3), [1, 2, 3])
    for k in (0, 4, 2.5, True):
        with pytest.raises(ParameterError, match=f"k={k}"):
            embedding.clusters(k)
    with pytest.raises(ParameterError, match="seed=-1"):
        embedding.clusters(2, seed=-1)
    with pytest.raises(EmbeddingError, match=r"vectors.*3"):
        Embedding(np.ones((5, 2)), range(5)).clusters(3)
    with pytest.raises(EmbeddingError, match="NaN"):
        Embedding([[np.nan, 1], [1, 1]], [1, 2]).clusters(1)
    other = AttributedGraph.from_edges([("x", "y")])
    with pytest.raises(GraphError, match="3 vectors"):
        embedding.clusters(2, graph=other)


def test_few_vectors_make_few_clusters():
    assert Embedding(np.ones((4, 2)), range(4)).clusters().k == 1
    assert Embedding(np.eye(2), [1, 2]).clusters().k == 2


def test_a_large_cluster_is_split_only_if_its_parts_are_stable():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.05, (600, 12))
    parts = np.eye(12)[0] + 0.5 * np.eye(12)[1 + rng.integers(5, size=600)]
    for rows, expected in ((parts + noise, 5), (np.eye(12)[0] + noise, 1)):
        unit = unit_rows(rows)
        centres, (note,) = split_large(unit, unit.mean(axis=0)[None], seed=0)
        assert len(centres) == expected
        found = "was split into 5" if expected == 5 else "stays whole, as no division of it is stable"
        assert note == f"one with 100% of the nodes {found}"
    few, notes = split_large(unit[:50], unit[:50].mean(axis=0)[None], seed=0)  # too few to tell
    assert (len(few), notes) == (1, [])


def test_clusters_do_not_depend_on_threads_and_many_nodes_join_the_centres_of_a_sample(monkeypatch):
    vectors, groups = blobs(4, size=100)
    embedding = Embedding(vectors, np.arange(400))
    with threadpool_limits(1):
        one = embedding.clusters()
    with threadpool_limits(2):
        np.testing.assert_array_equal(embedding.clusters().assignments, one.assignments)
    monkeypatch.setattr("neural_brane.insight.groups.ROWS", 80)
    monkeypatch.setattr("neural_brane.insight.groups.BLOCK_ROWS", 64)
    sampled = embedding.clusters()
    assert len({*zip(groups.tolist(), sampled.assignments.tolist(), strict=True)}) == sampled.k == 4


def test_a_column_names_a_group_once_and_an_attribute_three_groups_at_most():
    groups = np.repeat(np.arange(8), 50)
    bags = {
        at: [f"section=s{group}{at % 2}", f"tag{group}", "half" if group < 4 else "other"]
        for at, group in enumerate(groups.tolist())
    }
    graph = AttributedGraph.from_edges([(0, 1)], attributes=bags, ids=np.arange(400))
    named = name_groups(graph.attributes, graph.attribute_names, groups, 8, 5)
    names = [[one.attribute for one in group] for group in named]
    assert [group[0] for group in names] == [f"tag{group}" for group in range(8)]
    assert all(sum(name.startswith("section=") for name in group) == 1 for group in names)
    assert ["half" in group for group in names] == [True, True, True, *[False] * 5]
