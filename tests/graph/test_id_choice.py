"""Which column of a table of nodes holds the ids, whatever wrote the table."""

import warnings

import numpy as np
import polars as pl
import pytest

from neural_brane import read
from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.graph import AttributedGraph
from neural_brane.graph.frames import name_two_kinds

pandas = pytest.importorskip("pandas", reason="these are frames of pandas")
EDGES = pl.DataFrame({"from": [1, 2, 3, 4], "to": [2, 3, 4, 1]})
TEAMS = {1: "blue", 2: "blue", 3: "red", 4: "red"}
ORDER = [4, 3, 2, 1]


def teams(graph):
    """Return the team of each node by its attribute."""
    blue = graph.attributes.toarray()[:, graph.attribute_names.tolist().index("team=blue")]
    return {node: "blue" if one else "red" for node, one in zip(graph.ids.tolist(), blue, strict=True)}


def people(**columns):
    return pl.DataFrame({**columns, "team": [TEAMS[node] for node in ORDER]})


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        ({"row": [1, 2, 3, 4], "id": ORDER}, "id"),
        ({"row": [1, 2, 3, 4], "person": ORDER}, "person"),
        ({"Unnamed: 0": [2, 1, 4, 3], "person": ORDER}, "person"),
        ({"": [1, 2, 3, 4], "Node": ORDER}, "Node"),
        ({"index": [3, 1, 2, 4], "from": ORDER}, "from"),
        ({"person": ORDER, "same": ORDER}, "person"),
        ({"boss": [1, 1, 1, 2], "person": ORDER}, "person"),
        ({"rank": [2, 1, 3, 4], "id": ORDER}, "id"),
        ({"person": [4.0, 3.0, 2.0, 1.0]}, "person"),
        ({"person": ["4", "3", "2", "1"]}, "person"),
        ({"person": ["4.0", "3.0", "2.0", "1.0"]}, "person"),
    ],
)
def test_a_better_column_than_row_numbers_is_chosen(columns, chosen, tmp_path):
    nodes = people(**columns)
    graph = AttributedGraph.from_frames(EDGES, nodes)
    assert {column.name: column.kind for column in graph.encoder.columns}[chosen] == "id"
    EDGES.write_csv(tmp_path / "e.csv")
    nodes.write_csv(tmp_path / "n.csv")
    for one in (graph, read(tmp_path / "e.csv", nodes=tmp_path / "n.csv")):
        assert teams(one) == TEAMS


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"rank": [2, 1, 3, 4], "person": ORDER}, "'rank' and 'person'"),
        ({"id": [2, 1, 3, 4], "name": ORDER}, "'id' and 'name'"),
        ({"place": [0, 1, 2, 3], "person": [1, 2, 3, 4]}, "'place' and 'person'"),
    ],
)
@pytest.mark.filterwarnings("ignore:nodes. column 'id' is named like an id")
def test_two_columns_that_could_be_the_ids_are_refused(columns, named):
    with pytest.raises(GraphError, match=rf"nodes: columns {named}.*--id"):
        AttributedGraph.from_frames(EDGES, people(**columns))
    assert teams(AttributedGraph.from_frames(EDGES, people(**columns), id=1))


def test_row_numbers_without_a_title_are_never_ids():
    with pytest.raises(GraphError, match="no column holds the ids"):
        AttributedGraph.from_frames(EDGES, people(**{"": [1, 2, 3, 4]}))
    named = pl.DataFrame({"from": ["a", "b"], "to": ["b", "c"]})
    nodes = pl.DataFrame({"": ["c", "a", "b"], "team": ["x", "y", "x"]})
    assert AttributedGraph.from_frames(named, nodes).encoder.columns[0].kind == "id"


def frame(order, **columns):
    return pandas.DataFrame({**columns, "team": [TEAMS[node] for node in order]})


