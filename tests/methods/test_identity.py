"""The fingerprint of code: equal if code computes the same numbers, different otherwise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import neural_brane
from neural_brane.methods import METHODS, identity
from neural_brane.methods.identity import Behaviour, behaviour, identify_code

TRAIN = """
import sys, warnings
warnings.simplefilter("ignore")
from neural_brane import NNMF, synthetic
NNMF(dim=4, seed=1, epochs=int(sys.argv[1]), checkpoint="run.checkpoint").fit(synthetic(60))
"""
CHANGED = """

class NNMF(NNMF):
    def _blocks(self, graph, learned):
        return (1.01 * block for block in super()._blocks(graph, learned))
"""
CHOICES = ({"recipe": "released"}, {"pooling": "sum"})


@pytest.fixture(autouse=True)
def _forget():
    """Clear the cache before and after each test, because tests change the code of methods."""
    identity._behaviour.cache_clear()
    yield
    identity._behaviour.cache_clear()


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.extra is None])
def test_a_behaviour_is_the_same_whenever_it_is_tried(name):
    parameters = METHODS[name]().deciding_parameters()
    first = behaviour(METHODS[name], parameters)
    identity._behaviour.cache_clear()
    assert behaviour(METHODS[name], parameters) == first
    assert len(first.digest) == 16


def test_methods_and_choices_have_behaviours_of_their_own_and_sizes_have_none():
    method = METHODS["neural-brane"]
    plain = behaviour(method, {})
    others = [behaviour(METHODS["attributes"], {}), *(behaviour(method, one) for one in CHOICES)]
    assert plain not in others
    assert behaviour(method, {"dim": 64, "l2": 0.1, "device": "cuda"}) == plain


def test_code_that_computes_something_else_is_noticed(monkeypatch):
    before = behaviour(METHODS["attributes"], {})
    blocks = METHODS["attributes"]._blocks
    monkeypatch.setattr(METHODS["attributes"], "_blocks", lambda *given: (block + 1e-6 for block in blocks(*given)))
    identity._behaviour.cache_clear()
    assert behaviour(METHODS["attributes"], {}).digest != before.digest


def test_a_method_that_cannot_be_trained_has_none():
    assert behaviour(METHODS["neural-brane"], {"pooling": "magic"}) == Behaviour()
    assert identify_code(METHODS["neural-brane"], {"pooling": "magic"}, on_cpu=True)["untried"]
    assert identify_code(METHODS["attributes"], {}, on_cpu=False)["untried"]
    assert not identify_code(METHODS["attributes"], {}, on_cpu=True)["untried"]


def test_a_checkpoint_outlives_a_docstring_and_no_other_computation(tmp_path):
    """Train with a copy of the package, then change a comment and a docstring, then a step."""
    package = tmp_path / "neural_brane"
    shutil.copytree(Path(neural_brane.__file__).parent, package)
    source = package / "methods" / "nnmf.py"

    def train(epochs):
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", TRAIN, str(epochs)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)

    first = train(2)
    assert first.returncode == 0, first.stderr
    text = source.read_text(encoding="utf-8")
    source.write_text('"""Other words."""\n# And a comment.\n' + text.split('"""', 2)[2], encoding="utf-8")
    assert train(3).returncode == 0
    source.write_text(text + CHANGED, encoding="utf-8")
    refused = train(4)
    assert "CheckpointError" in refused.stderr
    assert "whose steps differ" in refused.stderr
