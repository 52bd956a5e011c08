"""Count files, lines, long functions and private imports of the source, measures of how easy it is to maintain.

    python scripts/count_house.py                    count src/neural_brane of this checkout
    python scripts/count_house.py OTHER/src          count another checkout as well, side by side

The counts are measures, not rules: no test enforces them.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent.parent / "src"
SMALL, LONG, MANY = 60, 50, 6  # a small module has fewer lines; a long function more lines, or more arguments
OPTIMIZED = 1  # code flag that functions have and class bodies do not
# This program runs the command and prints the number of files of the package whose functions are called.
TRACED = f"""
import sys, threading
seen = set()
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & {OPTIMIZED} and "neural_brane" in code.co_filename:
        seen.add(code.co_filename)
folder = sys.argv[1]
sys.argv = ["brane", "embed", "stdlib", "-o", folder + "/v.npz"]
threading.setprofile(note)
sys.setprofile(note)
from neural_brane.cli import main
try:
    main()
finally:
    sys.setprofile(None)
    print(len(seen))
"""


def main() -> None:
    """Print one line per count and one column per checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("others", nargs="*", type=Path, help="folders `src` of other checkouts")
    columns = [count(source) for source in [*parser.parse_args().others, HERE]]
    for name in columns[0]:
        print(f"{name:52}", *(f"{column[name]:>8,}" for column in columns))


def count(source: Path) -> dict[str, int]:
    """Return every count of a folder `src` by name."""
    modules = {module_of(path, source): path for path in sorted((source / "neural_brane").rglob("*.py"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in modules.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    imports = {name: set(imported(name, modules[name], trees[name], modules)) for name in modules}
    importers = Counter(target for name, found in imports.items() for target, _ in found if target != name)
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    top = {path.name for path in (source / "neural_brane").iterdir() if path.suffix == ".py" or is_package(path)}
    return {
        "files": len(modules),
        "lines": sum(len(text.splitlines()) for text in texts.values()),
        "top-level entries": len(top - {"__init__.py", "__main__.py"}),
        "modules under 60 lines with one importer": sum(
            importers[name] == 1 and len(text.splitlines()) < SMALL and not modules[name].name.startswith("__init__")
            for name, text in texts.items()
        ),
        "private imports across packages": sum(
            private and package(name, modules) != package(target, modules)
            for name, found in imports.items()
            for target, private in found
        ),
        "functions over 50 lines": sum(node.end_lineno - node.lineno + 1 > LONG for node in functions),
        "functions with more than 6 arguments": sum(arguments(node) > MANY for node in functions),
        "files that `brane embed stdlib` runs": count_called(source),
    }


def module_of(path: Path, source: Path) -> str:
    """Return the dotted name of a file."""
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def is_package(path: Path) -> bool:
    """Return True if a folder contains modules."""
    return path.is_dir() and any(path.glob("*.py"))


def package(module: str, modules: dict[str, Path]) -> str:
    """Return the package of a module; the package of a package is itself."""
    return module if modules[module].name == "__init__.py" else module.rpartition(".")[0]


def imported(name: str, path: Path, tree: ast.Module, modules: dict[str, Path]) -> Iterator[tuple[str, bool]]:
    """Yield each imported module of the package, and True if the imported name is private."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, is_private(alias.name)) for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            home = node.module or ""
            if node.level:
                above = package(name, modules).split(".")
                home = ".".join([*above[: len(above) - node.level + 1], *filter(None, [home])])
            for alias in node.names:
                whole = f"{home}.{alias.name}"
                if whole in modules or home in modules:
                    yield (whole if whole in modules else home), is_private(whole)


def is_private(name: str) -> bool:
    """Return True if a part of a dotted name begins with one underscore."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def arguments(node: ast.FunctionDef) -> int:
    """Return the number of a function's arguments without self."""
    given = node.args
    names = [one.arg for one in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
    return len(names) - (names[:1] in (["self"], ["cls"])) + bool(given.vararg) + bool(given.kwarg)


def count_called(source: Path) -> int:
    """Return the number of files whose functions `brane embed stdlib -o v.npz` calls."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-c", TRACED, folder]
        environment = os.environ | {"PYTHONPATH": str(source.resolve())}
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return int(found.stdout.split()[-1])


if __name__ == "__main__":
    main()
