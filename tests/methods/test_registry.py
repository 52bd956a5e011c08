"""The registry: one file makes a method, which appears in every list, help text and contract test."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import neural_brane
from neural_brane import METHODS, Embedding, NeuralBrane, estimate, load_model, methods
from neural_brane.cli.app import app
from neural_brane.errors import ParameterError
from neural_brane.experiments.compare import compare
from neural_brane.experiments.store import fingerprint
from neural_brane.experiments.tune import grid
from neural_brane.methods import find_method, untrainable

TOY = '''
from typing import NamedTuple

import numpy as np
from neural_brane.methods.base import Embedder
from neural_brane.methods.parameters import whole

class Degrees(NamedTuple):
    """Vectors of degrees."""

    vectors: np.ndarray

class Toy(Embedder):
    """Toy: degrees, over and over.

    Examples
    --------
    >>> 1
    1
    """

    title = "toy"
    uses = ("links",)
    growth = "time: edges; memory: nodes"
    paper = "None"
    shortlisted = True
    grid = {"power": [0, 1]}
    small = {"power": 1}
    holds = {"toy degrees": Degrees}
    learns = {"vectors_": "ndarray: The vectors."}

    power: int = whole("What degrees are raised to.", default=2, least=0)

    def _learn(self, graph, seed):
        degree = np.diff(graph.adjacency.indptr).astype(np.float32) ** self.power
        table = np.repeat(degree[:, None], self.dim, axis=1)
        return Degrees(table)
'''
CONTRACT = """
import sys
import pytest
from neural_brane import methods

methods.__path__.append(sys.argv[1])
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-k", "toy", *sys.argv[2:]]))
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Return a folder with a method in one file, which the registry searches."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    return tmp_path


def test_one_file_makes_a_method(toy, small_graph):
    assert "toy" in METHODS
    assert "Toy" in neural_brane.__all__
    assert neural_brane.Toy is METHODS["toy"]
    method = neural_brane.Toy(dim=3, power=1)
    assert method.get_params(deep=False) == {"dim": 3, "power": 1, "seed": None, "threads": None, "progress": None}
    assert method.fit_transform(small_graph)["cat"].tolist() == [3, 3, 3]
    with pytest.raises(ParameterError, match=r"power=-1.*number.*0"):
        METHODS["toy"](power=-1).fit(small_graph)
    assert "power : a whole number from 0, default 2\n        What degrees are raised to." in METHODS["toy"].__doc__
    method.save(toy / "m.brane")
    assert load_model(toy / "m.brane").embedding_["cat"].tolist() == [3, 3, 3]


def test_it_shows_in_every_list_and_table(toy, load_script):
    run = CliRunner().invoke
    assert any(line.split()[:1] == ["toy"] for line in run(app, ["methods"]).stdout.splitlines())
    assert "What degrees are raised to." in run(app, ["methods", "toy"]).stdout
    assert "toy" in run(app, ["embed", "stdlib", "--method", "?", "-o", str(toy / "v.npz")]).stderr
    tables = load_script("methods_table")
    assert "| `toy` | links | no |  | None |" in tables.about()
    assert "| `toy` | edges | nodes |" in tables.growth()


def test_commands_and_experiments_take_it(toy, small_graph):
    vectors = toy / "v.npz"
    order = ["embed", "stdlib", "--method", "toy", "--set", "power=0", "--dim", "2", "-o", str(vectors)]
    result = CliRunner().invoke(app, order)
    assert result.exit_code == 0, result.stderr
    parameters = Embedding.load(vectors).provenance["parameters"]
    assert (parameters["dim"], parameters["power"]) == (2, 0)
    assert grid(METHODS["toy"]) == {"power": [0, 1, 2]}
    assert len(fingerprint("toy", {})) == 16
    assert estimate(small_graph, "toy").total_seconds > 0
    with pytest.raises(ParameterError, match="runs=0"):
        compare(small_graph, ["toy"], runs=0)


def test_the_contract_tests_run_over_it(toy):
    tests = Path(__file__).parents[1]
    files = [tests / "test_contract.py", tests / "files" / "models", tests / "test_estimate.py"]
    command = [sys.executable, "-c", CONTRACT, toy, *files]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tests.parent)
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 10  # tests of the contract, a model and an estimate


def test_neural_brane_comes_first_and_the_others_by_the_alphabet():
    first, *others = METHODS
    assert first == "neural-brane"
    assert others == sorted(others)


def test_listing_names_imports_no_method():
    code = "import sys; from neural_brane import METHODS; print(len(METHODS)); assert 'numpy' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == str(len(METHODS)), done.stderr


def test_an_unknown_method_is_answered_with_the_likeliest():
    assert find_method("neural-brane") is NeuralBrane
    with pytest.raises(ParameterError, match="method 'atributes'"):
        find_method("atributes")


def test_methods_whose_package_is_missing_cannot_be_trained(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # marks a package that is not installed
    assert untrainable() == [name for name in METHODS if METHODS[name].extra == "torch"]
