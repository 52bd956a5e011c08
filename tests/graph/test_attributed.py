from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from neural_brane.errors import GraphError, ParameterError
from neural_brane.files.graphs.formats import read_graph
from neural_brane.graph import AttributedGraph, adjacency, attributed


def dense(graph: AttributedGraph) -> list[list[float]]:
    return graph.adjacency.toarray().tolist()


def test_small_graph_has_the_form_that_later_stages_trust(small_graph):
    matrix, bags = small_graph.adjacency, small_graph.attributes
    assert len(small_graph) == 12
    assert small_graph.edges == 14
    assert (matrix.toarray() == matrix.toarray().T).all()
    assert matrix.has_canonical_format
    assert bags.has_canonical_format
    assert {matrix.dtype, bags.dtype} == {np.dtype(np.float32)}
    assert {matrix.indices.dtype, matrix.indptr.dtype, bags.indices.dtype} == {np.dtype(np.int32)}
    assert small_graph.attribute_names.tolist() == ["chess", "opera", "tea", "rugby", "beer"]
    assert small_graph.classes.tolist() == ["club", "town"]
    kim, ian = small_graph.ids.tolist().index("kim"), small_graph.ids.tolist().index("ian")
    assert small_graph.labels[kim] == ""
    assert matrix[[kim]].nnz == 0
    assert bags[[ian]].nnz == 0
    assert repr(small_graph) == "AttributedGraph('small': 12 nodes, 14 edges, 5 attributes, 2 classes)"


@pytest.mark.parametrize(("duplicates", "weight"), [("max", 3.0), ("sum", 6.0)])
def test_repeated_edges_are_merged(duplicates, weight):
    edges = [("a", "b"), ("b", "a"), ("a", "b")]
    graph = AttributedGraph.from_edges(edges, [1, 2, 3], duplicates=duplicates)
    assert dense(graph) == [[0, weight], [weight, 0]]
    assert graph.edges == 1


@pytest.mark.parametrize(("self_loops", "expected"), [("keep", [[2, 1], [1, 0]]), ("drop", [[0, 1], [1, 0]])])
@pytest.mark.parametrize("duplicates", ["max", "sum"])
def test_self_loops_are_kept_or_dropped(self_loops, expected, duplicates):
    by_edges = AttributedGraph.from_edges([(0, 0), (1, 0)], [2, 1], self_loops=self_loops, duplicates=duplicates)
    symmetric = np.array([[2, 1], [1, 0]])
    by_matrix = AttributedGraph.from_sparse(symmetric, self_loops=self_loops, duplicates=duplicates)
    directed = AttributedGraph.from_sparse(np.tril(symmetric), self_loops=self_loops, duplicates=duplicates)
    assert dense(by_edges) == dense(by_matrix) == dense(directed) == expected


def test_order_of_nodes():
    assert AttributedGraph.from_edges([(9, 2), (5, 2)]).ids.tolist() == [2, 5, 9]
    assert AttributedGraph.from_edges([("z", "b"), ("a", "z")]).ids.tolist() == ["z", "b", "a"]
    assert AttributedGraph.from_edges([(10**15, 3)]).ids.tolist() == [3, 10**15]
    assert AttributedGraph.from_edges([("z", "b")], ids=["a", "b", "z"]).ids.tolist() == ["a", "b", "z"]
    assert AttributedGraph.from_edges([(0, 1)], nodes=3).ids.tolist() == [0, 1, 2]


def test_attributes_and_labels_by_id_or_by_row():
    edges = [("a", "b"), ("b", "c")]
    by_id = AttributedGraph.from_edges(edges, attributes={"c": ["x", "x"], "a": {"y": 2.5, "x": 0}}, labels={"b": 7})
    matrix = sparse.csr_array([[2.5, 0.0], [0, 0], [0, 1]])
    by_row = AttributedGraph.from_edges(
        edges, attributes=matrix[:, [1, 0]], attribute_names=["x", "y"], labels=["", 7, None]
    )
    assert by_id.attribute_names.tolist() == ["x", "y"]
    assert by_id.attributes.toarray().tolist() == [[0, 2.5], [0, 0], [1, 0]]
    assert by_id.labels.tolist() == ["", "7", ""]
    assert by_id.digest() == by_row.digest()


def test_directed_matrices_are_symmetrised_by_rule_and_symmetric_ones_left_alone():
    directed = sparse.coo_array(([1.0, 4.0, 2.0], ([0, 1, 1], [1, 0, 2])), shape=(3, 3))
    assert dense(AttributedGraph.from_sparse(directed)) == [[0, 4, 0], [4, 0, 2], [0, 2, 0]]
    assert dense(AttributedGraph.from_sparse(directed, duplicates="sum")) == [[0, 5, 0], [5, 0, 2], [0, 2, 0]]
    symmetric = AttributedGraph.from_sparse(directed).adjacency
    again = AttributedGraph.from_sparse(symmetric, duplicates="sum")
    assert (again.adjacency != symmetric).nnz == 0
    assert np.shares_memory(again.adjacency.data, symmetric.data)


