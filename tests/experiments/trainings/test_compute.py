import json
import operator
import signal
import subprocess
import sys

import numpy as np
import pytest

from neural_brane import load
from neural_brane.errors import BraneError
from neural_brane.experiments.compute import compute, compute_all, compute_missing, data_facts, peak_memory, run
from neural_brane.experiments.store import Store


@pytest.fixture(scope="module")
def graph():
    return load("stdlib")


def test_a_training_is_computed_scored_and_described(training, graph):
    scoring = {"classes": {"train": [0.3, 0.7], "splits": 2}, "clusters": {"starts": 3}, "map": True}
    record = json.loads(json.dumps(compute(training(seed=3, scoring=scoring))))
    assert {share: len(values) for share, values in record["macro_f1"].items()} == {"0.3": 2, "0.7": 2}
    assert all(0 < record[name] < 1 for name in ("nmi", "purity", "ari"))
    assert len(record["map"]["points"]) == len(record["map"]["labels"]) == record["data"]["nodes"] == 554
    assert record["data"]["digest"] == graph.digest()
    assert record["seconds"] > 0
    assert record["peak_mb"] > 50
    assert record["loss"] == []
    assert "numpy" in record["machine"]["packages"]


@pytest.mark.usefixtures("real_data")
def test_a_graph_is_described_with_its_components():
    facts = data_facts(load("arnetminer"))
    assert (facts["nodes"], facts["components"], facts["largest_component"]) == (5509, 1852, 310)


def test_the_loss_of_every_epoch_is_kept_and_no_score_that_is_not_wanted(training, graph):
    record = compute(training("neural-brane", scoring={}, epochs=3, batches_per_epoch=10), graph)
    assert len(record["loss"]) == 3
    assert record.keys() == {"data", "loss", "seconds", "processor_seconds", "peak_mb", "machine"}


def test_another_seed_has_other_splits_unless_the_scoring_names_one(training, graph):
    def macro(own, **options):
        scoring = {"classes": {"train": [0.7], "splits": 2} | options}
        return compute(training(seed=own, scoring=scoring), graph)["macro_f1"]

    assert macro(0) == macro(0)
    assert macro(0) != macro(1)
    assert macro(0, seed=5) != macro(0)


def test_links_are_held_out_before_training(training, graph):
    found = compute(training(scoring={"links": {"share": 0.2}}), graph)
    assert 0.5 < found["auc_of_cosines"] <= 1
    other = compute(training(scoring={"links": {"share": 0.4}}), graph)
    assert found["auc_of_cosines"] != other["auc_of_cosines"]


def test_what_is_missing_is_computed_and_kept_and_a_failure_is_not(training, tmp_path):
    store = Store(tmp_path)
    wanted = [training(dim=-1), training(), training(seed=1)]
    store.put(wanted[2], {"kept": True})
    ended = {one.task.parameters["dim"]: one for one in compute_missing(wanted, store, jobs=2)}
    assert ended.keys() == {-1, 4}
    assert "dim=-1" in ended[-1].failure
    assert store.get(wanted[1]) == ended[4].result
    assert store.get(wanted[2]) == {"kept": True}
    assert store.missing(wanted) == wanted[:1]


def test_processes_and_this_process_compute_the_same(training, graph, tmp_path):
    wanted = [training("neural-brane", epochs=1, batches_per_epoch=5)]
    here, there = (Store(tmp_path / name, graph=graph) for name in ("here", "there"))
    for store, isolated in ((here, False), (there, True)):
        assert [one.failure for one in compute_missing(wanted, store, isolated=isolated)] == [""]
    assert here.get(wanted[0])["macro_f1"] == there.get(wanted[0])["macro_f1"]


def test_all_records_in_the_order_asked_for_or_what_failed(training, tmp_path):
    store, reports = Store(tmp_path), []
    wanted = [training(), training(seed=1), training()]
    store.put(wanted[0], {"kept": True})
    records = compute_all(wanted, store, progress=reports.append)
    assert records[0] == records[2] == {"kept": True}
    assert records[1]["macro_f1"]
    assert (reports[-1].done, reports[-1].total) == (1, 1)
    with pytest.raises(BraneError, match=r"1.*1.*attributes.*2"):
        compute_all([*wanted, training(dim=-1, seed=2)], store)


def test_peak_memory_is_of_this_process_and_not_of_the_one_that_started_it():
    here = np.ones(75_000_000)
    (ended,) = run(operator.call, [peak_memory], jobs=1)
    assert 10 < ended.result < here.nbytes / 1e6 < peak_memory()


# The signal arrives while the third worker is starting and the others are importing.
STOPPED_AT_START = """
import os, signal, sys, time
from multiprocessing import util
from neural_brane.experiments.compute import run

start, started = util.spawnv_passfds, []

def start_and_stop(*arguments):
    started.append(start(*arguments))
    if len(started) == 3:
        time.sleep(0.3)
        os.kill({process}, {number})
    return started[-1]

def stop(*_):
    sys.exit("stopped")

util.spawnv_passfds = start_and_stop
signal.signal({number}, stop)
list(run(time.sleep, [600] * 4, jobs=4))
"""


@pytest.mark.parametrize(
    ("number", "process"),
    [(signal.SIGINT, "0"), (signal.SIGHUP, "0"), (signal.SIGTERM, "os.getpid()")],
    ids=["Ctrl-C to all processes", "a closed terminal", "a request to the first process"],
)
def test_a_signal_ends_all_processes_with_one_message(number, process):
    command = [sys.executable, "-c", STOPPED_AT_START.format(process=process, number=int(number))]
    ended = subprocess.run(command, capture_output=True, text=True, start_new_session=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "stopped\n")
