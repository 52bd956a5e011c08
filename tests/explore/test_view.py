import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.explore.opening import lay_out, open_view
from neural_brane.explore.view import regions


def row_of(view, node):
    return view.nodes.ids.tolist().index(node)


def test_rows_follow_the_vectors_and_graph_facts_are_matched_by_id(small_view, small_graph):
    assert small_view.nodes.ids.tolist() == small_graph.ids[::-1].tolist()
    about = small_view.about()
    assert (about["nodes"], about["edges"], about["attributes"]) == (12, small_graph.edges, 5)
    card = small_view.card(row_of(small_view, "cat"))
    assert (card["id"], card["label"]) == ("cat", "town")
    assert sorted(name for name, _ in card["attributes"]) == ["chess", "opera", "tea"]
    assert [(one["id"], one["weight"]) for one in card["neighbours"]] == [("ann", 2.0), ("dan", 1.0), ("bob", 0.5)]


def test_nearest_nodes_and_scores_are_the_library_s_own(small_view, small_file):
    embedding = Embedding.load(small_file)
    for node in embedding.ids.tolist():
        nearest = small_view.card(row_of(small_view, node))["nearest"][0]
        assert [(one["id"], one["cosine"]) for one in nearest] == embedding.nearest(node, k=10)
        own = embedding.score([(node, one["id"]) for one in nearest])
        np.testing.assert_allclose([one["score"] for one in nearest], own, rtol=1e-5)


def test_a_neighbour_among_the_nearest_is_marked(small_view, small_graph):
    linked = small_graph.adjacency.toarray() > 0
    names = small_graph.ids.tolist()
    for row, node in enumerate(small_view.nodes.ids.tolist()):
        for one in small_view.card(row)["nearest"][0]:
            assert one["linked"] == linked[names.index(node), names.index(one["id"])]


def test_search_finds_ids_attributes_and_labels_in_any_case(small_view):
    found = small_view.nodes.search(" TE")
    assert [name for name, _ in found["attributes"]] == ["tea"]
    assert found["attributes"] == [["tea", 5]]
    assert small_view.nodes.search("CLUB")["labels"] == [["club", 5]]
    found = small_view.nodes.search("a")
    assert found["nodes"][0]["id"] == "ann"
    assert found["node_total"] == sum("a" in name for name in small_view.nodes.ids)
    assert small_view.nodes.search("  ")["nodes"] == []
    assert small_view.nodes.search("[.*")["nodes"] == []


def test_a_selection_s_summary_is_what_a_count_gives(small_view, small_graph):
    chosen = ["ann", "bob", "cat", "dan", "gus"]
    rows = np.array([row_of(small_view, node) for node in chosen])
    summary = small_view.summary(rows)
    assert summary["count"] == 5
    assert summary["classes"] == [["town", 4, 6], ["club", 1, 5]]
    assert summary["edges"] == small_graph.subgraph(chosen).edges
    lifts = {name: (inside, overall, lift) for name, inside, overall, lift in summary["attributes"]}
    assert lifts["opera"] == (3, 3, pytest.approx(12 / 5))
    assert lifts["chess"] == (3, 4, pytest.approx((3 / 5) / (4 / 12)))
    assert summary["attributes"][0][0] == "opera"
    assert "tea" not in lifts
    assert small_view.summary(np.array([], dtype=np.int64))["count"] == 0


def test_the_edges_of_nodes_are_each_given_once(small_view):
    ann, bob = row_of(small_view, "ann"), row_of(small_view, "bob")
    pairs = {tuple(pair) for pair in small_view.edges(np.array([ann, bob])).tolist()}
    names = small_view.nodes.ids
    assert {frozenset(names[list(pair)].tolist()) for pair in pairs} == {
        frozenset(pair) for pair in (["ann"], ["ann", "bob"], ["ann", "cat"], ["bob", "cat"], ["bob", "fay"])
    }
    assert len(pairs) == 5


def test_two_nodes_share_attributes_and_neighbours(small_view, small_file):
    pair = small_view.pair(row_of(small_view, "ann"), row_of(small_view, "cat"))
    assert set(pair["attributes"]) == {"chess", "opera"}
    assert pair["only"] == [0, 1]
    assert {one["id"] for one in pair["neighbours"]} == {"ann", "bob"}
    assert pair["linked"]
    cosine = dict(Embedding.load(small_file).nearest("ann", k=11))["cat"]
    assert pair["cosines"] == [pytest.approx(cosine, abs=1e-6)]


def test_colours_by_label_degree_attribute_and_amount(small_view):
    about, codes = small_view.column("label")
    assert (about["names"], about["counts"], about["none"]) == (["town", "club"], [6, 5], 1)
    assert codes[row_of(small_view, "kim")] == 2
    about, values = small_view.column("degree")
    assert values[row_of(small_view, "ann")] == 3
    assert about["high"] == 3
    about, codes = small_view.column("attribute:chess")
    assert about["counts"] == [4, 8]
    assert codes[row_of(small_view, "bob")] == 0
    about, values = small_view.column("attribute:beer")
    assert about["kind"] == "number"
    assert values[row_of(small_view, "joy")] == 2
    about, codes = small_view.column("cluster")
    assert len(about["names"]) == codes.max() + 1
    assert about["counts"] == np.bincount(codes).tolist()
    np.testing.assert_allclose(small_view.column("length")[1], np.linalg.norm(small_view.runs[0].vectors, axis=1))
    with pytest.raises(ParameterError, match="there is no colour 'nonsense'"):
        small_view.column("nonsense")
    with pytest.raises(EmbeddingError, match="no node has an attribute 'golf'"):
        small_view.column("attribute:golf")


