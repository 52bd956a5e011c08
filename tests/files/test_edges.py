"""Graph files that cannot be read, each with the message that says where it is wrong and how to mend it."""

from __future__ import annotations

import pytest

AS_EDGES = "write one edge per line, as 'u v' or 'u v weight'"
AS_HEADER = "the first line reads as a header 'nodes edges' that announces 9 edges"
MOVE = "mend the count, or, if the line is an edge, move it further down"


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
            "g.txt: the graph file is a zip file; unpack it and give the file in it; a graph of ours ends in .npz",
        ),
        (
            b"a b\nb \x00\x01",
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
            "x y\n1 2\n2 3\n",
            "g.txt:1: 'x y' are names, while all other ids are numbers; "
            "put # before column titles, or, if the line is an edge, move it further down",
        ),
        ("source target\nann bob\n", "g.txt:1: 'source target' are titles of columns; put # before them"),
        (
            "ann bob\nbob nan\n",
            "g.txt:2: 'nan' stands for no value, and an edge needs two nodes; remove the line",
        ),
        (
            "graph [\n node [ id 1 ]\n edge [ source 1 target 1 ]\n]\n",
            "g.txt: the graph file is a GML file; name it so that it ends in .gml",
        ),
        (
            'Creator "igraph"\nVersion 1\ngraph\n[\n  directed 0\n',
            "g.txt: the graph file is a GML file; name it so that it ends in .gml",
        ),
        (
            '<?xml version="1.0"?>\n<graphml></graphml>\n',
            "g.txt: the graph file is a GraphML file; name it so that it ends in .graphml",
        ),
        (
            '{"nodes": [], "links": []}\n',
            "g.txt: the graph file is a JSON file; "
            "write JSON lines, one object per line, as in: jq -c '.[]' FILE > FILE.jsonl",
        ),
        (
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n",
            "g.txt: the graph file is a Matrix Market file; name it so that it ends in .mtx",
        ),
    ],
)
def test_graph_file(read_malformed, content, message):
    assert read_malformed({"g.txt": content}) == message
