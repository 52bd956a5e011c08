"""Files that cannot be read, each with the message that says where it is wrong and how to mend it."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.errors import GraphError
from neural_brane.io import read_graph, read_labels

AS_EDGES = "write one edge per line, as 'u v' or 'u v weight'"
AS_BAGS = "is not ID or ID:VALUE; write one node per line, as in '17 3:1 8:1'"
OWN_LINE = "give the node a line of its own in the graph file, or remove this line"
AS_HEADER = "the first line reads as a header 'nodes edges' that announces 9 edges"
MOVE = "mend the count, or, if the line is an edge, move it further down"


def read_malformed(folder: Path, files: dict[str, str | bytes]) -> str:
    """Write the files, read the first as a graph, and return the error without the folder's name.

    The command line must say the same on one line, without a traceback.
    """
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    others = {role: folder / name for role, name in (("attributes", "a.txt"), ("labels", "l.txt")) if name in files}
    with pytest.raises(GraphError) as caught:
        read_graph(folder / next(iter(files)), **others)
    options = [word for role, path in others.items() for word in (f"--{role}", str(path))]
    command = ["embed", str(folder / next(iter(files))), "-o", str(folder / "vectors.npz"), *options]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.stderr) == (2, f"error: {caught.value}\n")
    return str(caught.value).replace(f"{folder}/", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "g.txt: the graph file is empty; write one entry per line"),
        ("# nothing\n\n  \n", "g.txt: the graph file is empty; write one entry per line"),
        ("4 0\n", f"g.txt: the graph has no edges; {AS_EDGES}"),
        ("a\nb\n", f"g.txt: the graph has no edges; {AS_EDGES}"),
        (b"a b\nb \xff\n", "g.txt:2: byte 0xff is not UTF-8; save the graph file as UTF-8 text"),
        (
            b"PK\x03\x04\n\x00\x01",
            "g.txt:2: the file is binary; save the graph file as UTF-8 text",
        ),
        ("a b 1\nb c 1 9\n", f"g.txt:2: the line has more than three columns ('b c 1 9'); {AS_EDGES}"),
        ("a b 1\n\nb c heavy\n", f"g.txt:3: weight 'heavy' is not a finite number above 0; {AS_EDGES}"),
        ("a b -1\n", f"g.txt:1: weight '-1' is not a finite number above 0; {AS_EDGES}"),
        ("a b 1\nb c 0\n", f"g.txt:2: weight '0' is not a finite number above 0; {AS_EDGES}"),
        ("a b 1\nb c nan\n", f"g.txt:2: weight 'nan' is not a finite number above 0; {AS_EDGES}"),
        ("a b inf\n", f"g.txt:1: weight 'inf' is not a finite number above 0; {AS_EDGES}"),
        ("a b 1e99\n", f"g.txt:1: weight '1e99' is not a finite number above 0; {AS_EDGES}"),
        (
            "a b 2\nb c\n",
            "g.txt:2: the edge has no weight, while line 1 has one; weigh all edges or none",
        ),
        (
            "4 2\n0 1\n2 3 5\n",
            "g.txt:3: the edge has a weight, while line 2 has none; weigh all edges or none",
        ),
        (
            "4 3\n0 1\n2 4\n0 2\n",
            "g.txt:3: node 4 is not one of the 4 nodes, 0 to 3, that the header announces; "
            "mend the line or the header, or remove the header to use any ids",
        ),
        (
            "4 2\n0 -1\n2 3\n",
            "g.txt:2: node -1 is not one of the 4 nodes, 0 to 3, that the header announces; "
            "mend the line or the header, or remove the header to use any ids",
        ),
        (
            "4 2\n0 1\n2 3x\n",
            "g.txt:3: the edge '2 3x' names a node, while others number them; "
            "under a header, nodes are all names or all integers from 0 to 3",
        ),
        (
            "4 9\n0 1\n2 3\n",
            f"g.txt:1: {AS_HEADER}, but 2 follow; {MOVE}",
        ),
        (
            "# mine\n3 9\na b\n",
            f"g.txt:2: {AS_HEADER}, but 1 follow; {MOVE}",
        ),
        (
            "2 9\n7 8 0.5\n",
            f"g.txt:1: {AS_HEADER}, but 1 follow; {MOVE}",
        ),
        ("2 2\na b\nb c\n", "g.txt:1: the header announces 2 nodes, but the file names 3; mend the header"),
        (
            "5 1\na b\n",
            "g.txt: the header announces 5 nodes, but only 2 are named; "
            "mend the header, or give each node without edges a line of its own",
        ),
        (
            "source,target\n1,2\n2,3\n",
            "g.txt:1: 'source target' are names, while all other ids are numbers; "
            "put # before column titles, or, if the line is an edge, move it further down",
        ),
    ],
)
def test_graph_file(tmp_path, content, message):
    assert read_malformed(tmp_path, {"g.txt": content}) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.txt: the attribute file is empty; write one entry per line"),
        ("0 1:1\n1 2:x\n", f"a.txt:2: attribute '2:x' {AS_BAGS}"),
        ("0 1:1\n\n1 5 2:\n", f"a.txt:3: attribute '2:' {AS_BAGS}"),
        ("0 :1\n", f"a.txt:1: attribute ':1' {AS_BAGS}"),
        ("0 a::1\n", f"a.txt:1: attribute 'a::1' {AS_BAGS}"),
        ("0 7:nan\n", f"a.txt:1: attribute '7:nan' {AS_BAGS}"),
        ("0 7:1e99\n", f"a.txt:1: attribute '7:1e99' {AS_BAGS}"),
        ("0 1:1\n3 1:1\n", f"a.txt:2: node '3' is not in the graph; {OWN_LINE}"),
        ("0:1 4:1\n", f"a.txt:1: node '0:1' is not in the graph; {OWN_LINE}"),
        ("0 1:1\n1 2\n0 3\n", "a.txt:3: node '0' already has line 1; join the two lines or remove one"),
        (b"0 1:1\n1 \xe9t\xe9\n", "a.txt:2: byte 0xe9 is not UTF-8; save the attribute file as UTF-8 text"),
    ],
)
def test_attribute_file(tmp_path, content, message):
    assert read_malformed(tmp_path, {"g.txt": "3 2\n0 1\n1 2\n", "a.txt": content}) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n", "l.txt: the label file is empty; write one entry per line"),
        ("0\tx\n1\t\n", "l.txt:2: '1' has no label; write a node, a tab and its label, or remove the line"),
        ("0\tx\n0\ty\n", "l.txt:2: node '0' already has line 1; join the two lines or remove one"),
        ("0\tx\nbob\ty\n", f"l.txt:2: node 'bob' is not in the graph; {OWN_LINE}"),
    ],
)
def test_label_file(tmp_path, content, message):
    assert read_malformed(tmp_path, {"g.txt": "3 2\n0 1\n1 2\n", "l.txt": content}) == message


def test_label_file_alone(tmp_path):
    (tmp_path / "l.txt").write_text("a\tx\nb\ty\na\tz\n")
    with pytest.raises(GraphError, match=r"l\.txt:3: node 'a' already has line 1"):
        read_labels(tmp_path / "l.txt")


@pytest.mark.parametrize(
    ("cites", "content", "message"),
    [
        (
            "a b\n",
            "a 0 1 x\nb 0 x\n",
            "p.content:2: the line has 3 columns; expected 4 as in the lines before",
        ),
        ("a b\n", "a\n", "p.content:1: the line has 1 columns; expected an id, values and a label"),
        (
            "a b\n",
            "a 0 x\nb 0 x\na 1 y\n",
            "p.content:3: paper 'a' already has line 1; remove one of the two",
        ),
        (
            "a b\n",
            "a 0 x\nb yes x\n",
            "p.content:2: value 'yes' is not a finite number; write 'id value value ... label'",
        ),
        (
            "a b\nb zoe\n",
            "a 0 x\nb 1 x\n",
            "p.cites:2: paper 'zoe' has no line in p.content; add one there, or remove this line",
        ),
        (
            "a b\nb\n",
            "a 0 x\nb 1 x\n",
            "p.cites:2: the line does not have two columns; write one citation per line, as 'cited citing'",
        ),
        ("", "a 0 x\n", "p.cites: the .cites file is empty; write one entry per line"),
    ],
)
def test_linqs_files(tmp_path, cites, content, message):
    assert read_malformed(tmp_path, {"p.cites": cites, "p.content": content}) == message


GOOD = {
    "adj_data": np.ones(2),
    "adj_indices": np.array([1, 0]),
    "adj_indptr": np.array([0, 1, 2]),
    "adj_shape": np.array([2, 2]),
}
AS_CSR = ": save the matrix as scipy's CSR stores it"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"adj_data": None},
            "g.npz: there is no array 'adj_data', only adj_indices, adj_indptr, adj_shape; a graph",
        ),
        ({"adj_shape": [2, 3]}, "g.npz: adjacency is 2 x 3; give a square matrix, one row per node"),
        (
            {"adj_shape": [4]},
            "g.npz: adj_shape is [4]; expected two whole numbers, rows and columns" + AS_CSR,
        ),
        ({"adj_shape": [3, 3]}, "g.npz: adj_indptr has 3 entries; expected rows + 1, 4" + AS_CSR),
        (
            {"adj_data": np.ones((2, 1))},
            "g.npz: adj_data is float64 with shape (2, 1); expected a flat array",
        ),
        ({"adj_indices": [1.0, 0.0]}, "g.npz: adj_indices is float64 with shape (2,); expected a flat array"),
        (
            {"adj_data": np.ones(3)},
            "g.npz: adj_data has 3 entries, _indices 2, and _indptr ends at 2; expected",
        ),
        (
            {"adj_indptr": [0, 3, 2]},
            "g.npz: adj_indptr falls or does not begin with 0; expected 0 and then rising",
        ),
        ({"adj_indices": [1, 2]}, "g.npz: adj_indices reach beyond the 2 columns; expected 0 to 1" + AS_CSR),
        ({"adj_data": [1, -2]}, "g.npz: adjacency[1, 0] is -2.0; weights must be above 0"),
        ({"adj_data": [1, np.nan]}, "g.npz: adjacency[1, 0] is nan; give finite numbers"),
        ({"adj_data": [0, 0]}, "g.npz: graph 'g' has 2 nodes and no edges; give at least one edge"),
        ({"ids": ["a", "a"]}, "g.npz: ids list 'a' twice; each must be distinct"),
        ({"ids": ["a"]}, "g.npz: adjacency is 2 x 2, and its names say 1 x 1; make them agree"),
        ({"labels": ["x"]}, "g.npz: labels have shape (1,) for 2 nodes; give one label per node"),
        ({"attr_data": [1.0]}, "g.npz: there is no array 'attr_indices'"),
        (
            {"labels": np.array(["x", None])},
            "g.npz: array 'labels' cannot be read (Object arrays cannot be loaded",
        ),
    ],
)
def test_npz_file(tmp_path, change: dict[str, Any], message):
    arrays = {key: value for key, value in (GOOD | change).items() if value is not None}
    np.savez(tmp_path / "draft.npz", **arrays)
    content = (tmp_path / "draft.npz").read_bytes()
    assert read_malformed(tmp_path, {"g.npz": content}).startswith(message)


def test_files_that_are_no_npz(tmp_path):
    assert read_malformed(tmp_path, {"g.npz": "0 1\n"}).startswith("g.npz: this is not an .npz file (")
    assert read_malformed(tmp_path, {"g.npz": ""}).startswith("g.npz: this is not an .npz file (")
    np.save(tmp_path / "one.npy", np.ones(3))
    one = (tmp_path / "one.npy").read_bytes()
    assert read_malformed(tmp_path, {"g.npz": one}).startswith("g.npz: the file holds one array, not the arrays")
    np.savez_compressed(tmp_path / "whole.npz", **GOOD)
    cut = bytearray((tmp_path / "whole.npz").read_bytes())
    with zipfile.ZipFile(tmp_path / "whole.npz") as archive:
        start = archive.getinfo("adj_indices.npy").header_offset + 60
    cut[start : start + 20] = bytes(20)
    assert re.match(r"g\.npz: array 'adj_indices' cannot be read", read_malformed(tmp_path, {"g.npz": bytes(cut)}))


@pytest.mark.parametrize("name", ["g.txt", "g.npz"])
def test_missing_files_and_folders(tmp_path, name):
    with pytest.raises(GraphError, match=rf"{re.escape(name)}: there is no such file; give the path of the "):
        read_graph(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(GraphError, match=rf"{re.escape(name)}: this is a folder; give the graph file in it"):
        read_graph(tmp_path / name)


def test_edges_that_are_all_dropped(tmp_path):
    (tmp_path / "g.txt").write_text("a a\n")
    with pytest.raises(GraphError, match=r"g\.txt: all edges are self-loops; keep them"):
        read_graph(tmp_path / "g.txt", self_loops="drop")
