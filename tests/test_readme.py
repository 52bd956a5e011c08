"""The README says only what is so."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


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
    assert quality.markdown(rows) in README


def test_the_example_runs():
    names: dict[str, object] = {}
    exec(re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1), names)
    assert names["embedding"].vectors.shape == (5, 16)


def test_the_commands_it_names_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", README):
        assert (ROOT / picture).is_file()