def test_clusters_are_the_library_s_and_named_by_attributes(small_graph, tmp_path):
    ids = [f"{kind} {at}" for at in range(40) for kind in ("tea", "beer")]
    vectors = np.array([[1, at / 99] if at % 2 else [-1, at / 99] for at in range(80)])
    graph = small_graph.from_edges([], ids=ids, attributes={node: [node.split()[0]] for node in ids})
    Embedding(vectors, ids).save(tmp_path / "two.npz")
    about, codes = open_view([tmp_path / "two.npz"], graph).column("cluster")
    theirs = Embedding(vectors, ids).clusters(graph=graph)
    np.testing.assert_array_equal(codes, theirs.assignments)
    assert about["names"] == [f"{at + 1}: {one.attributes[0].attribute}" for at, one in enumerate(theirs)]


def test_rows_are_found_by_attribute_label_and_id(small_view):
    names = small_view.nodes.ids
    assert set(names[small_view.rows_of("attribute", "rugby")]) == {"gus", "hal", "kim"}
    assert set(names[small_view.rows_of("label", "club")]) == {"gus", "hal", "ian", "joy", "leo"}
    assert set(names[small_view.rows_of("id", "AN")]) == {"ann", "dan", "ian"}
    assert small_view.rows_of("label", "nobody").tolist() == []


@pytest.mark.parametrize("rows", [[12], [-1]])
def test_rows_that_are_not_there_are_refused(small_view, rows):
    for ask in (lambda: small_view.card(rows[0]), lambda: small_view.summary(np.array(rows))):
        with pytest.raises(ParameterError, match="there is no row"):
            ask()


def test_runs_of_the_same_nodes_come_into_one_order(small_file, small_graph, tmp_path):
    other = Embedding(np.arange(24.0).reshape(12, 2), small_graph.ids)
    other.save(tmp_path / "other.tsv")
    view = open_view([small_file, tmp_path / "other.tsv"], small_graph)
    np.testing.assert_array_equal(view.runs[1].vectors, other.vectors[::-1])
    assert [run["name"] for run in view.about()["runs"]] == ["small", "other"]
    nearest = view.card(3)["nearest"][1]
    assert [one["id"] for one in nearest] == [node for node, _ in other.nearest(view.nodes.ids[3].item(), k=10)]


def test_files_of_other_nodes_are_refused(small_file, small_graph, tmp_path):
    Embedding(np.ones((11, 2)), small_graph.ids[1:]).save(tmp_path / "fewer.npz")
    with pytest.raises(EmbeddingError, match=r"not of the same nodes: 1 of .*small.npz are missing.*such as 'ann'"):
        open_view([small_file, tmp_path / "fewer.npz"])
    Embedding(np.ones((2, 2)), ["ann", "zoe"]).save(tmp_path / "strange.npz")
    with pytest.raises(EmbeddingError, match="1 of 2 nodes with a vector are not in the graph, such as 'zoe'"):
        open_view([tmp_path / "strange.npz"], small_graph)


def test_vectors_that_are_not_finite_or_none_at_all_are_refused(tmp_path):
    table = np.ones((3, 2), np.float32)
    table[1, 1] = np.nan
    np.savez(tmp_path / "nan.npz", vectors=table, ids=np.arange(3))
    with pytest.raises(EmbeddingError, match="vector 2 holds NaN"):
        open_view([tmp_path / "nan.npz"])
    np.savez(tmp_path / "none.npz", vectors=table[:0], ids=np.arange(0))
    with pytest.raises(EmbeddingError, match="holds no vectors"):
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
    card = view.card(0)
    assert (card["attributes"], card["neighbours"], card["label"]) == ([], [], "")
    assert len(card["nearest"][0]) == 10
    assert view.summary(np.array([0, 1]))["attributes"] == []
    assert view.regions(0, "pca")


def test_regions_are_named_and_finer_from_near(small_view):
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(12, 2)).astype(np.float32)
    assert len(regions(points, small_view.nodes)) == 1

    class Many:
        """Two thousand nodes in two halves, each with a label."""

        attributes = small_view.nodes.attributes[np.zeros(2000, int)]
        attribute_counts = np.full(5, 2000)
        classes = (np.array(["left", "right"]), np.repeat([0, 1], 1000))

        def __len__(self):
            return 2000

    spread = np.concatenate([rng.normal(-1, 0.1, (1000, 2)), rng.normal(1, 0.1, (1000, 2))]).astype(np.float32)
    levels = regions(spread, Many())
    assert [len(level) for level in levels] == [8, 32, 128]
    assert {region["name"] for level in levels for region in level} == {"left", "right"}
    assert all((region["x"] < 0) == (region["name"] == "left") for region in levels[0])
    assert levels == regions(spread, Many())
