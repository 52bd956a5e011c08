import json
import signal
import subprocess
import sys
import time

import pytest

from neural_brane.errors import BraneError, ParameterError
from neural_brane.methods import devices
from neural_brane.reproduce.run import prepare, reproduce

CODE = "import neural_brane.cli; neural_brane.cli.main()"
QUICK = (
    "reproduce", "--quick", "--datasets", "stdlib", "--methods", "attributes,neural-brane", "--table", "classification",
    "--figure", "map", "--figure", "convergence", "--jobs", "2",
)  # fmt: skip


def start(folder):
    command = [sys.executable, "-c", CODE, *QUICK, "--output", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finished(folder):
    """Finished cells and when they were written."""
    paths = (folder / "cells").glob("*.json") if (folder / "cells").exists() else []
    return {path.name: path.stat().st_mtime_ns for path in paths if not path.name.startswith(".")}


def results(folder):
    """results.json without what may differ from run to run."""

    def strip(value):
        if isinstance(value, dict):
            return {name: strip(part) for name, part in value.items() if name not in ("seconds", "peak_mb")}
        return [strip(part) for part in value] if isinstance(value, list) else value

    return strip(json.loads((folder / "results.json").read_text()))


def test_a_run_that_is_killed_three_times_ends_as_an_undisturbed_one(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    seen = {}
    for moment in (1, 3, 6):
        process = start(killed)
        while len(finished(killed)) < moment:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        seen |= finished(killed)
        assert not (killed / "results.json").exists()
    for folder in (killed, whole):
        process = start(folder)
        _, told = process.communicate()
        assert process.returncode == 0, told
        if folder is killed:
            assert f"trainings: 8, of which {8 - told.count(' run ')} are kept" in told
    assert results(killed) == results(whole)
    assert finished(killed).keys() == finished(whole).keys()
    assert seen.items() <= finished(killed).items()
    assert len(seen) >= 6
    for folder in (killed, whole):
        assert {path.name for path in folder.iterdir()} == {
            "cells",
            "figures",
            "report.html",
            "results.csv",
            "results.json",
        }


def test_nothing_is_computed_twice_and_failures_do_not_lose_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr("neural_brane.reproduce.plan.SMALL", {"text_dim": -1})
    order = {"outputs": ["classification"], "methods": ["attributes", "tadw"], "runs": 1, "small": True}
    ended = []
    results = reproduce(prepare(tmp_path, datasets=["stdlib"], **order), jobs=2, watch=ended.append)
    assert [(one["method"], one["dataset"]) for one in results.failures] == [("tadw", "stdlib")]
    assert {one.column for one in results.entries} == {"attributes"}
    assert len(ended) == 2
    again = prepare(tmp_path, datasets=["stdlib"], **order)
    assert [cell.method for cell in again.missing] == ["tadw"]
    assert "Failed" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_orders_that_come_to_nothing(tmp_path, monkeypatch):
    with pytest.raises(ParameterError, match="runs=0: at least one"):
        prepare(tmp_path, runs=0)
    with pytest.raises(ParameterError, match="nothing to compute"):
        prepare(tmp_path, outputs=["pooling"], methods=["tadw"], small=True, datasets=["stdlib"])
    monkeypatch.setattr("neural_brane.reproduce.plan.SMALL", {"dim": 0})
    work = prepare(
        tmp_path, outputs=["classification"], methods=["attributes"], small=True, datasets=["stdlib"], runs=1
    )
    with pytest.raises(BraneError, match="no cell could be computed; the first says: dim=0"):
        reproduce(work)


def test_a_gpu_that_is_not_there_is_told_once_and_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "_missing", lambda packages: "PyTorch sees no GPU")
    order = {"outputs": ["classification"], "methods": ["neural-brane"], "datasets": ["stdlib"], "small": True}
    work = prepare(tmp_path, **order, device="cuda")
    with pytest.raises(ParameterError, match="device='cuda' cannot be used: PyTorch sees no GPU; pip install"):
        reproduce(work, watch=lambda finished: pytest.fail("a cell was computed"))
