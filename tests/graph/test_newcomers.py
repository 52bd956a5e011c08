import numpy as np
import pytest
from scipy import sparse

from neural_brane import AttributedGraph
from neural_brane.errors import GraphError
from neural_brane.graph.changes import align, find_newcomers

PAIR = [("zoe", "yan")]


@pytest.fixture
def known():
    edges = [("ann", "bob"), ("bob", "cid"), ("cid", "dan")]
    return AttributedGraph.from_edges(edges, attributes={"ann": ["chess"], "cid": ["tea"], "dan": ["tea", "chess"]})


def given(edges, attributes=None, **options):
    return AttributedGraph.from_edges(edges, attributes=attributes, name="new", **options)


def test_newcomers_bring_attributes_by_name_and_links_by_id(known):
    new = find_newcomers(
        known,
        given(
            [("zoe", "ann"), ("cid", "zoe"), ("yan", "zoe")], {"zoe": {"tea": 2}, "yan": ["chess"]}, weights=[1, 3, 5]
        ),
    )
    assert new.given.ids[new.rows].tolist() == ["zoe", "yan"]
    names = known.attribute_names.tolist()
    assert new.attributes.toarray()[0].tolist() == [2 * (name == "tea") for name in names]
    assert new.links.toarray().tolist() == [[1, 0, 3, 0], [0, 0, 0, 0]]
    assert new.among.toarray().tolist() == [[0, 5], [5, 0]]
    assert new.made_from.tolist() == ["attributes and links", "attributes and links"]


def test_newcomers_with_attributes_need_no_link(known):
    lone = AttributedGraph.from_sparse(
        np.zeros((2, 2)), np.eye(2), ids=["zoe", "yan"], attribute_names=["tea", "chess"]
    )
    new = find_newcomers(known, lone)
    assert new.made_from.tolist() == ["attributes", "attributes"]
    assert new.links.nnz == new.among.nnz == 0


def test_unknown_attributes_and_nodes_give_warnings(known):
    with pytest.warns(UserWarning, match=r"1.*2 attributes.*'new'"):
        new = find_newcomers(known, given([("zoe", "ann")], {"zoe": ["golf", "tea"]}))
    assert new.attributes.nnz == 1
    with pytest.warns(UserWarning, match=r"1 nodes.*'new'.*'yan'"):
        found = find_newcomers(known, given([("zoe", "ann"), ("yan", "yan")])).made_from
    assert found.tolist() == ["links", "nothing"]
    with pytest.raises(GraphError, match=r"node.*'new'"):
        find_newcomers(known, given([("yan", "zoe")]))


def test_known_nodes_with_other_attributes_give_a_warning(known):
    with pytest.warns(UserWarning, match=r"'ann'.*ids"):
        find_newcomers(known, given([("zoe", "ann")], {"ann": ["tea"]}))


def test_all_of_them_make_one_graph(known):
    whole = find_newcomers(known, given([("zoe", "ann"), ("yan", "zoe")], {"yan": ["chess"]})).together()
    assert whole.ids.tolist() == ["ann", "bob", "cid", "dan", "zoe", "yan"]
    assert whole.edges == known.edges + 2
    assert (whole.adjacency != whole.adjacency.T).nnz == 0


def test_attributes_are_matched_by_name_not_by_place(small_graph):
    aligned = align(given(PAIR, {"zoe": {"tea": 3.0, "chess": 2.0}}), small_graph.attribute_names)
    assert aligned.shape == (2, len(small_graph.attribute_names))
    named = dict(zip(small_graph.attribute_names.tolist(), aligned.toarray()[0].tolist(), strict=True))
    assert {name: value for name, value in named.items() if value} == {"tea": 3.0, "chess": 2.0}
    assert aligned.has_sorted_indices
    assert not aligned[[1]].nnz


def test_columns_in_the_same_order_are_not_copied(small_graph):
    assert align(small_graph, small_graph.attribute_names) is small_graph.attributes


def test_numbered_attributes_match_by_number():
    wide = AttributedGraph.from_sparse(sparse.csr_array([[0, 1], [1, 0]]), sparse.csr_array([[0, 5], [6, 0]]))
    aligned = align(wide, np.arange(4))
    np.testing.assert_array_equal(aligned.toarray(), [[0, 5, 0, 0], [6, 0, 0, 0]])


def test_unknown_attributes_are_counted_and_left_out(small_graph):
    with pytest.warns(UserWarning, match=r"2.*3 attributes.*'new'"):
        aligned = align(given(PAIR, {"zoe": ["tea", "golf", "jazz"]}), small_graph.attribute_names)
    assert aligned.nnz == 1
