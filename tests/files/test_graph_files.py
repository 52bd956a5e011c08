"""Read graph files of other programs; refuse files whose content does not match their name."""

from pathlib import Path

import networkx as nx
import numpy as np
import polars as pl
import pytest
from scipy import io, sparse

from neural_brane import AttributedGraph
from neural_brane.errors import GraphError, ParameterError
from neural_brane.files.datasets import read_labels
from neural_brane.files.graphs.formats import (
    READABLE,
    TEXT,
    WRITABLE,
    check_graph_target,
    describe_formats,
    find_format,
    read_graph,
)

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
        '<key id="c" for="node" attr.name="colour" attr.type="xs:token"><default>red</default></key>'
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


def test_gml_that_networkx_alone_would_refuse_or_misread(write):
    text = (
        '# a note with one " in it\ngraph [\n  node [ id 1 label "a" ]\n  node [ id 2 label "[]" class "()" ]\n'
        "  edge [ source 1 target 2 ]\n  edge [ source 2 target 1 weight 2 ]\n]\n"
    )
    graph = read_graph(write("g.gml", text), duplicates="sum")
    assert graph.ids.tolist() == ["a", "[]"]
    assert graph.labels.tolist() == ["", "()"]
    assert graph.adjacency.toarray().tolist() == [[0, 3], [3, 0]]


@pytest.mark.parametrize("space", ["", 'xmlns="http://www.gexf.net/1.1draft"', "xmlns='http://www.gexf.net/1.3'"])
def test_gexf_of_every_version_with_edges_of_every_direction(space, write):
    text = (
        f'{XML}<gexf {space}><graph defaultedgetype="directed"><nodes><node id="1"/><node id="2"><nodes><node id="3"/>'
        '</nodes></node></nodes><edges><edge source="1" target="2" type="undirected"/>'
        '<edge source="3" target="1" type="mutual" weight="2"/></edges></graph></gexf>'
    )
    graph = read_graph(write("g.gexf", text), duplicates="sum")
    assert sorted(graph.ids.tolist()) == [1, 2, 3]
    assert graph.subgraph([1, 2, 3]).adjacency.toarray().tolist() == [[0, 1, 2], [1, 0, 0], [2, 0, 0]]


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
        ({"format": np.array(b"lil")}, "g.npz: the sparse matrix has format 'lil'"),
        ({"shape": np.array([2])}, "g.npz: found shape [2]"),
        ({"indices": np.array([1, 7])}, "g.npz: the arrays do not form a sparse matrix"),
        ({"indptr": np.array([0, 1, 9])}, "g.npz: the arrays do not form a sparse matrix"),
        ({"data": np.array([1j, 1])}, "g.npz: adjacency is complex128"),
        ({"data": np.array([1.0, -1])}, "g.npz: adjacency[1, 0] is -1.0"),
    ],
)
def test_npz_of_scipy_that_is_damaged(change, message, tmp_path, read_malformed):
    good = {"format": np.array(b"csr"), "shape": np.array([2, 2]), "data": np.ones(2)}
    good |= {"indices": np.array([1, 0]), "indptr": np.array([0, 1, 2])}
    np.savez(tmp_path / "draft.npz", **(good | change))
    assert read_malformed({"g.npz": (tmp_path / "draft.npz").read_bytes()}).startswith(message)


BOMB = '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
EDGE = '<graph><node id="a"/><node id="b"/><edge source="a" target="b">{}</edge></graph>'
GEXF_EDGE = '<graph><nodes><node id="a"/></nodes><edges><edge source="a" target="a" {}/></edges></graph>'
VALUE = '<graph><nodes><node id="a"><attvalues><attvalue {}/></attvalues></node></nodes></graph>'
IN_TIME = (
    '<graph timeformat="double"><attributes class="node" mode="dynamic"><attribute id="0" title="x" type="double"/>'
    '</attributes><nodes><node id="a"><attvalues><attvalue for="0" value="1" start="0" end="1"/>'
    '<attvalue for="0" value="2" start="1" end="2"/></attvalues></node></nodes></graph>'
)
WEIGHT = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'


