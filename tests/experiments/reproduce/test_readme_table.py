"""Test scripts/readme_table.py, and that the pages contain its table of the results in docs/."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def script(load_script):
    """Return the script as a module."""
    return load_script("readme_table")


def test_a_row_for_each_method_and_a_column_for_each_dataset(script, fill):
    results = fill(["classification"], ["citeseer", "arnetminer"])
    table = script.markdown({"data": results.data, "cells": [asdict(one) for one in results.cells]})
    lines = table.splitlines()
    assert lines[0] == "| Macro-F1, 70 % | citeseer (3,312 nodes) | arnetminer (5,509 nodes) |"
    assert len(lines) == 2 + 16 + 2
    assert lines[-1] == "† with parameters found by `brane tune`"
    (tadw,) = [line for line in lines if line.startswith("| TADW |")]
    assert "† (.611)" in tadw
    assert not [line for line in lines if "†" in line and line.startswith("| NNMF")]
    assert "(.808)" not in tadw  # the published score belongs to another version of arnetminer
    assert table.count("**") == 4


def test_a_brief_table_leaves_out_graphs_that_a_row_lacks(script, fill):
    results = fill(["classification"], ["citeseer", "arnetminer-15753"])
    record = {"data": results.data, "cells": [asdict(one) for one in results.cells]}
    assert "arnetminer-15753 (15,753 nodes)" in script.markdown(record)
    assert "arnetminer-15753" in script.markdown(record, ("DeepWalk",))
    assert "arnetminer-15753" not in script.markdown(record, ("DeepWalk", "TADW"))


def test_a_brief_table_has_the_rows_asked_for_and_still_marks_the_best_of_all(script):
    results = json.loads(script.RESULTS.read_text(encoding="utf-8"))
    whole = script.markdown(results).splitlines()
    brief = script.markdown(results, ("TADW", "DeepWalk")).splitlines()
    assert brief[:2] == whole[:2]
    assert brief[2:4] == [
        next(line for line in whole if line.startswith(f"| {name} |")) for name in ("TADW", "DeepWalk")
    ]


def test_the_table_goes_between_the_markers_and_nowhere_else(script):
    text = "before\n<!-- results -->\nold\n<!-- /results -->\nafter\n"
    once = script.fill(text, "| new |")
    assert once == "before\n<!-- results -->\n| new |\n<!-- /results -->\nafter\n"
    assert script.fill(once, "| new |") == once
    with pytest.raises(SystemExit, match="no place for the table"):
        script.fill("no markers", "| new |")


def test_the_pages_have_the_table_of_the_kept_results(script):
    results = json.loads(script.RESULTS.read_text(encoding="utf-8"))
    for page, rows in script.PAGES.items():
        text = page.read_text(encoding="utf-8")
        assert script.fill(text, script.markdown(results, rows)) == text
