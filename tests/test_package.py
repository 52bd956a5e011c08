"""The package as a whole: its public names, and that imports point one way."""

import ast
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

import neural_brane

SOURCE = Path(neural_brane.__file__).parent
# The rooms in the order in which they are built: a module imports only its own room and those before it. `embedding`
# stands between the parts of `insight`, and `files.models` above the methods that it saves.
ROOMS = [
    "__version__", "errors", "progress", "graph", "kernels", "sampling", "linalg", "files", "search", "insight.groups",
    "embedding", "insight", "methods", "files.models", "evaluate", "distributed", "experiments", "explore", "cli",
]  # fmt: skip
# A local import says where a thing is saved or trained; here it points the other way.
LOCAL = {
    "graph.attributed": "files.graphs.formats",
    "methods.base": "files.models",
    "methods.neural_brane.model": "distributed.embedding",
}
PUBLIC = {"", "__main__"}  # the package's public names, and what starts the command


def room_of(module: str) -> int:
    """The place of a module's room in ROOMS; where two names fit, the longer one counts."""
    fitting = [name for name in ROOMS if module == name or module.startswith(f"{name}.")]
    assert fitting, f"{module} is in no room"
    return ROOMS.index(max(fitting, key=len))


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


def test_imports_point_one_way():
    back = []
    for path in sorted(SOURCE.rglob("*.py")):
        module = (
            ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__").removesuffix("__init__")
        )
        if module in PUBLIC:
            continue
        found = imported(path.read_text(encoding="utf-8"), f"neural_brane.{module}") - {LOCAL.get(module)}
        back += [f"{module} imports {name}" for name in sorted(found) if room_of(name) > room_of(module)]
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
def test_every_way_to_import_is_seen(statement, found):
    assert imported(statement, "neural_brane.evaluate.link") == found


def test_public_names_are_those_listed_and_all_can_be_had():
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
