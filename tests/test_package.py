"""Tests of the whole package: its public names and the direction of its imports."""

import ast
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

import neural_brane

SOURCE = Path(neural_brane.__file__).parent
# Packages in the order of the map in CONTRIBUTING: a module imports only its own package and earlier ones. `embedding`
# needs `insight.groups` and is used by the rest of `insight`; `files.models` saves methods, so it comes after them.
PACKAGES = [
    "__version__", "errors", "progress", "graph", "kernels", "sampling", "linalg", "files", "search", "insight.groups",
    "embedding", "insight", "methods", "files.models", "evaluate", "distributed", "experiments", "explore", "cli",
]  # fmt: skip
# These modules import a later package inside a function, to save a model or to train.
LOCAL = {
    "graph.attributed": "files.graphs.formats",
    "insight.pairs": "methods.spectral",
    "methods.base": "files.models",
    "methods.neural_brane.model": "distributed.embedding",
}
PUBLIC = {"", "__main__"}  # modules that may import everything


def package_number(module: str) -> int:
    """Return the position of a module's package in PACKAGES; of two names that fit, the longer one counts."""
    fitting = [name for name in PACKAGES if module == name or module.startswith(f"{name}.")]
    assert fitting, f"{module} is in no package of PACKAGES"
    return PACKAGES.index(max(fitting, key=len))


def imported(source: str, module: str) -> set[str]:
    """Return the modules of neural_brane that a module imports anywhere, without the leading neural_brane."""
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


def test_imports_point_one_way():
    back = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = (
            ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__").removesuffix("__init__")
        )
        if module in PUBLIC:
            continue
        found = imported(path.read_text(encoding="utf-8"), f"neural_brane.{module}") - {LOCAL.get(module)}
        back += [f"{module} imports {name}" for name in sorted(found) if package_number(name) > package_number(module)]
    assert not back


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("import neural_brane.files.storage", {"files.storage"}),
        ("import numpy, neural_brane.cli as c", {"cli"}),
        ("from neural_brane import files, load", {"files", "load"}),
        ("from neural_brane import __version__", {"__version__"}),
        ("def f():\n    if True:\n        from neural_brane.methods import METHODS", {"methods"}),
        ("from neural_brane.files import storage", {"files.storage"}),
        ("from neural_brane.files.storage import atomic", {"files.storage"}),
        ("from .. import files", {"files"}),
        ("from ..files.storage import atomic", {"files.storage"}),
        ("from . import cluster", {"evaluate.cluster"}),
        ("from .cluster import purity", {"evaluate.cluster"}),
        ("import neural_brane_of_another", set()),
    ],
)
def test_every_form_of_import_is_found(statement, found):
    assert imported(statement, "neural_brane.evaluate.link") == found


def test_public_names_can_be_imported():
    assert dir(neural_brane) == sorted(neural_brane.__all__)
    for name in neural_brane.__all__:
        assert getattr(neural_brane, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = neural_brane.nonsense


def test_training_never_imports_torch():
    code = (
        "import sys; from neural_brane import NeuralBrane, load;"
        "NeuralBrane(dim=4, epochs=1, batches_per_epoch=2).fit(load('stdlib')); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
