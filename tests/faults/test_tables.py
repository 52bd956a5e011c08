"""Random tables of nodes and edges come back from every format as they were written, or are refused."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("pandas", reason="the tables are frames of pandas")
pytest.importorskip("pyarrow", reason="pandas writes Parquet with it")


def test_no_table_is_read_wrongly():
    spec = importlib.util.spec_from_file_location("table_fuzz", Path(__file__).with_name("table_fuzz.py"))
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    counts = fuzz.count_outcomes(60)
    assert not [said for said in counts if said.startswith("WRONG")]
    assert counts["same"] > 0.8 * counts.total()
