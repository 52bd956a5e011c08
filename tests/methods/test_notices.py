import warnings

import numpy as np
import pytest

from neural_brane import AttributedGraph
from neural_brane.errors import IgnoredAmountsWarning, ZeroVectorWarning
from neural_brane.methods.base import warn_of_ignored_amounts, warn_of_zero_vectors

PAIR = [("ann", "bob"), ("bob", "cid")]


def test_amounts_that_differ_within_an_attribute_are_told():
    bags = {"ann": {"age": 31, "chess": 2}, "bob": {"age": 22, "chess": 2}}
    with pytest.warns(IgnoredAmountsWarning, match=r"1.*2 attributes.*'graph'"):
        warn_of_ignored_amounts(AttributedGraph.from_edges(PAIR, attributes=bags), "plain")


@pytest.mark.parametrize("bags", [None, {"ann": ["chess"]}, {"ann": {"chess": 2, "tea": 3}, "bob": {"tea": 3}}])
def test_amounts_that_tell_nothing_are_not_told(bags):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_ignored_amounts(AttributedGraph.from_edges(PAIR, attributes=bags), "plain")


@pytest.mark.parametrize(
    ("rows", "uses", "reason"),
    [
        (
            [0, 2],
            ("attributes",),
            r"2 of the 4 nodes of .* have the vector zero \('ann', 'cid'\): 1 of them",
        ),
        ([3], ("links", "attributes"), r"\('dan'\): 1 of them have no links and 1 of them have no attributes; leave"),
        ([0], ("links",), r"\('ann'\): they have links"),
        ([0, 1, 2, 3], ("links",), r"\('ann', 'bob', 'cid', …\): 1 of them have no links"),
    ],
)
def test_vectors_of_zeros_are_told_with_the_reason(rows, uses, reason):
    bags = {"ann": ["chess"], "bob": ["tea"]}
    graph = AttributedGraph.from_edges(PAIR, attributes=bags, ids=["ann", "bob", "cid", "dan"])
    with pytest.warns(ZeroVectorWarning, match=reason):
        warn_of_zero_vectors(graph, np.array(rows), uses)


def test_no_vector_of_zeros_is_not_told(small_graph):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_zero_vectors(small_graph, np.array([], dtype=int), ("links",))