def test_a_given_matrix_is_not_changed():
    data, rows, columns = np.array([1.0, 0, 2, 2]), np.array([0, 0, 1, 1]), np.array([2, 1, 0, 0])
    given = sparse.csr_array((data.astype(np.float32), columns, np.array([0, 2, 4, 4])), shape=(3, 3))
    graph = AttributedGraph.from_sparse(given)
    assert dense(graph) == [[0, 4, 1], [4, 0, 0], [1, 0, 0]]
    assert given.indices.tolist() == columns.tolist()
    assert given.data.tolist() == data.tolist()
    assert rows.tolist() == [0, 0, 1, 1]


def test_networkx_graphs_of_every_kind():
    directed = nx.MultiDiGraph(name="club")
    directed.add_node("ann", attributes=["chess"], label="x")
    directed.add_node("zoe")
    directed.add_edge("ann", "bob", weight=2.0)
    directed.add_edge("bob", "ann", weight=3.0)
    directed.add_edge("bob", "bob")
    graph = AttributedGraph.from_networkx(directed)
    assert graph.name == "club"
    assert graph.ids.tolist() == ["ann", "zoe", "bob"]
    assert dense(graph) == [[0, 0, 3], [0, 0, 0], [3, 0, 1]]
    assert graph.attributes.toarray().tolist() == [[1], [0], [0]]
    assert graph.labels.tolist() == ["x", "", ""]
    summed = AttributedGraph.from_networkx(directed, duplicates="sum", self_loops="drop")
    assert dense(summed) == [[0, 0, 5], [0, 0, 0], [5, 0, 0]]
    karate = AttributedGraph.from_networkx(nx.karate_club_graph(), label="club")
    assert karate.ids.tolist() == list(range(34))
    assert karate.edges == 78
    assert karate.classes.tolist() == ["Mr. Hi", "Officer"]
    mixed = AttributedGraph.from_networkx(nx.Graph([(1, "b"), ((0, 1), "b")]))
    assert mixed.ids.tolist() == ["1", "b", "(0, 1)"]
    assert mixed.labels is None
    with pytest.raises(GraphError, match=r"ids.*'1'.*twice"):
        AttributedGraph.from_networkx(nx.Graph([(1, "1")]))


def test_the_digest_differs_between_graphs_and_ignores_the_name(small_graph):
    assert small_graph.renamed("other").digest() == small_graph.digest()
    assert len(small_graph.digest()) == 16
    heavier = small_graph.adjacency * np.float32(2)
    others = [
        small_graph.relabelled(None),
        small_graph.relinked(heavier),
        replace(small_graph, ids=np.arange(12)),
        replace(small_graph, attribute_names=np.array(list("vwxyz"))),
        replace(small_graph, attributes=small_graph.attributes * np.float32(2)),
    ]
    assert len({graph.digest() for graph in [small_graph, *others]}) == 6


PARTS = ("adjacency", "attributes", "ids", "attribute_names", "labels", "name")


@pytest.mark.parametrize(
    ("change", "part", "value"),
    [
        (lambda graph: graph.renamed("other"), "name", "other"),
        (lambda graph: graph.relabelled(["x"] * 12), "labels", np.array(["x"] * 12)),
        (lambda graph: graph.relabelled({"ann": 7}), "labels", np.array(["7"] + [""] * 11)),
        (lambda graph: graph.relabelled(None), "labels", None),
    ],
)
def test_a_graph_that_differs_in_one_part_shares_the_others(change, part, value, small_graph):
    before = {part: getattr(small_graph, part) for part in PARTS}
    other = change(small_graph)
    np.testing.assert_array_equal(getattr(other, part), value)
    for name in PARTS:
        assert getattr(small_graph, name) is before[name]
        assert name == part or getattr(other, name) is before[name]


def test_a_graph_with_other_edges_shares_its_nodes_and_is_checked(small_graph):
    doubled = small_graph.adjacency * np.float32(2)
    other = small_graph.relinked(doubled)
    assert other.adjacency is doubled
    assert (other.ids, other.attributes, other.labels) == (small_graph.ids, small_graph.attributes, small_graph.labels)
    with pytest.raises(GraphError, match=r"edge weight.* -4\.0"):
        small_graph.relinked(-small_graph.adjacency)
    with pytest.raises(GraphError, match=r"labels.*3.*12"):
        small_graph.relabelled(["x"] * 3)


@pytest.fixture
def checks(monkeypatch):
    """Names of the checks of all entries or all ids, in the order in which they ran."""
    ran = []

    def count(module, name):
        check = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, **options: ran.append(name) or check(*given, **options))

    count(adjacency, "is_symmetric")
    count(attributed, "check_adjacency")
    count(attributed, "check_matrix")
    count(attributed, "check_names")
    return ran


ALL_PARTS = ["check_adjacency", "check_matrix", "check_names", "check_names"]