@pytest.mark.parametrize(
    "nodes",
    [
        frame([1, 2, 3, 4], id=[1, 2, 3, 4]).sample(frac=1, random_state=1),
        frame([1, 2, 3, 4], id=[1, 2, 3, 4]).sort_values("id", ascending=False),
        pandas.concat([frame([3, 4], id=[3, 4]), frame([1, 2], id=[1, 2])]),
        frame(ORDER, id=ORDER).set_index("id"),
        frame(ORDER).set_index(pandas.Index(ORDER)),
        frame(ORDER, person=ORDER).set_index(pandas.Index([7, 1, 2, 3])),
        frame(ORDER, person=ORDER).set_index("person"),
        frame(ORDER, id=ORDER).set_index([pandas.Index([0, 0, 1, 1]), pandas.Index([0, 1, 0, 1])]),
    ],
    ids=["shuffled", "sorted", "concatenated", "named", "unnamed", "left over", "other name", "two levels"],
)
def test_left_over_integers_of_an_index_are_no_ids(nodes):
    graph = AttributedGraph.from_frames(EDGES, nodes)
    assert teams(graph) == TEAMS
    assert graph.attribute_names.tolist() == ["team=blue", "team=red"]


def test_a_named_index_and_a_column_that_both_match_are_refused():
    nodes = frame(ORDER, id=ORDER).set_index(pandas.Index([2, 1, 3, 4], name="key"))
    with pytest.raises(GraphError, match="'key' and 'id'"):
        AttributedGraph.from_frames(EDGES, nodes)


@pytest.mark.parametrize(
    ("text", "nodes", "weighted"),
    [
        ("from,to,\na,b,\nb,c,\n", "abc", False),
        ("from,to,w,w\na,b,3,1\nb,c,4,1\n", "abc", True),
        (",from,to\n0,a,b\n1,b,c\n", "abc", False),
        (",left,right\n0,a,b\n1,b,c\n", "abc", False),
        ("Unnamed: 0,left,right\n0,a,b\n1,b,c\n", "abc", False),
        ("row,left,right\n1,a,b\n2,b,c\n3,c,d\n4,d,a\n5,a,c\n", "abcd", False),
    ],
)
def test_blank_and_doubled_titles_are_titles(tmp_path, text, nodes, weighted):
    (tmp_path / "t.csv").write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        graph = read(tmp_path / "t.csv")
    assert graph.ids.tolist() == list(nodes)
    assert bool((graph.adjacency.data > 1).any()) == weighted


def test_titles_may_be_numbers_beside_a_title_of_ids(tmp_path):
    EDGES.write_csv(tmp_path / "e.csv")
    (tmp_path / "n.csv").write_text("id,2019,2020\n1,5,6\n2,5,7\n3,5,8\n4,6,9\n")
    assert read(tmp_path / "e.csv", nodes=tmp_path / "n.csv").attribute_names[0] == "2019=5"


@pytest.mark.parametrize("large", [1 << 25, 0], ids=["frame", "blocks"])
@pytest.mark.parametrize(
    ("text", "ids", "edges"),
    [
        ("from,to\n1.0,2\n2.0,3\n", [1, 2, 3], 2),
        ("from,to\n1,2.0\n2,1.0\n", [1, 2], 1),
        ("from,to\n1.0,a\n1,b\n", ["1", "a", "b"], 2),
        ("from,to\n1.0,a\n1,1.0\n", ["1", "a", "1.0"], 2),
        ("from,to\n1.5,2\n2.0,3\n", ["1.5", "2", "2.0", "3"], 2),
        ("from,to\n01,2\n2,01\n", ["01", "2"], 1),
    ],
)
def test_whole_numbers_are_the_same_id_however_they_are_written(tmp_path, text, ids, edges, large):
    from neural_brane.files.graphs.edge_table import read_edge_table
    from neural_brane.files.reading import Unpacked

    (tmp_path / "e.csv").write_text(text)
    with Unpacked(tmp_path / "e.csv", "graph file") as file:
        found = read_edge_table(file, large=large)
    assert found.ids.tolist() == ids
    assert len(np.unique(np.sort(found.ends, axis=1), axis=0)) == edges
    (tmp_path / "e.txt").write_text("\n".join(line.replace(",", " ") for line in text.split("\n")[1:]))
    assert read(tmp_path / "e.txt").ids.tolist() == ids


