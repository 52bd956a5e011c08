import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.explore.opening import lay_out, open_view
from neural_brane.explore.view import Nodes, Run, View
from neural_brane.graph import AttributedGraph


def row_of(view, node):
    return view.nodes.ids.tolist().index(node)


def lists_of(view, answer, key):
    """Return the names in the list of each row."""
    return [view.nodes.ids[part].tolist() for part in np.split(answer[key], answer["start"][1:-1])]


def test_rows_follow_the_vectors_and_the_graph_is_matched_by_id(small_view, small_graph):
    assert small_view.nodes.ids.tolist() == small_graph.ids[::-1].tolist()
    about = small_view.about()
    assert (about["nodes"], about["edges"], about["attributes"]) == (12, small_graph.edges, 5)
    names = small_view.names()
    assert names["ids"] == small_view.nodes.ids.tolist()
    assert names["holders"][names["attributes"].index("tea")] == 5


def test_neighbours_come_by_weight_and_attributes_by_rarity(small_view):
    rows = np.array([row_of(small_view, node) for node in ("cat", "kim", "ann")])
    links = small_view.nodes.links_of(rows)
    assert lists_of(small_view, links, "rows")[:2] == [["ann", "dan", "bob"], []]
    assert links["weights"][:3].tolist() == [2.0, 1.0, 0.5]
    had = small_view.nodes.attributes_of(rows)
    own = np.split(had["columns"], had["start"][1:-1])[0]
    assert [small_view.nodes.attribute_names[int(column)] for column in own] == ["opera", "chess", "tea"]
    assert had["amounts"][:3].tolist() == [1.0, 1.0, 1.0]


def test_holders_are_the_nodes_with_an_attribute(small_view):
    beer = small_view.names()["attributes"].index("beer")
    found = small_view.nodes.holders_of(beer)
    amounts = dict(zip(small_view.nodes.ids[found["rows"]].tolist(), found["amounts"].tolist(), strict=True))
    assert amounts["joy"] == 2
    with pytest.raises(ParameterError, match="attribute"):
        small_view.nodes.holders_of(5)


def test_nearest_nodes_and_cosines_are_the_library_s_own(small_view, small_file):
    embedding = Embedding.load(small_file)
    found = small_view.runs[0].nearest(np.arange(12), 10)
    for row, node in enumerate(embedding.ids.tolist()):
        span = slice(*found["start"][row : row + 2])
        others = embedding.ids[found["rows"][span]].tolist()
        assert list(zip(others, found["cosines"][span].tolist(), strict=True)) == embedding.nearest(node, k=10)
    pair = small_view.alike(row_of(small_view, "ann"), row_of(small_view, "cat"))
    assert pair["cosines"] == [pytest.approx(dict(embedding.nearest("ann", k=11))["cat"], abs=1e-6)]


def test_a_count_tells_attributes_and_edges_of_some_nodes(small_view, small_graph):
    chosen = ["ann", "bob", "cat", "dan", "gus"]
    found = small_view.nodes.count(np.array([row_of(small_view, node) for node in chosen]))
    assert found["edges"] == small_graph.subgraph(chosen).edges
    names = small_view.names()["attributes"]
    counted = {names[at]: number for at, number in zip(found["columns"], found["found"].tolist(), strict=True)}
    assert (counted["opera"], counted["chess"]) == (3, 3)
    assert small_view.nodes.count(np.array([], dtype=np.int64))["edges"] == 0


def test_colours_by_label_degree_cluster_and_length(small_view):
    label = small_view.column("label")
    assert (label["names"], label["counts"], label["none"]) == (["town", "club"], [6, 5], 1)
    assert label["values"][row_of(small_view, "kim")] == 2
    assert small_view.column("degree")["values"][row_of(small_view, "ann")] == 3
    cluster = small_view.column("cluster")
    assert len(cluster["names"]) == cluster["values"].max() + 1
    assert cluster["counts"] == np.bincount(cluster["values"]).tolist()
    lengths = np.linalg.norm(small_view.runs[0].vectors, axis=1)
    np.testing.assert_allclose(small_view.column("length")["values"], lengths)
    with pytest.raises(ParameterError, match="nonsense"):
        small_view.column("nonsense")


def test_clusters_are_the_library_s_and_named_by_attributes(small_graph, tmp_path):
    ids = [f"{kind} {at}" for at in range(40) for kind in ("tea", "beer")]
    vectors = np.array([[1, at / 99] if at % 2 else [-1, at / 99] for at in range(80)])
    graph = small_graph.from_edges([], ids=ids, attributes={node: [node.split()[0]] for node in ids})
    Embedding(vectors, ids).save(tmp_path / "two.npz")
    column = open_view([tmp_path / "two.npz"], graph).column("cluster")
    theirs = Embedding(vectors, ids).clusters(graph=graph)
    np.testing.assert_array_equal(column["values"], theirs.assignments)
    assert column["names"] == [f"{at + 1}: {one.attributes[0].attribute}" for at, one in enumerate(theirs)]


