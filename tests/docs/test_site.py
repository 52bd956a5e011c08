"""The site: it is built without a warning, and what is generated from the code is that of the code today."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import neural_brane
from neural_brane import METHODS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built with warnings as errors; the one named by NEURAL_BRANE_SITE, where it is set."""
    if built := os.environ.get("NEURAL_BRANE_SITE"):
        assert Path(built, "index.html").is_file(), f"{built}: there is no site here; run make docs"
        return Path(built)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(folder)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return folder


@pytest.mark.slow
def test_the_reference_has_every_public_name(site):
    pages = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    lacking = [name for name in neural_brane.__all__ if f'id="neural_brane.{name}"' not in pages]
    for mark in re.findall(r"<!-- reference: (.*?) -->", "".join(page.read_text() for page in DOCS.glob("api/*.md"))):
        module, *names = mark.split()
        names = set(names or getattr(import_module(module), "__all__", [])) - set(neural_brane.__all__)
        lacking += [f"{module}.{name}" for name in names if f'id="{module}.{name}"' not in pages]
    assert not lacking


@pytest.mark.slow
def test_the_reference_describes_the_parameters_of_every_method(site):
    page = (site / "api" / "methods.html").read_text(encoding="utf-8")
    for method in METHODS.values():
        after = page.split(f'id="neural_brane.{method.__name__}"')[1].split('<dl class="py class">')[0]
        assert "Parameters" in after, method.__name__


