"""Vectors are the same, bit for bit, as when digests.json was written."""

import importlib.util
import json
from pathlib import Path

import pytest

specification = importlib.util.spec_from_file_location("digests", Path(__file__).parent / "digests.py")
digests = importlib.util.module_from_spec(specification)
specification.loader.exec_module(digests)
KEPT = json.loads(digests.PATH.read_text())
HERE = digests.kind_of_machine()
OTHER = {name: (was, HERE[name]) for name, was in KEPT["machine"].items() if was != HERE[name]}

pytestmark = pytest.mark.skipif(
    bool(OTHER),
    reason=f"another kind of processor or library may give other last bits; was and is: {OTHER}",
)


def test_every_training_has_a_digest():
    assert digests.trainings().keys() == KEPT["digests"].keys()


@pytest.mark.parametrize("name", digests.trainings())
def test_vectors_are_the_same_to_the_last_bit(name, request):
    graph, method, parameters = digests.trainings()[name]
    if graph == "citeseer":
        request.getfixturevalue("real_data")
    if extra := digests.METHODS[method].extra:
        pytest.importorskip(extra)
    assert digests.digest(digests.graph_of(graph), method, **parameters) == KEPT["digests"][name]
