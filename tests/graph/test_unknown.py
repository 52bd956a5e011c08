"""An id that no node has is answered with those that look like it."""

import numpy as np
import pytest

from neural_brane.graph.ids import about_unknown, near_misses


@pytest.mark.parametrize(
    ("ids", "given", "close"),
    [
        (["Json", "pickle"], "jsno", ["Json"]),
        ([100157, 204], 100175, [100157]),
        ([100157, 204], "10015", [100157]),
        (["ann"], "", []),
        (["ann"], 7, []),
    ],
)
def test_ids_spelled_alike_are_named(ids, given, close):
    assert near_misses(np.array(ids), given) == close


def test_no_ids_are_none():
    assert about_unknown(np.empty(0, np.int64), 3) == "no node 3 here; ids are integers, such as none"
