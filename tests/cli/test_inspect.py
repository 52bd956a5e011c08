"""`brane inspect`: how files are read, and what looks odd."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.files.graphs.formats import write_graph
from neural_brane.files.vectors.formats import VectorFile
from neural_brane.graph import AttributedGraph


@pytest.fixture
def inspect(tmp_path):
    """A function that writes files, inspects the first (with the second as nodes), and returns what is printed."""

    def run(**files: str) -> str:
        words = ["inspect"]
        for name, text in files.items():
            path = tmp_path / name.replace("_", ".")
            path.write_bytes(text.encode())
            words += ["--nodes", str(path)] if name.startswith("nodes") else [str(path)]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        return result.stdout.replace(f"{tmp_path}/", "")

    return run


EDGES = "from,to,weight,kind\nann,bob,1,friend\nbob,ann,2,friend\nbob,bob,3,friend\nann,dan,1,friend\n"


def test_a_table_of_edges(inspect):
    text = inspect(edges_csv=EDGES)
    assert (
        "edges.csv: CSV separated by ',', with a header, UTF-8; edges from 'from' to 'to', weighed by 'weight'" in text
    )
    assert "columns not used: 'kind'" in text
    assert "nodes 3; edges 3; ids strings; weights 1 to 3" in text
    assert "odd: column 'kind' has one value in all rows, 'friend'" in text
    assert "odd: 1 edges are stated again" in text
    assert "odd: 1 edges join a node to itself" in text


def test_a_table_of_nodes_beside_its_edges(inspect):
    text = inspect(edges_csv=EDGES, nodes_csv="name,age,town\nann,31,Ulm\nbob,44,Ulm\neve,22,Bonn\n")
    assert "column of ids name; nodes of the edges with a row 2" in text
    assert "odd: 1 nodes of the edges have no row, such as 'dan'" in text
    assert "odd: 1 ids of column 'name' are in no edge, such as 'eve'" in text
    assert [word in text for word in ("number", "category", "44")] == [True] * 3


def test_a_table_of_nodes_alone_is_no_table_of_edges(inspect):
    text = inspect(people_csv="name,age,town,team\nann,31,Ulm,red\nbob,44,Ulm,red\neve,22,Bonn,blue\n")
    assert "reads as a table of nodes; give it with --nodes" in text


def test_lines_of_words(inspect):
    assert "odd: the first line, '7 2', is read as a header: 7 nodes" in inspect(g_txt="7 2\n1 3\n2 4\n")
    ring = "".join(f"n{at} n{(at + 1) % 9}\n" for at in range(9))
    assert "odd: the first edge, 'one two', names two nodes that no other edge has" in inspect(g_txt=f"one two\n{ring}")
    assert "nothing looks odd" in inspect(g_txt=ring)


def test_what_does_not_print_is_escaped(inspect):
    text = inspect(edges_csv="source,target\nann\x1b[31m,bob\nbob,cid\n")
    assert "\x1b" not in text
    assert "ann\\x1b[31m" in text


def test_graphs_and_vectors_of_ours(tmp_path):
    graph = AttributedGraph.from_edges([("a", "b")], ids=["a", "b", "c"], labels={"a": "x"}, attributes={"a": ["k"]})
    write_graph(graph, tmp_path / "g.npz")
    for name in ("v.npz", "v.txt", "v.tsv", "v.parquet"):
        VectorFile(tmp_path / name).write(graph.ids, [np.eye(3, 5, dtype=np.float32)], dim=5)
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "g.npz")])
    assert "nodes 3; edges 1; attributes 1; classes 1; nodes with a label 1" in result.stdout
    assert "odd: 1 nodes have no edge" in result.stdout
    for name in ("v.npz", "v.txt", "v.tsv", "v.parquet"):
        result = CliRunner().invoke(app, ["inspect", str(tmp_path / name)])
        assert f"{name}: vectors, .{name[2:]}\n  nodes 3; dim 5\n" in result.stdout, name


def test_a_file_that_cannot_be_read_is_one_line_on_stderr(tmp_path):
    text = "graph [\n node [ id 1 ]\n node [ id 2 ]\n edge [ source 1 target 2 ]\n]\n"
    (tmp_path / "g.txt").write_text(text)
    (tmp_path / "g.gml").write_text(text)
    assert "nodes 2; edges 1" in CliRunner().invoke(app, ["inspect", str(tmp_path / "g.gml")]).stdout
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "g.txt")])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path}/g.txt: the graph file is a GML file")
