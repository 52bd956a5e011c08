"""Check docs/results/: its sentences follow from its numbers, and today's code gives the same numbers."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from neural_brane.experiments.reproduce.results import read_json, stale
from neural_brane.experiments.store import describe_machine
from neural_brane.files.checkpoints import TOLERANCE
from neural_brane.methods import METHODS
from neural_brane.methods.identity import behaviour

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "results"
# Behaviour.sample of each fingerprint: digests differ between processors, samples by no more than TOLERANCE.
SAMPLES = {"5d4496b3aa853e6a": (23.1335, -28.8542, -7.69161, 0.986796, 5.30226, -6.9247, -2.91055, 3.4991)}


def test_the_report_and_the_sentences_are_those_made_of_the_numbers(load_script, tmp_path):
    load_script("rewrite_report").main(target=tmp_path)
    for name in ("results.json", "report.html"):
        again = (tmp_path / name).read_text(encoding="utf-8")
        assert again == (FOLDER / name).read_text(encoding="utf-8"), "run scripts/rewrite_report.py"


def test_no_cell_is_stale():
    results, here = read_json(FOLDER / "results.json"), describe_machine()
    marked = [one for one in results.cells if one.fingerprint]
    packages = here["packages"] | {"python": here["python"]}
    alike = [one for one in marked if one.versions == packages and one.machine.startswith(f"{here['processor']},")]
    assert stale(replace(results, cells=alike)) == [], "run brane reproduce --all"
    assert {one.fingerprint for one in marked} == SAMPLES.keys(), "keep the samples of the new fingerprints"
    for cell in {one.fingerprint: one for one in marked}.values():
        sample = behaviour(METHODS[cell.method], cell.parameters).sample
        expected = SAMPLES[cell.fingerprint]
        limit = TOLERANCE * max(map(abs, expected))
        assert sample == pytest.approx(expected, abs=limit), "run brane reproduce --all"


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