@pytest.mark.parametrize(
    ("name", "content", "place", "word"),
    [
        ("g.graphml", "0 1\n1 2\n", ":1", "XML"),
        ("g.graphml", "", ":1", "nothing"),
        ("g.graphml", GEXF.format(""), ":2", "<gexf>"),
        ("g.gexf", GRAPHML.format(""), ":2", "<graphml>"),
        ("g.gexf", "graph [ node [ id 1 ] ]", ":1", "GML"),
        ("g.gml", GRAPHML.format(""), ":1", "GraphML"),
        ("g.gml", "0 1\n1 2\n", ":1", "expected"),
        ("g.gml", "", "", "no graph"),
        ("g.mtx", "0 1\n1 2\n", "", "Matrix Market"),
        ("g.graphml", XML + BOMB + "<graphml>&b;</graphml>", ":2", "DOCTYPE"),
        ("g.graphml", (XML + BOMB + "<graphml>&b;</graphml>").encode("utf-16"), ":2", "DOCTYPE"),
        ("g.gexf", XML + '<!DOCTYPE g SYSTEM "file:///etc/passwd"><gexf/>', ":2", "DOCTYPE"),
        ("g.graphml", GRAPHML.format("<x>" * 200), ":3", "deep"),
        ("g.graphml", GRAPHML.format("<graph>")[:-3], ":3", "XML"),
        ("g.graphml", GRAPHML.format(EDGE.format("") * 2), ":3", "second graph"),
        ("g.graphml", GRAPHML.format('<graph><node id="a"/><node id="a"/></graph>'), ":3", "node 'a'"),
        ("g.graphml", GRAPHML.format("<graph><node/></graph>"), ":3", "id"),
        ("g.graphml", GRAPHML.format("<graph><hyperedge/></graph>"), ":3", "hyperedge"),
        ("g.graphml", GRAPHML.format('<graph><edge source="a"/></graph>'), ":3", "target"),
        ("g.graphml", GRAPHML.format('<graph><node id="a"/><edge source="a" target="z"/></graph>'), ":3", "node 'z'"),
        ("g.graphml", GRAPHML.format(WEIGHT + EDGE.format('<data key="w">1e-300</data>')), "", "weight"),
        ("g.graphml", GRAPHML.format(WEIGHT + EDGE.format('<data key="w">NaN</data>')), "", "weight"),
        ("g.graphml", GRAPHML.format(WEIGHT + EDGE.format('<data key="w">heavy</data>')), "", "'heavy'"),
        ("g.graphml", GRAPHML.format(EDGE.format('<data key="w">1</data>')), "", "key w"),
        ("g.gexf", GEXF.format(VALUE.format('for="7" value="1"')), "", "for=7"),
        ("g.gexf", GEXF.format(GEXF_EDGE.format('weight="-1"')), "", "weight"),
        ("g.gexf", GEXF.format(VALUE.format('for="0"')), ":3", "value"),
        ("g.gexf", GEXF.format(IN_TIME), "", "several values in time"),
        ("g.gml", "graph [ node [ id 1 ]", ":2", "EOF"),
        ("g.gml", 'graph [ node [ id 1 label "a ] ]', "", "no graph"),
        ("g.gml", "graph [ node [ label 1 ] ]", "", "'id'"),
        ("g.gml", "graph " + "[ a " * 5000, "", "recursion"),
        ("g.gml", "graph [ ]\ngraph [ ]\n", "", "more than one graph"),
        ("g.gml", "graph [ node [ id 1 ] node [ id 1 ] ]", "", "duplicated"),
        ("g.gml", "graph [ node [ id 1 ] edge [ source 1 target 2 ] ]", "", "target 2"),
        ("g.gml", b"graph [ node [ id 1 label \"\xff\" ] ]", ":1", "UTF-8"),
        ("g.gml", 'graph [ node [ id 1 label "&#55357;" ] edge [ source 1 target 1 ] ]', "", "UTF-8"),
        ("g.mtx", MTX.format("complex") + "2 2 1\n1 2 1 1\n", ":1", "complex"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 2 -1\n", "", "weights"),
        ("g.mtx", MTX.format("real") + "2 2 3\n1 2 1\n", "", "Truncated"),
        ("g.mtx", MTX.format("real") + "9999999999 9999999999 1\n1 2 1\n", "", "9,999,999,999"),
        ("g.mtx", "%%MatrixMarket matrix array real general\n90000 90000\n1\n", "", "90,000"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 2 5E- 1\n", ":3", "5E- 1"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 2 5E-", ":3", "5E-"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 2 5\x00\n", ":3", "number"),
        ("g.mtx", MTX.format("real") + "2 2 1\n1 3 1\n", ":3", "Column"),
        ("g.mtx", MTX.format("real") + "2 2\n1 2 1\n", ":2", "sizes"),
        ("g.mtx", MTX.format("real"), "", "sizes"),
        ("g.mtx", "%%MatrixMarket vector real\n1\n", ":1", "MatrixMarket"),
        ("g.mtx", "%%MatrixMarket matrix array real skew-symmetric\n1 1\n1\n", ":1", "skew-symmetric"),
        ("g.mtx", MTX.format("real") + "% node {\n2 2 1\n1 2 1\n", ":2", "JSON"),
        ("g.mtx", MTX.format("real") + "% node 5\n2 2 1\n1 2 1\n", ":2", "[id]"),
        ("g.mtx", MTX.format("real") + '% attributes "../x.mtx"\n2 2 1\n1 2 1\n', "", "../x.mtx"),
    ],
)  # fmt: skip
def test_files_whose_content_does_not_match_their_name(name, content, place, word, read_malformed):
    message = read_malformed({name: content})
    assert message.startswith(f"{name}{place}: ")
    assert word in message


def test_damaged_attributes_of_our_own_files_are_refused(small_graph, tmp_path):
    for suffix in (".graphml", ".gexf", ".gml"):
        path = tmp_path / f"g{suffix}"
        small_graph.save(path)
        text = path.read_text()
        path.write_text(text.replace("chess", "chass", 1))
        with pytest.raises(GraphError, match="node 'ann'"):
            read_graph(path)


def test_other_attributes_beside_ours_warn(small_graph, tmp_path):
    small_graph.save(tmp_path / "g.gml")
    text = (tmp_path / "g.gml").read_text().replace('label "ann"', 'label "ann" town "x"')
    (tmp_path / "g.gml").write_text(text)
    with pytest.warns(UserWarning, match=r"nodes.*'town'"):
        assert read_graph(tmp_path / "g.gml").digest() == small_graph.digest()


def test_labels_are_read_and_tables_of_nodes_joined(small_graph, tmp_path):
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
    with pytest.raises(ParameterError, match=r"compress.*\.npz"):
        small_graph.save(tmp_path / "g.gml", compress=True)
    small_graph.save(tmp_path / "g.gml")
    with pytest.raises(GraphError, match=r"\.gml.*files"):
        read_graph(tmp_path / "g.gml", attributes="a.txt")
    with pytest.raises(GraphError, match=r"source.*tables? of edges.*\.gml"):
        read_graph(tmp_path / "g.gml", source="u")


def test_every_format_is_declared_once():
    rows = describe_formats()
    assert all(any(f"`{suffix}`" in names for names, _ in rows) for suffix in READABLE)
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
    assert all(f"| {names} | {about} |" in page for names, about in rows)
    with pytest.raises(GraphError) as caught:
        check_graph_target("graph.xyz")
    assert all(suffix in str(caught.value) for suffix in WRITABLE)


def test_suffixes():
    assert all(suffix in find_format(f"a.b{suffix}").suffixes for suffix in READABLE)
    assert find_format("G.GraphML") is find_format("g.graphml.zst") is find_format("g.graphml")
    assert find_format("g.npz.gz") is find_format("g.txt") is find_format("gml") is TEXT
