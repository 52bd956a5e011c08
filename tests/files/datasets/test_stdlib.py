"""The shipped standard-library graph, and the script that builds it."""

import ast
import importlib.util
import zipfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "src" / "neural_brane" / "files" / "datasets" / "stdlib.npz"


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_stdlib", ROOT / "scripts" / "build_stdlib.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


script = load_script()


def csr(arrays: dict[str, np.ndarray], prefix: str) -> sparse.csr_array:
    parts = tuple(arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=tuple(arrays[f"{prefix}_shape"]))


def weights(arrays: dict[str, np.ndarray]) -> dict[tuple[str, str], float]:
    """Return each edge once, as the names of its two nodes, in alphabetical order."""
    upper = sparse.triu(csr(arrays, "adj")).tocoo()
    ids = arrays["ids"].tolist()
    return {(ids[i], ids[j]): w for i, j, w in zip(*upper.coords, upper.data.tolist(), strict=True)}


def words(arrays: dict[str, np.ndarray], name: str) -> set[str]:
    row = arrays["ids"].tolist().index(name)
    return set(arrays["attribute_names"][csr(arrays, "attr")[[row]].indices].tolist())


@pytest.fixture(scope="module")
def shipped() -> dict[str, np.ndarray]:
    with np.load(FILE, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def test_shipped_arrays_are_sorted_symmetric_and_of_the_promised_kinds(shipped):
    nodes = len(shipped["ids"])
    assert 400 <= nodes <= 700
    assert FILE.stat().st_size < 1_000_000
    for prefix, columns in (("adj", nodes), ("attr", len(shipped["attribute_names"]))):
        assert tuple(shipped[f"{prefix}_shape"]) == (nodes, columns)
        assert shipped[f"{prefix}_data"].dtype == np.float32
        assert shipped[f"{prefix}_indices"].dtype == shipped[f"{prefix}_indptr"].dtype == np.int32
        matrix = csr(shipped, prefix)
        assert matrix.has_canonical_format  # sorted, without repeated entries
        assert (matrix.data >= 1).all()
    adjacency = csr(shipped, "adj")
    assert (adjacency != adjacency.T).nnz == 0
    assert not adjacency.diagonal().any()
    assert set(shipped["attr_data"].tolist()) == {1.0}


def test_shipped_names_are_unique_strings_in_order(shipped):
    for key in ("ids", "attribute_names"):
        assert shipped[key].dtype.kind == "U"
        assert shipped[key].tolist() == sorted(set(shipped[key].tolist()))
    assert str(shipped["python_version"]).startswith("3.11.")


def test_shipped_graph_is_mostly_one_component(shipped):
    _, component = connected_components(csr(shipped, "adj"), directed=False)
    assert np.bincount(component).max() >= 0.95 * len(shipped["ids"])


@pytest.mark.parametrize(
    ("module", "neighbour"),
    [
        ("json", "json.decoder"),
        ("asyncio", "asyncio.events"),
        ("email._policybase", "email.message"),
        ("_socket", "socket"),
        ("fractions", "math"),
    ],
)
def test_well_known_modules_have_the_neighbours_one_expects(shipped, module, neighbour):
    assert (module, neighbour) in weights(shipped)


def test_unrelated_modules_are_not_linked(shipped):
    assert ("json", "tkinter") not in weights(shipped)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("math", {"logarithm", "sqrt", "tangent"}),
        ("email.message", {"charset", "header", "payload"}),
        ("asyncio.tasks", {"coroutine", "cancel", "future"}),
    ],
)
def test_well_known_modules_have_the_words_one_expects(shipped, module, expected):
    assert expected <= words(shipped, module)


def test_every_module_has_its_category_of_the_file_and_no_category_is_tiny(shipped):
    categories = script.read_categories()
    expected = [script.category_of(name, categories) for name in shipped["ids"].tolist()]
    assert shipped["labels"].tolist() == expected
    sizes = Counter(expected)
    assert set(sizes) == set(categories.values())
    assert min(sizes.values()) >= 8


def test_each_module_is_listed_in_one_category_only():
    tables = script.tomllib.loads(script.CATEGORIES.read_text(encoding="utf-8"))
    listed = Counter(module for table in tables.values() for module in table["modules"])
    assert [module for module, count in listed.items() if count > 1] == []


