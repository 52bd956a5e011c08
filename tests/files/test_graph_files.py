"""Files of other programs, and files that are not what their name says."""

import re

import networkx as nx
import numpy as np
import polars as pl
import pytest
from scipy import io, sparse

from neural_brane import AttributedGraph
from neural_brane.errors import GraphError, ParameterError
from neural_brane.files.datasets import read_labels
from neural_brane.files.graphs.formats import FORMATS, exchange_suffix, read_graph

WRITERS = {".graphml": nx.write_graphml, ".gexf": nx.write_gexf, ".gml": nx.write_gml}
XML = '<?xml version="1.0"?>\n'
GRAPHML = XML + '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n{}</graphml>'
GEXF = XML + '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">\n{}</gexf>'
MTX = "%%MatrixMarket matrix coordinate {} general\n"


def people() -> nx.DiGraph:
    graph = nx.DiGraph()
    for name, age, country in (("ann lee", 31, "IN"), ("bob", 22, "FR"), ("cid", 31, "IN"), ("dan", 45, "FR")):
        graph.add_node(name, age=age, country=country, member=age > 30)
    graph.add_edge("ann lee", "bob", weight=0.5)
    graph.add_edge("bob", "ann lee", weight=2.0)
    graph.add_edge("bob", "bob")
    return graph


@pytest.mark.parametrize("suffix", WRITERS)
def test_typed_data_of_networkx_becomes_attributes(suffix, tmp_path):
    WRITERS[suffix](people(), tmp_path / f"g{suffix}")
    graph = read_graph(tmp_path / f"g{suffix}")
    expected = AttributedGraph.from_networkx(people(), attributes=["age", "country", "member"])
    assert graph.ids.tolist() == expected.ids.tolist()
    assert graph.adjacency.toarray().tolist() == expected.adjacency.toarray().tolist()
    named = dict(zip(graph.attribute_names.tolist(), graph.attributes.toarray().T.tolist(), strict=True))
    assert named["age=31"] == [1, 0, 1, 0]
    assert named["country=FR"] == [0, 1, 0, 1]
    assert graph.encoder is not None
    labelled = read_graph(tmp_path / f"g{suffix}", label="country")
    assert labelled.labels.tolist() == ["IN", "FR", "IN", "FR"]
    assert not any("country" in name for name in labelled.attribute_names.tolist())


@pytest.mark.parametrize("suffix", [".graphml", ".gexf"])
def test_integers_stay_integers(suffix, tmp_path):
    karate = nx.karate_club_graph()
    WRITERS[suffix](karate, tmp_path / f"g{suffix}")
    graph = read_graph(tmp_path / f"g{suffix}", label="club")
    assert graph.ids.tolist() == list(range(34))
    assert graph.adjacency.toarray().tolist() == nx.to_numpy_array(karate).tolist()
    assert graph.classes.tolist() == ["Mr. Hi", "Officer"]


def test_files_of_igraph(tmp_path):
    igraph = pytest.importorskip("igraph", reason="igraph writes these")
    other = igraph.Graph([(0, 1), (1, 2)])
    other.es["weight"] = [0.5, 2.0]
    other.vs["town"] = ["x", "y", "x"]
    for name, write in (("g.graphml", other.write_graphml), ("g.gml", other.write_gml)):
        write(str(tmp_path / name))
        graph = read_graph(tmp_path / name)
        assert graph.adjacency.toarray().tolist() == [[0, 0.5, 0], [0.5, 0, 2], [0, 2, 0]]
        assert graph.attributes.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]


def test_defaults_and_nested_graphs_of_graphml(write):
    text = GRAPHML.format(
        '<key id="c" for="node" attr.name="colour" attr.type="string"><default>red</default></key>'
        '<key id="w" for="edge" attr.name="weight" attr.type="double"><default>4</default></key>'
        '<graph><edge source="a" target="b"/><node id="a"><data key="c">blue</data><graph><node id="b"/></graph></node>'
        '<node id="c"/></graph>'
    )
    graph = read_graph(write("g.graphml", text))
    assert graph.ids.tolist() == ["a", "b", "c"]
    assert graph.adjacency.toarray().tolist() == [[0, 4, 0], [4, 0, 0], [0, 0, 0]]
    assert graph.attribute_names.tolist() == ["colour=blue", "colour=red"]
    assert graph.attributes.toarray().tolist() == [[1, 0], [0, 1], [0, 1]]


