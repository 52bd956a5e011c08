import numpy as np
import polars as pl
import pytest

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.encoder import Encoder
from neural_brane.graph.frames import Place

EDGES = pl.DataFrame({"source": ["ann", "bob", "cid"], "target": ["bob", "cid", "dan"]})
PEOPLE = pl.DataFrame(
    {
        "mail": ["e@x", "d@x", "c@x", "b@x", "a@x"],
        "name": ["eve", "dan", "cid", "bob", "ann"],
        "land": ["IN", "FR", "IN", None, "FR"],
        "team": ["red", "red", None, "blue", "blue"],
    }
)


def bag(graph, node):
    row = graph.attributes[[graph.ids.tolist().index(node)]]
    return graph.attribute_names[row.indices].tolist()


def test_rows_are_joined_by_id_and_nodes_without_edges_are_kept():
    graph = AttributedGraph.from_frames(EDGES, PEOPLE, label="team")
    assert graph.ids.tolist() == ["ann", "bob", "cid", "dan", "eve"]
    assert [bag(graph, node) for node in graph.ids] == [["land=FR"], [], ["land=IN"], ["land=FR"], ["land=IN"]]
    assert graph.labels.tolist() == ["blue", "blue", "", "red", "red"]
    assert graph.adjacency.shape == (5, 5)
    assert graph.edges == 3
    kinds = {column.name: column.kind for column in graph.encoder.columns}
    assert kinds == {"mail": "ignored", "name": "id", "land": "category", "team": "label"}


def test_the_label_is_no_attribute():
    assert "team" not in "".join(AttributedGraph.from_frames(EDGES, PEOPLE, label="team").attribute_names.tolist())
    assert "team=red" in AttributedGraph.from_frames(EDGES, PEOPLE).attribute_names


def test_nodes_of_the_edges_without_a_row_are_kept_with_a_warning():
    with pytest.warns(UserWarning, match=r"2.*4 nodes.*'cid'"):
        graph = AttributedGraph.from_frames(EDGES).joined(PEOPLE[3:], place=Place("people"))
    assert graph.ids.tolist() == ["ann", "bob", "cid", "dan"]
    assert bag(graph, "cid") == []


def test_a_column_of_other_nodes_is_not_chosen_for_the_ids():
    bosses = PEOPLE.with_columns(boss=pl.Series(["ann", "ann", "ann", "cid", "cid"])).select("boss", "name", "land")
    graph = AttributedGraph.from_frames(EDGES, bosses)
    assert {column.name: column.kind for column in graph.encoder.columns}["name"] == "id"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (Place("p.csv", 2), "p.csv:7: node 'ann' already has line 6; remove one of the two"),
        (Place("p.csv", 2, np.array([2, 3, 5, 6, 8, 9])), "p.csv:9: node 'ann' already has line 8"),
        (Place("nodes"), "nodes: row 5: node 'ann' already has row 4"),
    ],
)
def test_a_node_with_two_rows_is_refused_with_both_lines(place, said):
    twice = pl.concat([PEOPLE, PEOPLE[-1:]])
    with pytest.raises(GraphError, match=f"^{said}"):
        AttributedGraph.from_frames(EDGES).joined(twice, place=place)


def test_a_missing_id_is_refused():
    holes = PEOPLE.with_columns(name=pl.Series(["eve", "dan", None, "bob", "ann"]))
    with pytest.raises(GraphError, match=r"p\.csv:4.*column 'name'"):
        AttributedGraph.from_frames(EDGES).joined(holes, id="name", place=Place("p.csv", 2))


def test_a_table_that_shares_no_node_with_the_edges_is_refused():
    with pytest.raises(GraphError, match=r"5 ids.*'mail'.*'e@x'"):
        AttributedGraph.from_frames(EDGES, PEOPLE, id="mail")
    with pytest.raises(GraphError, match="no column holds the ids of the edges' nodes"):
        AttributedGraph.from_frames(EDGES, PEOPLE.drop("name"))


def test_a_missing_column_is_refused():
    with pytest.raises(GraphError, match=r"column 'size'.*'mail'.*'name'"):
        AttributedGraph.from_frames(EDGES, PEOPLE, columns=["size:number"])


def test_a_graph_that_has_attributes_is_not_joined():
    graph = AttributedGraph.from_edges([("ann", "bob")], attributes={"ann": ["tea"]})
    with pytest.raises(GraphError, match="1 attributes"):
        graph.joined(PEOPLE)


def test_labels_of_the_graph_are_kept_if_the_table_has_none():
    graph = AttributedGraph.from_edges([("ann", "bob")], labels={"ann": "old"}).joined(PEOPLE)
    assert dict(zip(graph.ids.tolist(), graph.labels.tolist(), strict=True))["ann"] == "old"
    assert len(graph.labels) == 5


def test_names_join_a_graph_of_integers():
    edges = pl.DataFrame({"u": [1, 2], "v": [2, 3]})
    nodes = pl.DataFrame({"id": ["1", "2", "3", "x"], "land": ["IN", "IN", "FR", "FR"]})
    assert AttributedGraph.from_frames(edges, nodes, id="id").ids.tolist() == ["1", "2", "3", "x"]


def test_new_nodes_are_encoded_in_the_same_way():
    graph = AttributedGraph.from_frames(EDGES, PEOPLE, ignore=["team"])
    new = pl.DataFrame({"mail": ["f@x", "a@x"], "name": ["fay", "ann"], "land": ["FR", "IN"], "team": ["", ""]})
    edges = pl.DataFrame({"source": ["fay"], "target": ["ann"]})
    kept = Encoder.from_dict(graph.encoder.as_dict())
    other = AttributedGraph.from_frames(edges, new, encoder=kept)
    assert other.attribute_names.tolist() == graph.attribute_names.tolist()
    assert bag(other, "fay") == ["land=FR"]


def test_the_encoder_of_a_graph_is_the_one_that_made_its_attributes():
    graph = AttributedGraph.from_frames(EDGES, PEOPLE)
    assert graph.renamed("x").encoder is graph.encoder
    assert graph.encoded(None).digest() == graph.digest()
    other = AttributedGraph.from_frames(EDGES, PEOPLE, ignore=["team"])
    with pytest.raises(GraphError, match=r"encoder.*4.*2"):
        other.encoded(graph.encoder)
