"""The package as a whole: its public names, and that imports point one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import neural_brane

SOURCE = Path(neural_brane.__file__).parent
# What each part may import of ours, besides itself: from files to graphs to vectors, never back.
ALLOWED = {
    "errors": set(),
    "progress": set(),
    "ids": {"errors"},
    "adjacency": {"errors"},
    "inputs": {"adjacency", "errors", "ids"},
    "graph": {"adjacency", "errors", "ids", "inputs"},
    "embedding": {"errors", "ids", "io"},  # io.vectors, when a file is read or written
    "io": {"adjacency", "embedding", "errors", "graph", "ids"},
    "datasets": {"adjacency", "errors", "graph", "io"},
    "sampling": {"errors"},
    "kernels": {"errors"},
    "methods": {"embedding", "errors", "graph", "ids", "io", "kernels", "progress", "sampling"},
    "evaluate": {"adjacency", "datasets", "embedding", "errors", "graph", "ids", "io", "methods", "progress"},
    "machine": set(),
    "reproduce": {"datasets", "errors", "evaluate", "graph", "io", "machine", "methods", "plot"},
    "plot": {"embedding", "errors", "evaluate", "io"},
}


def imports(path: Path) -> set[str]:
    """The parts of this package that a module imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neural_brane"):
            parts = node.module.split(".")[1:2]
            found |= set(parts) if parts else {alias.name for alias in node.names}
    return found - {"__version__"}


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if part in ("cli", "__init__"):
        return
    assert imports(path) - {part} <= ALLOWED[part]


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