def test_gml_of_other_programs(write):
    text = (
        'Creator "someone"\n# a note\ngraph\n[\n  directed 1\n  node [ id 5 label "Jean &quot;V&quot; &#233;"\n'
        '    graphics [ x 1.5 y -2 ] ]\n  node\n  [\n    id 9\n    label "b"\n  ]\n'
        "  edge [ source 9 target 5 value 3 ]\n]\n"
    )
    graph = read_graph(write("g.gml", text))
    assert graph.ids.tolist() == ['Jean "V" é', "b"]
    assert graph.adjacency.toarray().tolist() == [[0, 3], [3, 0]]
    bare = read_graph(write("g.gml", "graph [ node [ id 5 ] node [ id 9 ] edge [ source 9 target 5 ] ]"))
    assert bare.ids.tolist() == [5, 9]


def test_gml_is_read_a_piece_at_a_time(tmp_path, monkeypatch, small_graph):
    monkeypatch.setattr("neural_brane.files.graphs.gml.CHUNK", 7)
    small_graph.save(tmp_path / "g.gml")
    assert read_graph(tmp_path / "g.gml").digest() == small_graph.digest()


def test_matrix_market_of_scipy(tmp_path):
    matrix = sparse.coo_array(([1.5, 2], ([0, 1], [1, 2])), shape=(3, 3))
    io.mmwrite(tmp_path / "g.mtx", matrix)
    io.mmwrite(tmp_path / "x.mtx", np.array([[1, 0], [0, 2], [3, 0]]))
    graph = read_graph(tmp_path / "g.mtx", attributes=tmp_path / "x.mtx")
    assert graph.adjacency.toarray().tolist() == [[0, 1.5, 0], [1.5, 0, 2], [0, 2, 0]]
    assert graph.attributes.toarray().tolist() == [[1, 0], [0, 2], [3, 0]]
    assert graph.ids.tolist() == [0, 1, 2]


@pytest.mark.parametrize("container", [np.array, sparse.coo_array])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
def test_matrix_market_of_every_kind(container, symmetry, field, tmp_path):
    if field == "pattern" and container is np.array:
        pytest.skip("an array has no pattern")
    matrix = np.array([[1, 2, 0], [2, 0, 3], [0, 3, 0]])
    io.mmwrite(tmp_path / "g.mtx", container(matrix), field=field, symmetry=symmetry)
    expected = (matrix > 0).astype(int) if field == "pattern" else matrix
    assert read_graph(tmp_path / "g.mtx").adjacency.toarray().tolist() == expected.tolist()


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("container", [sparse.coo_array, sparse.coo_matrix])
def test_npz_of_scipy(layout, container, tmp_path):
    sparse.save_npz(tmp_path / "g.npz", container([[0, 2, 0], [2, 0, 1], [0, 1, 0]]).asformat(layout))
    assert read_graph(tmp_path / "g.npz").adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": np.array(b"lil")}, "g.npz: holds a sparse matrix of the format 'lil'; save it as csr"),
        ({"shape": np.array([2])}, "g.npz: the shape is [2]; expected rows and columns"),
        ({"indices": np.array([1, 7])}, "g.npz: its arrays do not make a sparse matrix"),
        ({"indptr": np.array([0, 1, 9])}, "g.npz: its arrays do not make a sparse matrix"),
        ({"data": np.array([1j, 1])}, "g.npz: adjacency is complex128"),
        ({"data": np.array([1.0, -1])}, "g.npz: adjacency[1, 0] is -1.0; weights must be above 0"),
    ],
)
def test_npz_of_scipy_that_is_damaged(change, message, tmp_path, read_malformed):
    good = {"format": np.array(b"csr"), "shape": np.array([2, 2]), "data": np.ones(2)}
    good |= {"indices": np.array([1, 0]), "indptr": np.array([0, 1, 2])}
    np.savez(tmp_path / "draft.npz", **(good | change))
    assert read_malformed({"g.npz": (tmp_path / "draft.npz").read_bytes()}).startswith(message)


