"""Build the dataset `stdlib`: Python's own standard library as an attributed graph.

    python scripts/build_stdlib.py [--output FILE]

Nodes are the modules of the running interpreter's standard library: those with Python source, and the
compiled ones (`math`, `time`, `_socket`) of this interpreter. Left out are tests, demonstrations, the
IDLE application, 2to3's fixers, the hundred near-identical codecs in `encodings`, bundled wheels,
`__main__` files, modules of other platforms without source here, and empty files that no module imports.

Edges are imports, read from the source with `ast`, also inside functions. The weight of an edge is the
number of import statements in both directions. Attributes are words of docstrings and of the names of
functions, classes, arguments and `__all__`; an entry is 1 if a module has the word. The module's own name
is not used, because its package often determines its label. Labels are the topics of stdlib_categories.toml.

The same interpreter writes the same bytes. The file contains only names and the presence of words, taken
from the Python standard library (PSF licence), and none of its text.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import platform
import re
import sys
import sysconfig
import tomllib
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.files.storage import atomic

HERE = Path(__file__).resolve().parent
CATEGORIES = HERE / "stdlib_categories.toml"
OUTPUT = HERE.parent / "src" / "neural_brane" / "files" / "datasets" / "stdlib.npz"

LEFT_OUT = frozenset(
    {"test", "tests", "idlelib", "turtledemo", "pydoc_data", "_bundled", "fixes", "__main__", "__phello__"}
)
KEPT_ENCODINGS = frozenset({"aliases", "idna", "punycode"})

MIN_MODULES = 3  # a word must occur in as many modules
MAX_SHARE = 0.25  # a word may occur in at most this share of the modules
WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z]?[a-z]+")
COMMON_WORDS = """
    about above according after again all already also although always among and another any anything are
    aren arg args around because been before being below between both but can cannot cls could did didn
    does doesn doing don done each either else etc even every few first following for from further get
    gets given gives had has hasn have having hence her here him his how however instead into isn its
    itself just kwargs kwds last least less let like made make makes many may means might more most much
    must need needs neither never next non none nor not nothing now once one ones only onto other others
    otherwise our out over own per perhaps please possible rather same see seen self several shall she
    should shouldn since some something still such take than that the their them themselves then there
    therefore these they thing this those though three through thus too two under unless until upon use
    used uses using very via want was wasn way ways well were what whatever when where whether which while
    who whole whose why will with within without won would yes yet you your
"""
STOP_WORDS = frozenset(COMMON_WORDS.split())


def find_sources(root: Path, top_level: Iterable[str]) -> dict[str, Path]:
    """Return the modules with Python source below root, by name; a package is its `__init__.py`."""
    wanted = set(top_level)
    sources = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        codec = parts[0] == "encodings" and parts[-1] not in KEPT_ENCODINGS | {"__init__"}
        if parts[0] not in wanted or codec or not LEFT_OUT.isdisjoint(parts):
            continue
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        sources[name] = path
    return sources


def import_compiled(names: Iterable[str]) -> dict[str, ModuleType]:
    """Import the named modules that this interpreter has, and return them by name."""
    found = {}
    for name in sorted(names):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # some modules are deprecated
            try:
                found[name] = importlib.import_module(name)
            except ImportError:
                continue  # the module belongs to another platform, or is not built here
    return found


def resolve(target: str, known: Collection[str]) -> str | None:
    """Return the longest leading part of a dotted name that is a known module, for example `os` for `os.path`."""
    while target and target not in known:
        target = target.rpartition(".")[0]
    return target or None


def imported_names(tree: ast.AST, package: str) -> Iterator[list[str]]:
    """Yield, for each import statement, the absolute dotted names that it may load."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".") if node.level else []
            kept = parents[: len(parents) + 1 - node.level]
            base = ".".join([*kept, *([node.module] if node.module else [])])
            yield [f"{base}.{alias.name}" for alias in node.names]


def count_imports(name: str, path: Path, tree: ast.AST, known: Collection[str]) -> Counter[str]:
    """Count the import statements of one module that name each other known module."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    counts: Counter[str] = Counter()
    for targets in imported_names(tree, package):
        counts.update({found for target in targets if (found := resolve(target, known))})
    del counts[name]
    return counts


def singular(word: str) -> str:
    """Strip the commonest plural endings: `classes`, `entries`, `bytes` but not `class`, `status`, `this`."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def split_words(text: str) -> set[str]:
    """Split text or a name at capitals and at all characters but letters; drop short words and stop words."""
    words = {match.lower() for match in WORD.findall(text)} - STOP_WORDS
    return {singular(word) for word in words if len(word) > 2} - STOP_WORDS


def source_words(tree: ast.AST) -> set[str]:
    """Return the words of docstrings, of `__all__` and of the names of functions, classes and arguments."""
    texts: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            texts.append(ast.get_docstring(node) or "")
            texts.append(getattr(node, "name", ""))
        elif isinstance(node, ast.arg):
            texts.append(node.arg)
        elif isinstance(node, ast.Assign) and "__all__" in (getattr(at, "id", "") for at in node.targets):
            texts += [str(item.value) for item in ast.walk(node.value) if isinstance(item, ast.Constant)]
    return split_words("\n".join(text for text in texts if not text.startswith("__")))


def compiled_words(module: ModuleType) -> set[str]:
    """Return the words of a compiled module's documentation and names, including methods of its classes."""
    texts = [module.__doc__ or ""]
    for owner in [module, *(item for item in vars(module).values() if inspect.isclass(item))]:
        if owner is not module and owner.__module__ != module.__name__:
            continue
        for name, item in vars(owner).items():
            if not name.startswith("__"):
                # A constant has the documentation of its type, so only callables are read.
                texts += [name, (inspect.getdoc(item) or "") if callable(item) else ""]
    return split_words("\n".join(texts))


