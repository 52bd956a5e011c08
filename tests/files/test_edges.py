"""Errors of malformed graph files name the place and the remedy."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ("", "", "is empty; write"),
        ("# nothing\n\n  \n", "", "is empty; write"),
        ("4 0\n", "", "no edges; write"),
        ("a\nb\n", "", "no edges; write"),
        (b"a b\nb \xff\n", ":2", "0xff UTF-8"),
        (b"PK\x03\x04\n\x00\x01", "", "zip"),
        (b"a b\nb \x00\x01", ":2", "binary UTF-8"),
        ("a b 1\nb c 1 9\n", ":2", "three columns 'b c 1 9'"),
        ("a b 1\n\nb c heavy\n", ":3", "weight 'heavy'"),
        ("a b -1\n", ":1", "weight '-1' above 0"),
        ("a b 1\nb c 0\n", ":2", "weight '0' above 0"),
        ("a b 1\nb c nan\n", ":2", "weight 'nan'"),
        ("a b inf\n", ":1", "weight 'inf' finite"),
        ("a b 1e99\n", ":1", "weight '1e99' finite"),
        ("a b 2\nb c\n", ":2", "no weight line 1"),
        ("4 2\n0 1\n2 3 5\n", ":3", "weight line 2 none"),
        ("4 3\n0 1\n2 4\n0 2\n", ":3", "node 4 0 to 3 header"),
        ("4 2\n0 -1\n2 3\n", ":2", "node -1 0 to 3 header"),
        ("4 2\n0 1\n2 3x\n", ":3", "'2 3x' name 0 to 3"),
        ("4 9\n0 1\n2 3\n", ":1", "header 9 edges 2 follow"),
        ("# mine\n3 9\na b\n", ":2", "header 9 edges 1 follow"),
        ("2 9\n7 8 0.5\n", ":1", "header 9 edges 1 follow"),
        ("2 2\na b\nb c\n", ":1", "header 2 nodes 3"),
        ("5 1\na b\n", "", "header 5 nodes 2"),
        ("x y\n1 2\n2 3\n", ":1", "'x y' names numbers #"),
        ("source target\nann bob\n", ":1", "'source target' titles #"),
        ("ann bob\nbob nan\n", ":2", "'nan' remove"),
        ("graph [\n node [ id 1 ]\n edge [ source 1 target 1 ]\n]\n", "", "GML .gml"),
        ('Creator "igraph"\nVersion 1\ngraph\n[\n  directed 0\n', "", "GML .gml"),
        ('<?xml version="1.0"?>\n<graphml></graphml>\n', "", "GraphML .graphml"),
        ('{"nodes": [], "links": []}\n', "", "JSON .jsonl"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n", "", "Matrix Market .mtx"),
    ],
)
def test_the_error_names_the_line_and_what_is_wrong(read_malformed, content, place, words):
    message = read_malformed({"g.txt": content})
    assert message.startswith(f"g.txt{place}: ")
    assert all(word in message for word in words.split())