BOMB = '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
EDGE = '<graph><node id="a"/><node id="b"/><edge source="a" target="b">{}</edge></graph>'
WEIGHT = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("g.graphml", "0 1\n1 2\n", "g.graphml:1: this is not XML as <graphml> files are, found text instead"),
        ("g.graphml", "", "g.graphml:1: this is not XML as <graphml> files are, found nothing instead"),
        ("g.graphml", GEXF.format(""), "g.graphml:2: found <gexf>, where <graphml> begins a file of this name"),
        ("g.gexf", GRAPHML.format(""), "g.gexf:2: found <graphml>, where <gexf> begins a file of this name"),
        ("g.gexf", "graph [ node [ id 1 ] ]", "g.gexf:1: this is not XML as <gexf> files are, found GML instead"),
        ("g.gml", GRAPHML.format(""), "g.gml:1: found '<?xml version=\"1.0\"?>\\n<graphml', which is not GML"),
        ("g.gml", "0 1\n1 2\n", "g.gml:1: found 0 where a key should stand; this is text, not GML"),
        ("g.gml", "", "g.gml: there is no 'graph [ … ]' in this file; this is text, not GML"),
        ("g.mtx", "0 1\n1 2\n", "g.mtx: found text, not Matrix Market, which begins with %%MatrixMarket"),
        ("g.graphml", XML + BOMB + "<graphml>&b;</graphml>", "g.graphml:2: found a document type"),
        ("g.gexf", XML + '<!DOCTYPE g SYSTEM "file:///etc/passwd"><gexf/>', "g.gexf:2: found a document type"),
        ("g.graphml", GRAPHML.format("<x>" * 200), "g.graphml:3: elements stand in one another more than 100 deep"),
        ("g.graphml", GRAPHML.format("<graph>")[:-3], "g.graphml:3: this is not XML as <graphml> files are ("),
        ("g.graphml", GRAPHML.format(EDGE.format("") * 2), "g.graphml:3: this is the second graph of the file"),
        ("g.graphml", GRAPHML.format('<graph><node id="a"/><node id="a"/></graph>'), "g.graphml:3: node 'a' stands"),
        ("g.graphml", GRAPHML.format('<graph><node/></graph>'), "g.graphml:3: a node lacks its id"),
        ("g.graphml", GRAPHML.format("<graph><hyperedge/></graph>"), "g.graphml:3: a hyperedge joins several nodes"),
        ("g.graphml", GRAPHML.format('<graph><edge source="a"/></graph>'), "g.graphml:3: an edge lacks its source or"),
        (
            "g.graphml",
            GRAPHML.format('<graph><node id="a"/><edge source="a" target="z"/></graph>'),
            "g.graphml: an edge names node 'z', which the file does not declare",
        ),
        (
            "g.graphml",
            GRAPHML.format(WEIGHT + EDGE.format('<data key="w">1e-300</data>')),
            "g.graphml:3: the weight of an edge is 1e-300; give a number above 0 that float32 can hold",
        ),
        (
            "g.graphml",
            GRAPHML.format(WEIGHT + EDGE.format('<data key="w">NaN</data>')),
            "g.graphml:3: the weight of an edge is nan; give a number above 0",
        ),
        (
            "g.graphml",
            GRAPHML.format(WEIGHT + EDGE.format('<data key="w">heavy</data>')),
            "g.graphml:3: 'heavy' is not of the type double that its attribute has",
        ),
        ("g.graphml", GRAPHML.format(EDGE.format('<data key="w">1</data>')), "g.graphml:3: data has the key 'w'"),
        (
            "g.gexf",
            GEXF.format('<graph><nodes><node id="a"><attvalue for="0" value="1"/></node></nodes></graph>'),
            "g.gexf:3: a value is for attribute '0', which no <attribute> of a node declares",
        ),
        (
            "g.gexf",
            GEXF.format(EDGE.format("").replace("<edge ", '<edge weight="-1" ')),
            "g.gexf:3: the weight of an edge is '-1'; give a number above 0",
        ),
        ("g.gml", "graph [ node [ id 1 ]", "g.gml: the file ends within 'graph'; it is cut off"),
        ("g.gml", 'graph [ node [ id 1 label "a ] ]', "g.gml:1: found '\"a ] ]', which is not GML; write it again"),
        ("g.gml", "graph [ node [ id ] ]", "g.gml:1: found ']' where none can stand"),
        ("g.gml", "graph [ node [ label 1 ] ]", "g.gml:1: a node lacks its id"),
        ("g.gml", "graph " + "[ a " * 200, "g.gml:1: lists stand in one another more than 100 deep"),
        ("g.gml", "graph [ ]\ngraph [ ]\n", "g.gml:2: this is the second graph of the file"),
        ("g.gml", b"graph [ node [ id 1 label \"\xff\" ] ]", "g.gml: after line 1 it is not text in UTF-8"),
        ("g.mtx", MTX.format("complex") + "2 2 1\n1 2 1 1\n", "g.mtx:1: holds complex numbers; give one of"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 2 -1\n", "g.mtx: adjacency[0, 1] is -1.0; weights must be above 0"),
        ("g.mtx", MTX.format("real") + "2 2 3\n1 2 1\n", "g.mtx: announces 3 entries, and 1 follow"),
        ("g.mtx", MTX.format("real") + "9999999999 9999999999 1\n1 2 1\n", "g.mtx: claims 9,999,999,999 x 9,999,999"),
        ("g.mtx", "%%MatrixMarket matrix array real general\n90000 90000\n1\n", "g.mtx: claims 90,000 x 90,000 with"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 2 5E- 1\n", "g.mtx:3: found '1' behind the value; remove it"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 2 5E-\n", "g.mtx:3: found '5E-', where the value should stand"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 3 1\n", "g.mtx:3: the column is 3; expected 1 to 2"),
        ("g.mtx", MTX.format("real") + "2 2\n1 2 1\n", "g.mtx:2: found '2 2', where the 3 sizes of the matrix"),
        ("g.mtx", MTX.format("real"), "g.mtx: the file ends before the sizes of the matrix"),
        ("g.mtx", "%%MatrixMarket vector real\n1\n", "g.mtx:1: found '%%MatrixMarket vector real'; expected"),
        ("g.mtx", "%%MatrixMarket matrix array real skew-symmetric\n1 1\n1\n", "g.mtx:1: is skew-symmetric; give"),
        ("g.mtx", MTX.format("real") + "% node {\n2 2 1\n1 2 1\n", "g.mtx:2: the comment does not hold JSON"),
        ("g.mtx", MTX.format("real") + '% node 5\n2 2 1\n1 2 1\n', "g.mtx:2: the comment has no [id] or [id, label]"),
        ("g.mtx", MTX.format("real") + '% attributes "../x.mtx"\n2 2 1\n1 2 1\n', "g.mtx: attributes are in '../"),
    ],
)  # fmt: skip
def test_files_that_are_not_what_their_name_says(name, content, message, read_malformed):
    assert read_malformed({name: content}).startswith(message)


