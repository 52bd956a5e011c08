"""A graph written and read in each format has bit-identical ids, weights, attributes and labels."""

import gzip

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from neural_brane import AttributedGraph, load
from neural_brane.errors import GraphError
from neural_brane.files.graphs.by_networkx import spell_numbers
from neural_brane.files.graphs.formats import WRITABLE, read_graph, write_graph

NAMES = [
    "Jean Valjean",
    "007",
    "7",
    'say "hi"',
    "a,b;c|d",
    "José ☃ 🎈",
    "a<b>&amp;",
    "tab\tnew\nline\r",
    " padded ",
    "nan",
]


def awkward(ids: list, attribute_names: list) -> AttributedGraph:
    """Return ten nodes with weights of all sizes, a self-loop, isolated nodes and an attribute without entries."""
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (2, 2), (3, 4), (0, 5), (5, 6)]
    weights = (rng.random(6) * 10.0 ** rng.integers(-30, 30, 6)).astype(np.float32)
    weights[:3] = 0.1, np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal
    rows, columns = [0, 0, 1, 4, 7, 9], [0, 1, 2, 3, 1, 0]
    amounts = np.array([1, -1 / 3, 1e-20, 1, 16777217, 1], dtype=np.float32)
    return AttributedGraph.from_edges(
        [(ids[u], ids[v]) for u, v in edges],
        weights,
        ids=ids,
        attributes=sparse.coo_array((amounts, (rows, columns)), shape=(10, 5)),
        attribute_names=attribute_names,
        labels=["x y", 'q"uote', "", "é", "007", "<&>", "", " s ", "x y", "nan"],
    )


GRAPHS = {
    "strings": awkward(NAMES, ["two words", "007", "7", 'q"', "é\n"]),
    "integers": awkward([7, 0, -3, 2**62, 5, 6, 8, 9, 10, 11], [5, 4, 3, 2, 1]),
    "digits": awkward([str(at) for at in range(10)], ["0", "1", "2", "3", "4"]),
    "plain": AttributedGraph.from_edges([(0, 1), (1, 2)], nodes=5),
    "unlabelled": AttributedGraph.from_edges([("a", "b")], labels=["", ""]),
}


def same(found: AttributedGraph, expected: AttributedGraph) -> None:
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.attribute_names.tolist() == expected.attribute_names.tolist()
    assert (found.labels is None) == (expected.labels is None)
    assert expected.labels is None or found.labels.tolist() == expected.labels.tolist()
    for part in ("data", "indices", "indptr"):
        for matrix in ("adjacency", "attributes"):
            np.testing.assert_array_equal(
                getattr(getattr(found, matrix), part), getattr(getattr(expected, matrix), part)
            )
    assert found.digest() == expected.digest()


@pytest.mark.parametrize("suffix", WRITABLE)
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_graph_comes_back_the_same(graph, suffix, tmp_path):
    path = tmp_path / f"some graph{suffix}"
    GRAPHS[graph].save(path)
    again = read_graph(path)
    same(again, GRAPHS[graph])
    assert again.name == "some graph"


@pytest.mark.parametrize("suffix", WRITABLE)
def test_the_small_graph_and_a_real_one(suffix, small_graph, tmp_path):
    for graph in (small_graph, load("stdlib")):
        write_graph(graph, tmp_path / f"g{suffix}")
        same(read_graph(tmp_path / f"g{suffix}"), graph)


@pytest.mark.parametrize("graph", GRAPHS)
def test_scipy_reads_the_npz_file_that_keeps_the_whole_graph(graph, tmp_path):
    GRAPHS[graph].save(tmp_path / "g.npz", layout="scipy")
    same(read_graph(tmp_path / "g.npz"), GRAPHS[graph])
    assert (sparse.load_npz(tmp_path / "g.npz") != GRAPHS[graph].adjacency).nnz == 0


@pytest.mark.parametrize("suffix", WRITABLE[1:])
def test_compressed_files(suffix, small_graph, tmp_path):
    small_graph.save(tmp_path / f"g{suffix}")
    (tmp_path / f"g{suffix}.gz").write_bytes(gzip.compress((tmp_path / f"g{suffix}").read_bytes()))
    same(read_graph(tmp_path / f"g{suffix}.gz"), small_graph)


@pytest.mark.parametrize(
    ("suffix", "read"), [(".graphml", nx.read_graphml), (".gexf", nx.read_gexf), (".gml", nx.read_gml)]
)
def test_networkx_reads_what_we_write(suffix, read, small_graph, tmp_path):
    small_graph.save(tmp_path / f"g{suffix}")
    other = read(tmp_path / f"g{suffix}")
    assert list(other) == small_graph.ids.tolist()
    assert other.edges["dan", "eve"]["weight"] == 3
    assert other.number_of_edges() == 14


@pytest.mark.parametrize("character", ["\x07", "\ufffe"])
@pytest.mark.parametrize("suffix", [".graphml", ".gexf"])
def test_characters_that_xml_cannot_hold_are_refused_and_leave_no_file(suffix, character, tmp_path):
    graph = AttributedGraph.from_edges([("a", f"b{character}")])
    with pytest.raises(GraphError, match=rf"g\{suffix}: XML .*character.*\.npz"):
        graph.save(tmp_path / f"g{suffix}")
    assert list(tmp_path.iterdir()) == []
    graph.save(tmp_path / "g.gml")
    same(read_graph(tmp_path / "g.gml"), graph)


def test_numbers_of_every_size_read_back_the_same_through_double_precision():
    numbers = np.random.default_rng(0).integers(0, 2**31 - 2**23, 20_000, dtype=np.int32).view(np.float32)
    words = spell_numbers(numbers)
    np.testing.assert_array_equal(words.astype(np.float64).astype(np.float32), numbers)
    assert spell_numbers(np.array([0.1, 1e-5, 3], np.float32)).tolist() == ["0.1", "1e-05", "3.0"]