FAKE_LIBRARY = {
    "alpha.py": '''
        """Reads shared HTTPHeaders."""
        import pack.inner, math
        from pack import inner, Thing
        def openFile(target_path): import pack
        ''',
    "pack/__init__.py": "from .inner import *\nfrom . import outer\nimport alpha\n",
    "pack/inner.py": "class HTTPShared: pass\nimport pack.inner\nimport os.path, unknown.module\n",
    "pack/outer.py": "from ..pack import inner as other\n__all__ = ['shared_entries']\n",
    "pack/tests/test_inner.py": "import alpha\n",
    "pack/empty/__init__.py": "",
    "os.py": "",
    "encodings/cp037.py": "import alpha\n",
    "foreign.py": "import alpha\n",
}


@pytest.fixture
def fake(tmp_path, monkeypatch):
    for name, text in FAKE_LIBRARY.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script.inspect.cleandoc(text), encoding="utf-8")
    monkeypatch.setattr(script, "MIN_MODULES", 2)
    monkeypatch.setattr(script, "MAX_SHARE", 0.5)
    names = {"alpha", "pack", "os", "encodings", "math", "no_such_module"}
    categories = {"alpha": "a", "pack": "p", "pack.outer": "o", "os": "s", "math": "m"}
    return script.build(tmp_path, names, categories)


def test_building_finds_the_modules_and_their_labels(fake):
    labels = dict(zip(fake["ids"].tolist(), fake["labels"].tolist(), strict=True))
    assert labels == {"alpha": "a", "math": "m", "os": "s", "pack": "p", "pack.inner": "p", "pack.outer": "o"}


def test_building_counts_import_statements_in_both_directions(fake):
    assert weights(fake) == {
        ("alpha", "math"): 1,
        ("alpha", "pack"): 3,  # an import of `Thing` (not a module), one inside a function, and one by pack itself
        ("alpha", "pack.inner"): 2,
        ("os", "pack.inner"): 1,
        ("pack", "pack.inner"): 1,
        ("pack", "pack.outer"): 1,
        ("pack.inner", "pack.outer"): 1,
    }


def test_building_keeps_the_words_that_modules_share(fake):
    assert fake["attribute_names"].tolist() == ["http", "shared"]
    assert words(fake, "alpha") == words(fake, "pack.inner") == {"http", "shared"}
    assert words(fake, "pack.outer") == {"shared"}
    assert words(fake, "math") == words(fake, "os") == set()


def test_words_of_source_are_those_of_docstrings_and_names():
    tree = ast.parse(script.inspect.cleandoc(FAKE_LIBRARY["alpha.py"]))
    assert script.source_words(tree) == {"read", "shared", "http", "header", "open", "file", "target", "path"}


def test_plurals_lose_their_ending_and_stop_words_go():
    found = script.split_words("The classes, entries and bytes of this STATUS_class with HTTPServerTest2")
    assert found == {"class", "entry", "byte", "status", "http", "server", "test"}


def test_a_private_twin_shares_the_category_and_an_unknown_module_is_named():
    assert script.category_of("_json", {"json": "data"}) == "data"
    with pytest.raises(SystemExit, match="module 'mystery' has no category; list it"):
        script.category_of("mystery", {"json": "data"})


def test_the_command_writes_the_arrays_undated_and_leaves_nothing_else(fake, tmp_path, monkeypatch, capsys):
    output = tmp_path / "out" / "fake.npz"
    output.parent.mkdir()
    monkeypatch.setattr(script, "build", lambda *_: fake)
    monkeypatch.setattr(script.sys, "argv", ["build_stdlib.py", "--output", str(output)])
    script.main()
    with np.load(output, allow_pickle=False) as file:
        assert weights(file) == weights(fake)
    with zipfile.ZipFile(output) as archive:
        dates = {entry.date_time for entry in archive.infolist()}
    # The time of building must not be in the file: building again has to give the same bytes.
    assert dates == {(1980, 1, 1, 0, 0, 0)}
    assert list(output.parent.iterdir()) == [output]
    assert "6 modules, 7 edges, 2 words" in capsys.readouterr().out
