"""Check docs/results/: its sentences follow from its numbers, and today's code gives the same numbers."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from neural_brane.experiments.reproduce.results import read_json, stale
from neural_brane.experiments.store import describe_machine

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "results"


def test_the_report_and_the_sentences_are_those_made_of_the_numbers(load_script, tmp_path):
    load_script("rewrite_report").main(target=tmp_path)
    for name in ("results.json", "report.html"):
        again = (tmp_path / name).read_text(encoding="utf-8")
        assert again == (FOLDER / name).read_text(encoding="utf-8"), "run scripts/rewrite_report.py"


def test_no_cell_is_stale():
    results, here = read_json(FOLDER / "results.json"), describe_machine()
    marked = [one for one in results.cells if one.fingerprint]
    if not marked:
        pytest.skip("the cells of these results have no fingerprints; run brane reproduce --all")
    packages = here["packages"] | {"python": here["python"]}
    alike = [one for one in marked if one.versions == packages and one.machine.startswith(f"{here['processor']},")]
    if not alike:
        pytest.skip("all cells were computed on another processor or with other libraries, which may change last bits")
    assert stale(replace(results, cells=alike)) == [], "run brane reproduce --all"


def test_pages_say_of_the_kept_results_what_is_so():
    results = read_json(FOLDER / "results.json")
    page = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    assert ("older than the tuning part" in page) == (not results.tuning)
    advice = (
        (ROOT / "docs" / "methods.md").read_text(encoding="utf-8").split("## Where each is good")[1].split("\n## ")[0]
    )
    known = {f"{one.mean:.3f}".lstrip("0") for one in results.find("classification", "macro_f1", train=0.7)}
    quoted = set(re.findall(r"(?<![\d\w])\.\d{3}", advice))
    assert quoted
    assert quoted <= known, "these scores are not in the table at 70 %"
