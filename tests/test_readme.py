"""The README and the pages say what is true, and their links lead somewhere."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from readme_renderer import markdown

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
HOST = re.compile(
    r"https://(github\.com/neural-brane/neural-brane/blob|raw\.githubusercontent\.com/neural-brane/neural-brane)/main/"
)
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def quality(monkeypatch):
    """The script benchmarks/quality.py as a module."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    specification = importlib.util.spec_from_file_location("quality", ROOT / "benchmarks" / "quality.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_table_of_scores_is_the_scripts_output(quality):
    cells = json.loads((ROOT / "benchmarks" / "results" / "quality.json").read_text())["cells"]
    rows = quality.summarise(cells, list(quality.PAPER), ["released", "default"])
    assert all(row["seeds"] for row in rows)
    assert quality.markdown(rows) in (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")


def test_the_readme_is_short():
    text = README.read_text(encoding="utf-8")
    assert len(text.split()) <= 700
    assert text.count("| --- |") == 1
    assert text.count("![") == 1


def test_links_of_the_readme_work_on_a_package_index():
    html = markdown.render(README.read_text(encoding="utf-8"))
    targets = re.findall(r'(?:href|src)="([^"#]+)"', html)
    assert len(targets) > 10
    for target in targets:
        assert HOST.match(target), f"{target}: a package index shows the README alone; write the whole address"
        assert (ROOT / HOST.sub("", target)).is_file(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_pictures_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        assert "://" not in target, f"{target}: the pages are read offline"
        where = (page.parent / path) if path else page
        assert where.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", where.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings], target