def test_names_of_two_kinds_of_nodes():
    pairs = ["user_id item_id", "User Item", "customers products", "gene_id disease_id", "userId movieId"]
    assert all(name_two_kinds(*pair.split()) for pair in pairs)
    pairs = ["source target", "from_id to_id", "user_id friend_id", "user1 user2", "person friend", "a_id b_id", "u v"]
    assert not any(name_two_kinds(*pair.split()) for pair in pairs)


@pytest.mark.parametrize("large", [1 << 25, 0], ids=["frame", "blocks"])
def test_ids_of_two_kinds_are_never_merged(tmp_path, large):
    from neural_brane.files.graphs.edge_table import read_edge_table
    from neural_brane.files.reading import Unpacked

    (tmp_path / "r.csv").write_text("user_id,item_id,rating\n1,2,5\n2,3,4\n3,1,1\n")
    with (
        Unpacked(tmp_path / "r.csv", "graph file") as file,
        pytest.raises(GraphError, match=r"'user_id'.*prefix.*--same"),
    ):
        read_edge_table(file, large=large)
    with pytest.warns(ReadingWarning, match="'rating'"):
        assert len(read(tmp_path / "r.csv", same_ids=True)) == 3
    ratings = pl.DataFrame({"user_id": [1, 2], "item_id": [3, 4]})
    assert len(AttributedGraph.from_frames(ratings)) == 4
    with pytest.raises(GraphError, match="2 ids"):
        AttributedGraph.from_frames(ratings.with_columns(item_id=pl.Series([2, 1])))


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"relation": ["x", "y", "x", "y"]}, "column 'relation'"),
        ({"relation": ["x", "y", "x", "y"], "time": [1, 2, 3, 4]}, "columns 'relation', 'time'.*--weight"),
        ({"to": [2, 1, 4, 1]}, "direction of the pairs.*--duplicates"),
    ],
)
def test_what_the_edges_lose_is_named_once(columns, named, tmp_path):
    edges = EDGES.with_columns(**{name: pl.Series(values) for name, values in columns.items()})
    edges.write_csv(tmp_path / "e.csv")
    for make in (lambda: AttributedGraph.from_frames(edges), lambda: read(tmp_path / "e.csv")):
        with pytest.warns(ReadingWarning, match=named) as caught:
            make()
        assert len(caught) == 1


def test_a_missing_title_is_not_reported():
    AttributedGraph.from_frames(EDGES.with_columns(pl.Series("", [0, 1, 2, 3])))


@pytest.mark.parametrize("ids", [["a", "\0"], ["\0b", "c"]])
def test_the_character_nul_is_refused(ids):
    with pytest.raises(GraphError, match=r"row [01].*'to'.*NUL"):
        AttributedGraph.from_frames(pl.DataFrame({"from": ["x", "y"], "to": ids}))


def test_spaces_around_ids_do_not_count():
    edges = pl.DataFrame({"from": ["a ", "b"], "to": ["b", " a"]})
    assert AttributedGraph.from_frames(edges).ids.tolist() == ["a", "b"]


def test_lines_of_arrays_are_refused(tmp_path):
    (tmp_path / "e.jsonl").write_text("[1,2]\n[2,3]\n")
    with pytest.raises(GraphError, match=r"JSON.*object per line"):
        read(tmp_path / "e.jsonl")


@pytest.mark.parametrize("text", ["9223372036854775808 1\n1 2\n", "from,to\n9223372036854775808,1\n1,2\n"])
def test_integers_beyond_64_bits_are_strings(tmp_path, text):
    (tmp_path / "e.csv").write_text(text)
    assert read(tmp_path / "e.csv").ids.tolist() == ["9223372036854775808", "1", "2"]
    (tmp_path / "h.txt").write_text("3 2\n9223372036854775808 1\n1 2\n")
    with pytest.raises(GraphError, match=r"h\.txt:2"):
        read(tmp_path / "h.txt")
