"""The package as a whole: its public names, and that imports point one way."""

import ast
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

import neural_brane

SOURCE = Path(neural_brane.__file__).parent
# What each part may import of ours, besides itself; "io.atomic" stands for that one module of io. A part may import
# only parts that stand above it, so no two can import each other. `__version__` is the package's own name.
MAY_IMPORT = {
    "__version__": set(),
    "errors": set(),
    "progress": set(),
    "machine": set(),
    "blas": set(),
    "writers": set(),
    "memory": {"errors"},
    "forks": {"errors"},
    "compiling": {"errors"},
    "graph": {"errors", "forks", "writers"},
    "io": {"errors", "forks", "graph", "memory"},
    "shards": {"errors", "graph", "io", "memory", "progress"},
    "search": {"blas", "errors", "graph", "io", "progress"},
    "groups": {"blas", "errors", "graph", "progress", "search"},
    "layer": {"blas", "errors", "graph"},
    "embedding": {"errors", "graph", "groups", "io", "layer", "progress", "search"},
    "checkpoint": {"__version__", "errors", "io.atomic", "io.tensors"},
    "datasets": {"errors", "graph", "io", "memory"},
    "kernels": {"blas", "compiling", "errors"},
    "sampling": {"compiling", "errors"},
    "linalg": {"blas", "errors", "kernels"},
    "reasons": {"blas", "embedding", "errors", "graph", "kernels", "linalg"},
    "html": {"io.atomic"},
    "methods": {
        "__version__",
        "blas",
        "checkpoint",
        "embedding",
        "errors",
        "graph",
        "kernels",
        "linalg",
        "memory",
        "progress",
        "reasons",
        "sampling",
        "writers",
    },
    "evaluate": {"blas", "embedding", "errors", "graph", "groups", "io.atomic", "io.npz", "progress", "search"},
    "cluster": {
        "__version__",
        "blas",
        "checkpoint",
        "compiling",
        "embedding",
        "errors",
        "graph",
        "io",
        "kernels",
        "linalg",
        "memory",
        "methods",
        "progress",
        "sampling",
        "shards",
    },
    "models": {"__version__", "embedding", "errors", "graph", "io", "kernels", "methods"},
    "contents": {"errors", "io", "shards"},
    "estimation": {"datasets", "errors", "graph", "io", "kernels", "linalg", "memory", "methods", "sampling", "shards"},
    "explore": {
        "blas",
        "embedding",
        "errors",
        "graph",
        "groups",
        "io",
        "methods",
        "models",
        "progress",
        "search",
    },
    "scikit_learn": {"embedding", "errors", "graph", "methods"},
    "plot": {"embedding", "errors", "evaluate", "io.atomic"},
    "trainings": {
        "blas",
        "datasets",
        "embedding",
        "errors",
        "evaluate",
        "graph",
        "io",
        "machine",
        "methods",
        "progress",
    },
    "tune": {"datasets", "embedding", "errors", "evaluate", "graph", "io", "methods", "progress", "trainings"},
    "comparison": {
        "__version__",
        "errors",
        "evaluate",
        "graph",
        "html",
        "io.atomic",
        "machine",
        "methods",
        "progress",
        "trainings",
    },
    "reproduce": {
        "__version__",
        "datasets",
        "embedding",
        "errors",
        "evaluate",
        "graph",
        "html",
        "io",
        "machine",
        "methods",
        "plot",
        "progress",
        "trainings",
        "tune",
    },
}
MAY_IMPORT["__init__"] = set(MAY_IMPORT)  # the public names
MAY_IMPORT["cli"] = set(MAY_IMPORT)  # and nobody imports cli
MAY_IMPORT["__main__"] = {"cli"}  # but what starts it


def imported(source: str, module: str) -> set[str]:
    """The modules of this package that a module imports, anywhere in it, without the leading neural_brane."""
    package = module if is_package(module) else module.rpartition(".")[0]
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            home = resolve_name("." * node.level + (node.module or ""), package)
            whole = {f"{home}.{alias.name}" for alias in node.names}
            names |= {name if home == "neural_brane" or exists(name) else home for name in whole}
    return {name.removeprefix("neural_brane.") for name in names if name.split(".")[0] == "neural_brane"}


def is_package(module: str) -> bool:
    return (SOURCE.parent / module.replace(".", "/")).is_dir()


def exists(module: str) -> bool:
    return is_package(module) or (SOURCE.parent / f"{module.replace('.', '/')}.py").is_file()


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    module = ".".join(["neural_brane", *parts]).removesuffix(".__init__")
    allowed = MAY_IMPORT[parts[0]] | {parts[0]}
    found = imported(path.read_text(encoding="utf-8"), module)
    assert {name for name in found if not any(name == one or name.startswith(f"{one}.") for one in allowed)} == set()


def test_each_part_imports_only_those_above_it():
    for at, (part, allowed) in enumerate(MAY_IMPORT.items()):
        assert {name.split(".")[0] for name in allowed} <= set(list(MAY_IMPORT)[:at]), part


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("import neural_brane.files.storage", {"io.atomic"}),
        ("import numpy, neural_brane.cli as c", {"cli"}),
        ("from neural_brane import io, load", {"io", "load"}),
        ("from neural_brane import __version__", {"__version__"}),
        ("from neural_brane.io import atomic, read_graph", {"io.atomic", "io"}),
        ("from neural_brane.files.storage import atomic", {"io.atomic"}),
        ("def f():\n    if True:\n        from neural_brane.methods import METHODS", {"methods"}),
        ("from .. import datasets", {"datasets"}),
        ("from ..io.atomic import atomic", {"io.atomic"}),
        ("from . import cluster", {"evaluate.cluster"}),
        ("from .cluster import purity", {"evaluate.cluster"}),
        ("import neural_brane_of_another", set()),
    ],
)
def test_every_way_to_import_is_seen(statement, found):
    assert imported(statement, "neural_brane.evaluate.link") == found


def test_public_names_are_those_listed_and_all_can_be_had():
    assert dir(neural_brane) == sorted(neural_brane.__all__)
    for name in neural_brane.__all__:
        assert getattr(neural_brane, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = neural_brane.nonsense


def test_no_file_has_two_ideas():
    long = {str(path): lines for path in SOURCE.rglob("*.py") if (lines := len(path.read_text().splitlines())) > 300}
    assert not long


def test_training_never_imports_torch():
    code = (
        "import sys; from neural_brane import NeuralBrane, load;"
        "NeuralBrane(dim=4, epochs=1, batches_per_epoch=2).fit(load('stdlib')); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
