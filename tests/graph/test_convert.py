"""The same graph can be given in every supported form."""

import networkx as nx
import numpy as np
import polars as pl
import pytest
from scipy import sparse

from neural_brane import AttributedGraph, Attributes
from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.graph.convert import as_graph

WEIGHTS = np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
TRAITS = np.array([[1, 0], [1, 3], [0, 2]])


def same(graph, attributes=True):
    assert graph.adjacency.toarray().tolist() == WEIGHTS.tolist()
    assert graph.attributes.toarray().tolist() == (TRAITS.tolist() if attributes else [[], [], []])
    return graph


def test_a_graph_is_returned_itself(small_graph):
    assert as_graph(small_graph) is small_graph


@pytest.mark.parametrize("kind", [np.array, sparse.coo_array, sparse.lil_matrix])
def test_an_adjacency_alone_or_with_attributes(kind):
    same(as_graph(kind(WEIGHTS)), attributes=False)
    same(as_graph((kind(WEIGHTS), kind(TRAITS))))
    same(as_graph([kind(WEIGHTS), TRAITS.tolist()]))
    same(as_graph((kind(WEIGHTS), None)), attributes=False)


def test_networkx():
    graph = nx.Graph()
    graph.add_weighted_edges_from([("a", "b", 2), ("b", "c", 1)])
    assert same(as_graph(graph), attributes=False).ids.tolist() == ["a", "b", "c"]


def test_frames_of_pandas_join_by_index():
    pandas = pytest.importorskip("pandas", reason="these are frames of pandas")
    adjacency = pandas.DataFrame(WEIGHTS, index=list("abc"), columns=list("abc"))
    traits = pandas.DataFrame(TRAITS, index=list("abc"), columns=["x", "y"])
    for given in ((adjacency, traits), (adjacency[["c", "a", "b"]], traits.loc[["c", "b", "a"]])):
        graph = same(as_graph(given))
        assert graph.ids.tolist() == ["a", "b", "c"]
        assert graph.attribute_names.tolist() == ["x", "y"]
    assert same(as_graph(adjacency), attributes=False).ids.tolist() == ["a", "b", "c"]
    same(as_graph((WEIGHTS, traits.reset_index(drop=True).loc[[2, 0, 1]])))
    with pytest.raises(GraphError, match=r"3 nodes.*0"):
        as_graph((WEIGHTS, traits))
    with pytest.raises(GraphError, match=r"pandas\..*DataFrame.*give an AttributedGraph"):
        as_graph(traits)


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_a_pair_of_tables_is_edges_and_nodes(library):
    pytest.importorskip(library, reason=f"these are tables of {library}")
    edges = pl.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "weight": [2, 1]})
    nodes = pl.DataFrame({"id": ["a", "b", "c"], "town": ["x", "y", "x"]})
    change = {"polars": lambda table: table, "pandas": pl.DataFrame.to_pandas, "pyarrow": pl.DataFrame.to_arrow}[
        library
    ]
    if library == "pandas":
        pytest.importorskip("pyarrow", reason="polars makes frames of pandas with it")
    graph = as_graph((change(edges), change(nodes)))
    assert graph.adjacency.toarray().tolist() == WEIGHTS.tolist()
    assert graph.attribute_names.tolist() == ["town=x", "town=y"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "NoneType.*AttributedGraph.*NetworkX"),
        ([(0, 1), (1, 2), (2, 0.5)], "list of 3 .*graph"),
        ([[0, 1], [1, 0]], "pair of list of 2 and list of 2 .*graph"),
        ("graph.txt", r"path.*neural_brane\.read\('graph\.txt'\)"),
        (pl.DataFrame({"a": [1]}), r"polars\..*DataFrame .*graph"),
        (np.ones((5, 2)), "matrix of 5 x 2.*prefix"),
        (pl.DataFrame({"a": ["x"], "b": ["y"]}), r"polars\..*DataFrame .*'source'"),
        ((WEIGHTS, "words"), "pair of numpy.ndarray and str .*graph"),
        ((WEIGHTS, TRAITS, WEIGHTS), "tuple of 3 .*graph"),
    ],
)
def test_other_inputs_are_refused_with_a_list_of_accepted_ones(source, message):
    with pytest.raises(GraphError, match=message):
        as_graph(source)


@pytest.mark.parametrize("edges", [[("a", "b"), ("b", "c")], [("a", "b"), ("b", "c"), ("a", "c")], [(1, 2)]])
def test_a_list_of_pairs_is_edges(edges):
    assert as_graph(edges).digest() == AttributedGraph.from_edges(edges).digest()


def test_a_table_of_edges_alone_is_recognised_by_its_titles():
    table = pl.DataFrame({"since": [2001, 2002], "from": ["a", "b"], "to": ["b", "c"]})
    with pytest.warns(ReadingWarning, match="'since'"):
        assert as_graph(table).ids.tolist() == ["a", "b", "c"]


def test_methods_accept_every_input_that_can_be_converted():
    expected = Attributes(dim=2, seed=0).fit_transform(AttributedGraph.from_sparse(WEIGHTS, TRAITS)).vectors
    method = Attributes(dim=2, seed=0).fit((sparse.dok_array(WEIGHTS), np.asfortranarray(TRAITS)))
    np.testing.assert_array_equal(method.embedding_.vectors, expected)
    np.testing.assert_allclose(method.transform((WEIGHTS, TRAITS)).vectors, expected, rtol=1e-5, atol=1e-6)
