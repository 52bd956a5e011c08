import pytest

from neural_brane.experiments import store as module
from neural_brane.experiments.store import fingerprint
from neural_brane.methods import METHODS


@pytest.fixture(autouse=True)
def _forget():
    """Forget what was computed, before and after: tests change the code of methods."""
    module._fingerprint.cache_clear()
    yield
    module._fingerprint.cache_clear()


@pytest.mark.parametrize("name", ["attributes", "lane", "neural-brane"])  # the second also learns from labels
def test_a_fingerprint_is_the_same_whenever_it_is_computed(name):
    parameters = METHODS[name]().deciding_parameters()
    first = fingerprint(name, parameters)
    module._fingerprint.cache_clear()
    assert fingerprint(name, parameters) == first
    assert len(first) == 16


def test_methods_and_choices_have_fingerprints_of_their_own_and_sizes_have_none():
    found = {name: fingerprint(name, {}) for name in ("attributes", "tadw", "neural-brane")}
    assert len(set(found.values())) == 3
    assert fingerprint("neural-brane", {"recipe": "released"}) != found["neural-brane"]
    assert fingerprint("neural-brane", {"pooling": "sum"}) != found["neural-brane"]
    assert fingerprint("neural-brane", {"dim": 64, "l2": 0.1, "device": "cuda"}) == found["neural-brane"]


def test_code_that_computes_something_else_is_noticed(monkeypatch):
    before = fingerprint("attributes", {})
    blocks = METHODS["attributes"]._blocks
    monkeypatch.setattr(METHODS["attributes"], "_blocks", lambda *given: (block + 1e-6 for block in blocks(*given)))
    module._fingerprint.cache_clear()
    assert fingerprint("attributes", {}) != before


def test_a_method_that_cannot_be_trained_has_none():
    assert fingerprint("neural-brane", {"pooling": "magic"}) == ""
