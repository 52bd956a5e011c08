import json

import numpy as np

from neural_brane import AttributedGraph
from neural_brane.files.graphs.draft import spell_numbers, spelled_attributes, spelled_edges, spelled_names


def test_numbers_of_every_size_read_back_the_same_through_double_precision():
    numbers = np.random.default_rng(0).integers(0, 2**31 - 2**23, 20_000, dtype=np.int32).view(np.float32)
    words = spell_numbers(numbers)
    np.testing.assert_array_equal(words.astype(np.float64).astype(np.float32), numbers)
    assert spell_numbers(np.array([0.1, 1e-5, 3], np.float32)).tolist() == ["0.1", "1e-05", "3.0"]


def test_the_parts_of_a_graph():
    graph = AttributedGraph.from_edges(
        [("a", "b"), ("b", "b")], [0.1, 2], attributes={"a": ["tea", 'q"é'], "b": {"tea": 2.5}}, ids=["a", "b", "c"]
    )
    assert list(spelled_edges(graph)) == [(0, 1, "0.1"), (1, 1, "2.0")]
    words = list(spelled_attributes(graph))
    assert [json.loads(word) for word in words[:2]] == [["tea", 'q"é'], {"tea": 2.5}]
    assert words[2] == ""
    assert json.loads(spelled_names(graph)) == ["tea", 'q"é']
