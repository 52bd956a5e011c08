from __future__ import annotations

import numpy as np
import pytest

from neural_brane.errors import GraphError
from neural_brane.files.graphs.formats import read_graph


def edges_of(graph) -> set[tuple]:
    entries = graph.adjacency.tocoo()
    ids = graph.ids.tolist()
    return {
        (ids[u], ids[v], float(w)) for u, v, w in zip(entries.row, entries.col, entries.data, strict=True) if u <= v
    }


def test_graph_attributes_and_labels(write):
    graph = read_graph(
        write("g.txt", "5 4\n0 1\n1 0\n2 2\n3 0\n"),
        attributes=write("a.txt", "3 8:1 2:1 8:1 \n0 5:2.5 8\n1\n4 2:0 5:1\n"),
        labels=write("l.txt", "0\tred\n4\tdeep blue \n"),
    )
    assert graph.name == "g"
    assert graph.ids.tolist() == [0, 1, 2, 3, 4]
    assert edges_of(graph) == {(0, 1, 1), (2, 2, 1), (0, 3, 1)}
    assert graph.attribute_names.tolist() == [2, 5, 8]
    assert graph.attributes.toarray().tolist() == [[0, 2.5, 1], [0, 0, 0], [0, 0, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.labels.tolist() == ["red", "", "", "", "deep blue"]


def test_weights_and_rules(write):
    path = write("g.txt", "3 4\n0 1 0.5\n1 0 2\n2 2 1e1\n1 2 .25")
    assert edges_of(read_graph(path)) == {(0, 1, 2), (2, 2, 10), (1, 2, 0.25)}
    assert edges_of(read_graph(path, duplicates="sum")) == {(0, 1, 2.5), (2, 2, 10), (1, 2, 0.25)}
    assert edges_of(read_graph(path, self_loops="drop")) == {(0, 1, 2), (1, 2, 0.25)}


@pytest.mark.parametrize(
    "text",
    [
        "a b\nb c\n",
        "# people\n\n  a\tb\r\nb , c  \r\n\r\n",
        "a,b\nb,c",
        "\ufeffa b\rb c\r",
        "3 2\na b\nb c\n",
    ],
)
def test_edge_lists_in_common_layouts(write, text):
    graph = read_graph(write("g.csv", text))
    assert graph.ids.tolist() == ["a", "b", "c"]
    assert edges_of(graph) == {("a", "b", 1), ("b", "c", 1)}


@pytest.mark.parametrize(
    ("text", "ids", "edges"),
    [
        ("1 2\n2 3\n3 1\n", [1, 2, 3], {(1, 2, 1), (2, 3, 1), (1, 3, 1)}),  # two edges follow the line '1 2' by chance
        ("0 1\n1 2\n", [0, 1, 2], {(0, 1, 1), (1, 2, 1)}),
        ("0 1\n0 2\n0 3\n", [0, 1, 2, 3], {(0, 1, 1), (0, 2, 1), (0, 3, 1)}),
        ("4 2\n0 1\n0 3\n", [0, 1, 2, 3], {(0, 1, 1), (0, 3, 1)}),
        ("2 5\n0 1\n1 0\n0 0\n1 1\n0 1\n", [0, 1], {(0, 0, 1), (0, 1, 1), (1, 1, 1)}),  # a header: repeats count
        ("7 3 1\n3 9 2\n", [3, 7, 9], {(3, 7, 1), (3, 9, 2)}),
        ("3 1\n0 2 4\n", [0, 1, 2], {(0, 2, 4)}),
        ("-5 7\n7 900719925474099267\n", [-5, 7, 900719925474099267], {(-5, 7, 1), (7, 900719925474099267, 1)}),
        ("007 7\n7 8\n", ["007", "7", "8"], {("007", "7", 1), ("7", "8", 1)}),
        ("1 2\nx 2\n3 1\n", ["1", "2", "x", "3"], {("1", "2", 1), ("2", "x", 1), ("1", "3", 1)}),
        ("5\n1 2\n3\n2 1\n", [1, 2, 3, 5], {(1, 2, 1)}),
        ("b\na c\n", ["b", "a", "c"], {("a", "c", 1)}),
    ],
)
def test_with_and_without_header(write, text, ids, edges):
    graph = read_graph(write("g.txt", text))
    assert graph.ids.tolist() == ids
    assert edges_of(graph) == edges


def test_the_other_files_name_nodes_that_only_the_header_counts(write):
    graph = read_graph(
        write("g.txt", "5 2\nb a\na c\n"),
        attributes=write("a.txt", "a x\nd y\n"),
        labels=write("l.txt", "d one\ne two\n"),
    )
    assert graph.ids.tolist() == ["b", "a", "c", "d", "e"]
    assert graph.attributes.toarray().tolist() == [[0, 0], [1, 0], [0, 0], [0, 1], [0, 0]]
    assert graph.labels.tolist() == ["", "", "", "one", "two"]


def test_a_large_file_reads_as_it_was_written(write):
    random = np.random.default_rng(0)
    ends = random.integers(0, 3000, size=(20_000, 2))
    bags = random.integers(0, 500, size=(3000, 5))
    graph = read_graph(
        write("g.txt", "3000 20000\n" + "\n".join(f"{u} {v}" for u, v in ends)),
        attributes=write("a.txt", "".join(f"{n} {' '.join(map(str, bag))}\n" for n, bag in enumerate(bags))),
    )
    assert edges_of(graph) == {(min(u, v), max(u, v), 1) for u, v in ends.tolist()}
    entries = graph.attributes.tocoo()
    found = set(zip(entries.row.tolist(), graph.attribute_names[entries.col].tolist(), strict=True))
    assert found == {(node, name) for node, bag in enumerate(bags.tolist()) for name in bag}


def test_edges_that_are_all_dropped(tmp_path):
    (tmp_path / "g.txt").write_text("a a\n")
    with pytest.raises(GraphError, match=r"g\.txt.*edges"):
        read_graph(tmp_path / "g.txt", self_loops="drop")
