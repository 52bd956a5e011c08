"""The message for an unknown id suggests similar ids."""

import numpy as np
import pytest

from neural_brane.graph.ids import describe_unknown


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
def test_similar_ids_are_suggested(ids, given, close):
    message = describe_unknown(np.array(ids), given)
    assert message.endswith(f"did you mean {close[0]!r}?") if close else "did you mean" not in message


def test_an_empty_list_of_ids():
    assert describe_unknown(np.empty(0, np.int64), 3) == "no node 3 here; ids are integers, such as none"