def test_own_attributes_that_are_damaged_are_refused(small_graph, tmp_path):
    for suffix in (".graphml", ".gexf", ".gml"):
        path = tmp_path / f"g{suffix}"
        small_graph.save(path)
        text = path.read_text()
        path.write_text(re.sub("chess", "chass", text, count=1))  # in the list of names
        with pytest.raises(GraphError, match="attribute 'chess' of node 'ann' is not in the list of names"):
            read_graph(path)


def test_other_data_beside_our_own_is_told(small_graph, tmp_path):
    small_graph.save(tmp_path / "g.gml")
    text = (tmp_path / "g.gml").read_text().replace('label "ann"', 'label "ann" town "x"')
    (tmp_path / "g.gml").write_text(text)
    with pytest.warns(UserWarning, match=r"nodes have attributes of their own; 'town' are left out"):
        assert read_graph(tmp_path / "g.gml").digest() == small_graph.digest()


def test_labels_and_tables_go_with_these_files(small_graph, tmp_path):
    small_graph.save(tmp_path / "g.graphml")
    ids, labels = read_labels(tmp_path / "g.graphml")
    assert ids.tolist() == small_graph.ids.tolist()
    assert labels.tolist() == small_graph.labels.tolist()
    links = AttributedGraph.from_edges([("a", "b"), ("b", "c")])
    links.save(tmp_path / "links.gexf")
    pl.DataFrame({"id": ["a", "b", "c"], "town": ["x", "y", "x"]}).write_csv(tmp_path / "nodes.csv")
    joined = read_graph(tmp_path / "links.gexf", nodes=tmp_path / "nodes.csv")
    assert joined.attribute_names.tolist() == ["town=x", "town=y"]


def test_options_of_one_format_are_refused_by_others(small_graph, tmp_path):
    with pytest.raises(ParameterError, match=r"compress and layout are for \.npz files"):
        small_graph.save(tmp_path / "g.gml", compress=True)
    small_graph.save(tmp_path / "g.gml")
    with pytest.raises(GraphError, match=r"\.gml files hold their own attributes; leave out a\.txt"):
        read_graph(tmp_path / "g.gml", attributes="a.txt")
    with pytest.raises(GraphError, match=r"source says how a table of edges is read; leave it out for \.gml"):
        read_graph(tmp_path / "g.gml", source="u")


def test_suffixes():
    assert {exchange_suffix(f"a.b{suffix}.gz") for suffix in FORMATS} == set(FORMATS)
    assert exchange_suffix("G.GraphML") == ".graphml"
    assert exchange_suffix("g.npz") is exchange_suffix("g.txt") is exchange_suffix("gml") is None