def read_modules(
    sources: Mapping[str, Path], compiled: Mapping[str, ModuleType]
) -> tuple[dict[str, set[str]], Counter[tuple[str, str]]]:
    """Return the words of every module, and the number of import statements between each pair of modules."""
    known = sources.keys() | compiled.keys()
    words: dict[str, set[str]] = {}
    edges: Counter[tuple[str, str]] = Counter()
    for name, path in sources.items():
        tree = ast.parse(path.read_bytes())
        words[name] = source_words(tree)
        for other, count in count_imports(name, path, tree, known).items():
            edges[min(name, other), max(name, other)] += count
    reached = {name for pair in edges for name in pair}
    for name, module in compiled.items():
        # A private compiled module is left out unless another module of the graph imports it.
        if name in reached or not name.startswith("_"):
            words[name] = compiled_words(module)
    # An empty file without imports in either direction has nothing to learn from.
    return {name: words[name] for name in sorted(words) if words[name] or name in reached}, edges


def choose_words(words: Mapping[str, set[str]]) -> list[str]:
    """Return the words that are neither too rare nor too common, sorted."""
    counts = Counter(word for found in words.values() for word in found)
    return sorted(word for word, count in counts.items() if MIN_MODULES <= count <= MAX_SHARE * len(words))


def read_categories(path: Path = CATEGORIES) -> dict[str, str]:
    """Read the category of each listed module."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {module: name for name, table in tables.items() for module in table["modules"]}


def category_of(name: str, categories: Mapping[str, str]) -> str:
    """Return a module's category: its own, else that of its public twin (`json` for `_json`), else its package's."""
    parent = name
    while parent:
        if found := categories.get(parent) or categories.get(parent.removeprefix("_")):
            return found
        parent = parent.rpartition(".")[0]
    raise SystemExit(f"module '{name}' has no category; list it, or its package, in {CATEGORIES.name}")


def csr_arrays(prefix: str, matrix: sparse.coo_array) -> dict[str, np.ndarray]:
    """Return the arrays of a sparse matrix in sorted CSR form, by their names in the `.npz` format."""
    rows = matrix.tocsr()
    rows.sort_indices()
    return {
        f"{prefix}_data": rows.data.astype(np.float32),
        f"{prefix}_indices": rows.indices.astype(np.int32),
        f"{prefix}_indptr": rows.indptr.astype(np.int32),
        f"{prefix}_shape": np.array(rows.shape, dtype=np.int64),
    }


def assemble(
    words: Mapping[str, set[str]], edges: Mapping[tuple[str, str], int], categories: Mapping[str, str]
) -> dict[str, np.ndarray]:
    """Turn the modules' words and imports into the arrays of the `.npz` file."""
    row = {name: i for i, name in enumerate(words)}
    kept = choose_words(words)
    column = {word: j for j, word in enumerate(kept)}
    ends = np.array([(row[a], row[b]) for a, b in edges], dtype=np.int32).reshape(-1, 2)
    both = (np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]]))
    cells = [(row[name], column[word]) for name, found in words.items() for word in found if word in column]
    at = np.array(cells, dtype=np.int32).reshape(-1, 2)
    adjacency = sparse.coo_array((np.tile(list(edges.values()), 2), both), shape=(len(row), len(row)))
    attributes = sparse.coo_array((np.ones(len(at)), (at[:, 0], at[:, 1])), shape=(len(row), len(kept)))
    return {
        **csr_arrays("adj", adjacency),
        **csr_arrays("attr", attributes),
        "ids": np.array(list(words), dtype=np.str_),
        "attribute_names": np.array(kept, dtype=np.str_),
        "labels": np.array([category_of(name, categories) for name in words], dtype=np.str_),
        "python_version": np.array(platform.python_version()),
    }


def build(root: Path, top_level: Iterable[str], categories: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Build the dataset's arrays from the source below root and the compiled modules among the names."""
    names = sorted(top_level)
    sources = find_sources(root, names)
    # Only modules without any source are imported, so that a module left out above does not come back.
    compiled = {name for name in names if not (root / name).exists() and not (root / f"{name}.py").exists()}
    words, edges = read_modules(sources, import_compiled(compiled))
    return assemble(words, edges, categories)


def describe(arrays: Mapping[str, Any]) -> str:
    """Return a few lines with the sizes of the dataset and the number of modules in each category."""
    sizes = Counter(arrays["labels"].tolist()).most_common()
    nodes, words = arrays["attr_shape"]
    filled = len(arrays["attr_data"])
    return "\n".join(
        [
            f"Python {arrays['python_version']}: {nodes} modules, {len(arrays['adj_data']) // 2} edges, "
            f"{words} words ({filled / nodes:.1f} per module), {len(sizes)} categories",
            *(f"  {name:<24} {size:>4}" for name, size in sizes),
        ]
    )


def main() -> None:
    """Build the dataset and write it atomically."""
    parser = argparse.ArgumentParser(description="Build the dataset `stdlib` from this interpreter's library.")
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, metavar="FILE", help="file to write (default: the package's own)"
    )
    output = parser.parse_args().output
    arrays: dict[str, Any] = build(Path(sysconfig.get_path("stdlib")), sys.stdlib_module_names, read_categories())
    with atomic(output) as draft:
        np.savez_compressed(draft, **arrays)  # NumPy fixes the dates, so equal arrays give equal bytes
    print(f"{describe(arrays)}\nwrote {output} ({output.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main()
