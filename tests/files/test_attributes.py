"""Attribute files, and those that cannot be read."""

from __future__ import annotations

import pytest

from neural_brane.files.graphs.formats import read_graph

AS_BAGS = "is not ID or ID:VALUE; write one node per line, as in '17 3:1 8:1'"
OWN_LINE = "give the node a line of its own in the graph file, or remove this line"


def test_names_of_attributes_may_hold_colons_where_a_value_follows(write):
    graph = read_graph(
        write("g.txt", "lib:x b\n"), attributes=write("a.txt", "# key: words\n\nlib:x GO:17:2 tea\nb tea:3\n")
    )
    assert graph.attribute_names.tolist() == ["GO:17", "tea"]
    assert graph.attributes.toarray().tolist() == [[2, 1], [0, 3]]


def test_an_attribute_listed_twice_keeps_its_largest_value(write):
    graph = read_graph(write("g.txt", "a b\n"), attributes=write("a.txt", "a x:1 x:3 x:2\n"))
    assert graph.attributes.toarray().tolist() == [[3], [0]]


def test_attribute_names_are_names_if_any_is(write):
    graph = read_graph(write("g.txt", "a b\n"), attributes=write("a.txt", "b 10 2\na tea 2\n"))
    assert graph.attribute_names.tolist() == ["10", "2", "tea"]


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
def test_attribute_file(read_malformed, content, message):
    assert read_malformed({"g.txt": "3 2\n0 1\n1 2\n", "a.txt": content}) == message