@pytest.mark.parametrize("rows", [[12], [-1]])
@pytest.mark.parametrize("question", ["links", "attributes", "nearest", "count"])
def test_rows_that_are_not_there_are_refused(small_view, question, rows):
    with pytest.raises(ParameterError, match="row"):
        small_view.answer(question, {"run": 0}, np.array(rows))


def test_runs_of_the_same_nodes_come_into_one_order(small_file, small_graph, tmp_path):
    other = Embedding(np.arange(24.0).reshape(12, 2), small_graph.ids)
    other.save(tmp_path / "other.tsv")
    view = open_view([small_file, tmp_path / "other.tsv"], small_graph)
    np.testing.assert_array_equal(view.runs[1].vectors, other.vectors[::-1])
    assert [run["name"] for run in view.about()["runs"]] == ["small", "other"]
    nearest = view.nodes.ids[view.runs[1].nearest(np.array([3]), 10)["rows"]].tolist()
    assert nearest == [node for node, _ in other.nearest(view.nodes.ids[3].item(), k=10)]


def test_files_of_other_nodes_are_refused(small_file, small_graph, tmp_path):
    Embedding(np.ones((11, 2)), small_graph.ids[1:]).save(tmp_path / "fewer.npz")
    with pytest.raises(EmbeddingError, match=r"nodes.*1.*'ann'"):
        open_view([small_file, tmp_path / "fewer.npz"])
    Embedding(np.ones((2, 2)), ["ann", "zoe"]).save(tmp_path / "strange.npz")
    with pytest.raises(EmbeddingError, match=r"1.*2 nodes.*'zoe'"):
        open_view([tmp_path / "strange.npz"], small_graph)


def test_vectors_that_are_not_finite_or_none_at_all_are_refused(tmp_path):
    table = np.ones((3, 2), np.float32)
    table[1, 1] = np.nan
    np.savez(tmp_path / "nan.npz", vectors=table, ids=np.arange(3))
    with pytest.raises(EmbeddingError, match="vector 2 holds NaN"):
        open_view([tmp_path / "nan.npz"])
    np.savez(tmp_path / "none.npz", vectors=table[:0], ids=np.arange(0))
    with pytest.raises(EmbeddingError, match="has no vectors"):
        open_view([tmp_path / "none.npz"])


def test_vectors_stay_in_their_file_also_when_compressed_ones_cannot(small_file, small_graph, tmp_path):
    assert isinstance(open_view([small_file]).runs[0].vectors.base, np.memmap) or isinstance(
        open_view([small_file]).runs[0].vectors, np.memmap
    )
    found = Embedding.load(small_file)
    np.savez_compressed(tmp_path / "packed.npz", vectors=found.vectors, ids=found.ids)
    np.testing.assert_array_equal(open_view([tmp_path / "packed.npz"]).runs[0].vectors, found.vectors)


def test_without_a_graph_there_are_still_vectors_to_look_at(small_file):
    view = open_view([small_file])
    lay_out(view, "pca")
    assert not view.about()["has_graph"]
    assert [len(view.answer(name, {}, np.array([0]))["start"]) for name in ("links", "attributes")] == [2, 2]
    assert len(view.runs[0].nearest(np.array([0]), 10)["rows"]) == 10
    assert len(view.nodes.count(np.array([0, 1]))["columns"]) == 0
    assert view.regions(0, "pca")


def test_regions_are_named_and_finer_from_near(small_view):
    assert len(small_view.regions(0, "pca")) == 1
    rng = np.random.default_rng(0)
    spread = np.concatenate([rng.normal(-1, 0.1, (1000, 2)), rng.normal(1, 0.1, (1000, 2))]).astype(np.float32)
    sides = np.repeat(["left", "right"], 1000).tolist()
    for kind in ("labels", "attributes"):
        known = {"labels": sides} if kind == "labels" else {"attributes": dict(enumerate([side] for side in sides))}
        graph = AttributedGraph.from_edges([(0, 1)], ids=np.arange(2000), **known)
        run = Run("two", spread)
        run.add_layout("own", spread)
        levels = View(Nodes(graph.ids, graph), [run]).regions(0, "own")
        assert [len(level) for level in levels] == [8, 32, 128]
        # An attribute of a single node is typical of no group.
        assert {region["name"] for level in levels for region in level if region["size"] > 1} == {"left", "right"}
        assert all((region["x"] < 0) == (region["name"] == "left") for region in levels[0])
        assert levels == View(Nodes(graph.ids, graph), [run]).regions(0, "own")
