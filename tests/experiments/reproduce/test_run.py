import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from neural_brane import load
from neural_brane.errors import BraneError, GraphError, ParameterError
from neural_brane.experiments.reproduce.plan import quick
from neural_brane.experiments.reproduce.run import prepare, reproduce
from neural_brane.methods import training as devices

CODE = "import neural_brane.cli; neural_brane.cli.main()"
QUICK = (
    "reproduce", "--quick", "--datasets", "stdlib", "--methods", "attributes,smoothed-attributes",
    "--table", "classification", "--jobs", "2",
)  # fmt: skip
SMALL = quick("stdlib")


def start(folder):
    command = [sys.executable, "-c", CODE, *QUICK, "--output", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def finished(folder):
    """Return the finished trainings and when they were written."""
    paths = (folder / "trainings").glob("[!.]*.json")
    return {path.name: path.stat().st_mtime_ns for path in paths}


def results(folder):
    """Return results.json without the values that may differ between runs."""

    def strip(value):
        if isinstance(value, dict):
            return {name: strip(part) for name, part in value.items() if name not in ("seconds", "peak_mb")}
        return [strip(part) for part in value] if isinstance(value, list) else value

    return strip(json.loads((folder / "results.json").read_text()))


def test_a_run_that_is_killed_ends_as_an_undisturbed_one(tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start(killed)
    assert any(line.startswith("2/4 ") for line in process.stderr)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    seen = finished(killed)
    assert len(seen) >= 2
    assert not (killed / "results.json").exists()
    for folder in (killed, whole):
        process = start(folder)
        _, told = process.communicate()
        assert process.returncode == 0, told
        if folder is killed:
            assert f"trainings: 4, of which {4 - told.count(' run ')} are finished" in told
    assert results(killed) == results(whole)
    assert finished(killed).keys() == finished(whole).keys()
    assert seen.items() <= finished(killed).items()
    for folder in (killed, whole):
        names = {path.name for path in folder.iterdir()}
        assert names == {"trainings", "report.html", "results.csv", "results.json"}


def test_nothing_is_computed_twice_and_failures_do_not_lose_the_rest(tmp_path):
    scale = replace(SMALL, sizes={"text_dim": -1})
    order = {"outputs": ["classification"], "methods": ["attributes", "tadw"], "runs": 1}
    ended = []
    results = reproduce(prepare(tmp_path, scale, **order), jobs=2, watch=ended.append)
    assert [(one["method"], one["dataset"]) for one in results.failures] == [("tadw", "stdlib")]
    assert {one.column for one in results.cells} == {"attributes"}
    assert len(ended) == 2
    again = prepare(tmp_path, scale, **order)
    assert [training.method for training in again.missing] == ["tadw"]
    assert "Failed" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_orders_that_come_to_nothing(tmp_path):
    with pytest.raises(ParameterError, match="runs=0"):
        prepare(tmp_path, runs=0)
    with pytest.raises(ParameterError, match="nothing to compute"):
        prepare(tmp_path, SMALL, outputs=["pooling"], methods=["tadw"])
    scale = replace(SMALL, sizes={"dim": 0})
    work = prepare(tmp_path, scale, outputs=["classification"], methods=["attributes"], runs=1)
    with pytest.raises(BraneError, match=r"training.*dim=0"):
        reproduce(work)


def test_a_dataset_without_labels_is_refused_before_anything_is_computed(tmp_path, monkeypatch):
    graph = replace(load("stdlib"), labels=None)
    monkeypatch.setattr("neural_brane.files.datasets.load", lambda name: graph)
    with pytest.raises(GraphError, match=r"'cora'.*labels"):
        prepare(tmp_path, SMALL, datasets=["cora"])


def test_a_gpu_that_is_not_there_is_told_once_and_before_anything_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "_missing", lambda packages: "PyTorch sees no GPU")
    order = {"outputs": ["classification"], "methods": ["neural-brane"]}
    work = prepare(tmp_path, replace(SMALL, device="cuda"), **order)
    with pytest.raises(ParameterError, match=r"device='cuda'.*PyTorch"):
        reproduce(work, watch=lambda ended: pytest.fail("a training was computed"))