def test_a_graph_is_checked_once(checks, small_graph, tmp_path):
    checks.clear()  # forget the checks of small_graph
    small_graph.renamed("other").relabelled(["x"] * 12).relabelled(None)
    assert checks == []
    small_graph.relinked(small_graph.adjacency)
    assert checks == ["check_adjacency"]
    checks.clear()
    AttributedGraph.from_edges([(0, 1)])
    assert checks == ALL_PARTS
    checks.clear()
    AttributedGraph.from_sparse(small_graph.adjacency)
    assert checks == ["is_symmetric", *ALL_PARTS]


def test_a_symmetrised_matrix_is_not_checked_for_symmetry(checks, tmp_path):
    (tmp_path / "g.txt").write_text("a b\nb c\n")
    (tmp_path / "p.content").write_text("a\t1\tx\nb\t0\ty\n")
    (tmp_path / "p.cites").write_text("a\tb\n")
    for name in ("g.txt", "p.cites"):
        checks.clear()
        read_graph(tmp_path / name)
        assert checks == ALL_PARTS


PAIR = [(0, 1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edges": [], "nodes": 2}, "2 nodes, no edges and no attributes"),
        ({"edges": [(1, 2, 3)]}, r"edges.*\(1, 3\)"),
        ({"edges": [(1, 2), (3,)]}, "edges.*array.*pairs"),
        ({"edges": [(1.5, 2.0)]}, "edge 0 is 1.5, a float"),
        ({"edges": PAIR, "weights": [1, 2]}, r"weights have shape \(2,\) for 1 edges"),
        ({"edges": PAIR, "weights": [0]}, "weight of edge 0 is 0"),
        ({"edges": PAIR, "weights": [float("nan")]}, "the weight of edge 0 is NaN"),
        ({"edges": PAIR, "weights": [1e-60]}, "the weight of edge 0 is 1e-60"),
        ({"edges": PAIR, "weights": ["heavy"]}, "weights cannot be read as numbers"),
        ({"edges": [(0, 1), (1, 5)], "nodes": 3}, "edge 1.*node 5.*3 ids"),
        ({"edges": PAIR, "ids": [0, 1, 1]}, "ids.* 1 twice"),
        ({"edges": [(1, 1)], "self_loops": "drop"}, "1 nodes, no edges and no attributes"),
        ({"edges": PAIR, "attributes": {7: ["x"]}}, "attributes.*node 7"),
        ({"edges": PAIR, "attributes": {0: "word"}}, "attributes of node 0.*'word'"),
        ({"edges": PAIR, "attributes": np.eye(3)}, "attributes are 3 x 3 for 2 nodes"),
        ({"edges": PAIR, "attributes": [[np.nan], [1]]}, r"attributes\[0, 0\] \(attribute 0 of node 0\) is NaN"),
        ({"edges": PAIR, "attributes": np.eye(2), "attribute_names": "a"}, "attribute_names.*shape"),
        ({"edges": PAIR, "attributes": np.eye(2), "attribute_names": ["a"]}, "attributes.*2 x 2.*names.*2 x 1"),
        ({"edges": PAIR, "labels": ["a"]}, r"labels have shape \(1,\) for 2 nodes"),
        ({"edges": PAIR, "labels": {9: "a"}}, "labels name node 9"),
    ],
)
def test_from_edges_describes_wrong_input(arguments, message):
    with pytest.raises(GraphError, match=message):
        AttributedGraph.from_edges(**arguments)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), "adjacency.*2 x 3"),
        (np.array([[0, -1], [-1, 0]]), r"adjacency\[0, 1\] is -1\.0.*weights"),
        (np.array([[0, np.inf], [1, 0]]), r"adjacency\[0, 1\] is inf"),
        (np.zeros((2, 2)), "2 nodes, no edges and no attributes"),
        (np.array([["a"]]), "adjacency cannot be read as numbers"),
    ],
)
def test_from_sparse_describes_wrong_input(matrix, message):
    with pytest.raises(GraphError, match=message):
        AttributedGraph.from_sparse(matrix)


def test_the_constructor_refuses_arrays_of_another_form(small_graph):
    unsorted = sparse.csr_array(small_graph.adjacency, copy=True)
    unsorted.indices[:2] = unsorted.indices[1::-1]
    unsorted.has_sorted_indices = unsorted.has_canonical_format = False
    for change, message in [
        ({"adjacency": small_graph.adjacency.tocoo()}, "coo_array.*csr_array"),
        ({"adjacency": unsorted}, "adjacency is unsorted"),
        ({"adjacency": -small_graph.adjacency}, r"edge weight.* -4\.0"),
        ({"ids": np.arange(12.0)}, "ids are float64"),
        ({"labels": np.zeros(12)}, "labels are float64"),
    ]:
        with pytest.raises(GraphError, match=message):
            replace(small_graph, **change)


@pytest.mark.parametrize("rule", [{"duplicates": "first"}, {"self_loops": "no"}])
def test_rules_that_do_not_exist_are_refused(rule):
    with pytest.raises(ParameterError, match=r"is '(first|no)'; give '(max|keep)'"):
        AttributedGraph.from_edges(PAIR, **rule)
    with pytest.raises(ParameterError, match=r"is '(first|no)'; give '(max|keep)'"):
        AttributedGraph.from_sparse(np.eye(2), **rule)