@pytest.mark.slow
def test_examples_are_shown_as_code(site):
    for page in (site / "api").glob("*.html"):
        prose = re.sub(r"<pre>.*?</pre>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "&gt;&gt;&gt;" not in prose, f"{page.name}: write 'Examples' and a line of dashes above the example"


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for attribute in ('src="http', "src='http", 'rel="stylesheet" type="text/css" href="http', "@import url(http"):
            assert attribute not in text, page.name


def test_the_tables_of_methods_are_made_from_the_code(load_script):
    tables = load_script("methods_table")
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.fill(page) == page, "run scripts/methods_table.py"
    for path, made in ((tables.CHOICE, {"measured": tables.measured()}), (tables.RECIPES, {"parts": tables.parts()})):
        text = path.read_text(encoding="utf-8")
        assert tables.put(text, made, path) == text, "run scripts/methods_table.py"
    advice = page.split("## Where each is good")[1].split("\n## ")[0]
    assert not [name for name in METHODS if f"`{name}`" not in advice]


def test_the_table_of_vector_formats_is_made_from_the_code(load_script):
    formats = load_script("formats_table")
    page = formats.PAGE.read_text(encoding="utf-8")
    assert formats.fill(page) == page, "run scripts/formats_table.py"


def test_the_tables_of_ten_graphs_are_made_from_the_results(load_script):
    tables = load_script("ten_graphs")
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.fill(page) == page, "run scripts/ten_graphs.py"


def test_the_best_of_a_graph_is_bold_and_what_is_ahead_of_the_default_is_told(load_script):
    tables = load_script("ten_graphs")
    default = {"macro_f1": [0.7], "nmi": [0.4], "link": [0.9], "processor_seconds": [12.3], "peak_mb": [1234.0]}
    tadw = default | {"macro_f1": [0.72, 0.74], "processor_seconds": [1.26]}
    cells = {"cora": {"neural-brane": default, "tadw": tadw, "line": {"failure": "out of time"}}}
    rows = {row.split(" | ")[0]: row for row in tables.table(cells, "macro_f1").splitlines()}
    assert rows["| `tadw`"] == "| `tadw` | **.730** |"
    assert rows["| `neural-brane`"] == "| `neural-brane` | .700 |"
    assert rows["| `line`"] == "| `line` | - |"
    assert "| `neural-brane` | 1,234 |" in tables.table(cells, "peak_mb")
    assert "| `tadw` | 1.3 |" in tables.table(cells, "processor_seconds")
    told = tables.ahead(cells)
    assert told == ["**Macro-F1**: cora: `tadw` (+.030).", "**NMI**: none.", "**AUC of links**: none."]


def test_the_picture_of_packages_has_todays_arrows(load_script):
    draw = load_script("draw_packages")
    listed = draw.PICTURE.read_text(encoding="utf-8").split("<desc>\n")[1].split("\n</desc>")[0]
    assert listed.splitlines() == [f"{here} -&gt; {there}" for here, there in draw.arrows()], "run make docs"


def test_arrows_are_found_wherever_the_import_stands(load_script, tmp_path):
    draw = load_script("draw_packages")
    files = {
        "__init__.py": "if TYPE_CHECKING:\n    from neural_brane.graph.parts import Graph\n",
        "errors.py": '"""Errors."""\n',
        "files/__init__.py": '"""Files."""\nfrom neural_brane.graph import Graph\n',
        "graph/__init__.py": '"""Graphs."""\n',
        "graph/parts.py": "from neural_brane.errors import E\nfrom neural_brane.graph import other\n",
        "cli/__init__.py": '"""Commands."""\ndef main():\n    from neural_brane import Graph, files\n',
        "tune/__init__.py": '"""Search."""\nimport neural_brane.cli\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert draw.arrows(tmp_path) == [("cli", "files"), ("cli", "graph"), ("files", "graph"), ("tune", "cli")]
    graph, closing = draw.split_circles([*draw.arrows(tmp_path), ("graph", "tune")])
    assert len(closing) == 1
    assert len(graph.edges) == 4
    picture = draw.svg(tmp_path)
    assert picture.count("<rect class=") == 4
    assert picture.count('<path class="arrow"') == 3  # cli -> graph follows from the others


def test_the_map_of_the_source_names_every_package(load_script):
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("| package |")[1].split("\n\n")[0]
    for name, path in load_script("draw_packages").parts(ROOT / "src" / "neural_brane").items():
        assert f"`{name}/`" in table if path.name == "__init__.py" else f"`{name}.py`" in table, name


SEARCHED = (
    "bipartite", "directed", "igraph", "PyTorch Geometric", "recommender", "cold start", "inductive",
    "similarity search", "visualisation",
)  # fmt: skip


@pytest.mark.parametrize("word", SEARCHED)
def test_a_word_that_people_search_for_is_a_heading_and_in_the_index(word):
    headings = [line for page in DOCS.glob("*.md") for line in page.read_text().splitlines() if line.startswith("#")]
    assert any(word.lower() in heading.lower() for heading in headings)
    assert word.lower() in (DOCS / "topics.md").read_text(encoding="utf-8").lower()


def test_every_page_is_at_most_three_links_from_the_first():
    reached = {DOCS / "index.md"}
    for _ in range(3):
        for page in list(reached):
            text = page.read_text(encoding="utf-8")
            named = [*re.findall(r"\]\(([\w-]+\.md)", text), *(f"{one}.md" for one in re.findall(r"<([\w-]+)>", text))]
            reached |= {DOCS / name for name in named if (DOCS / name).is_file()}
    assert set(DOCS.glob("*.md")) <= reached


@pytest.mark.slow
def test_every_page_has_side_navigation(site):
    for page in (page for page in site.rglob("*.html") if not {"_static", "_downloads"} & set(page.parts)):
        navigation = page.read_text(encoding="utf-8").partition('aria-label="Site"')[2]
        assert page.name in ("genindex.html", "search.html") or "Background" in navigation, page.name


def test_no_page_has_a_name_that_sphinx_takes():
    assert not {page.stem for page in DOCS.glob("*.md")} & {"search", "genindex", "modindex"}


def test_hooks_run_what_make_check_runs():
    commands = (ROOT / "Makefile").read_text(encoding="utf-8").split("\ncheck:")[1].split("\n\n")[0].splitlines()[1:]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8").splitlines()
    entries = [line.split("entry: python -m ")[1] for line in hooks if "entry:" in line]
    assert entries == [command.removeprefix("\t$(BIN)/") for command in commands]


def test_the_checks_run_on_every_python_that_the_package_names():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    named = [line.removeprefix(prefix) for line in project["classifiers"] if line.startswith(prefix)]
    listed = ", ".join(f'"3.{minor}"' for minor in named)
    assert f"python: [{listed}]" in (ROOT / ".github" / "workflows" / "checks.yml").read_text(encoding="utf-8")
    assert project["requires-python"] == f">=3.{named[0]}"
