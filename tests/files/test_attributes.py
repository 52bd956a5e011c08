"""Read attribute files; refuse malformed ones."""

from __future__ import annotations

import pytest

from neural_brane.files.graphs.formats import read_graph


def test_names_of_attributes_may_hold_colons_where_a_value_follows(write):
    graph = read_graph(
        write("g.txt", "lib:x b\n"), attributes=write("a.txt", "# key: words\n\nlib:x GO:17:2 tea\nb tea:3\n")
    )
    assert graph.attribute_names.tolist() == ["GO:17", "tea"]
    assert graph.attributes.toarray().tolist() == [[2, 1], [0, 3]]


def test_an_attribute_listed_twice_counts_once(write):
    graph = read_graph(write("g.txt", "a b\n"), attributes=write("a.txt", "a x:3 x:3 y y\n"))
    assert graph.attributes.toarray().tolist() == [[3, 1], [0, 0]]


def test_attribute_names_are_names_if_any_is(write):
    graph = read_graph(write("g.txt", "a b\n"), attributes=write("a.txt", "b 10 2\na tea 2\n"))
    assert graph.attribute_names.tolist() == ["10", "2", "tea"]


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ("", "", "empty"),
        ("0 1:1\n1 2:x\n", ":2", "attribute '2:x' ID:VALUE"),
        ("0 1:1\n\n1 5 2:\n", ":3", "attribute '2:' ID:VALUE"),
        ("0 :1\n", ":1", "attribute ':1' ID:VALUE"),
        ("0 a::1\n", ":1", "attribute 'a::1' ID:VALUE"),
        ("0 7:nan\n", ":1", "attribute '7:nan' ID:VALUE"),
        ("0 7:1e99\n", ":1", "attribute '7:1e99' ID:VALUE"),
        ("0 1:1\n3 1:1\n", ":2", "node '3' graph"),
        ("0:1 4:1\n", ":1", "node '0:1' graph"),
        ("0 1:1\n1 2\n0 3\n", ":3", "node '0' line 1"),
        ("0 1:1\n1 1:2 2:5 1:3\n", ":2", "attribute '1' two"),
        (b"0 1:1\n1 \xe9t\xe9\n", ":2", "0xe9 UTF-8 attribute"),
    ],
)
def test_attribute_file(read_malformed, content, place, words):
    message = read_malformed({"g.txt": "3 2\n0 1\n1 2\n", "a.txt": content})
    assert message.startswith(f"a.txt{place}: ")
    assert all(word in message for word in words.split())
