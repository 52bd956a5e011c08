"""A job reports its metrics as JSON lines, TensorBoard files and one progress line."""

import json

import pytest

pytest.importorskip("torch")

from neural_brane.distributed.embedding import Metrics, Sizes, metrics_file, read_lines
from neural_brane.errors import ParameterError


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def make(target, clock=None, **changes):
    sizes = Sizes(batch=100, steps=10, epochs=2, nodes=50, ranks=2)
    kept = {name: changes.pop(name) for name in sizes._fields if name in changes}
    return Metrics(target, sizes._replace(**kept), clock=clock or Clock(), **{"rank": 0} | changes)


def test_a_line_contains_the_means_of_the_steps_since_the_previous_line(tmp_path):
    clock = Clock()
    metrics = make(tmp_path / "m.jsonl", clock)
    assert metrics.begin() is None
    for step, loss in enumerate([0.7, 0.5], start=1):
        with metrics.phase("lookup"):
            clock.now += 0.25
        metrics.advance(step, epoch=1, loss=loss, mean=loss)
    assert read_lines(tmp_path / "m.jsonl") == []
    clock.now = 2.0
    metrics.advance(3, epoch=1, loss=0.3, mean=0.3)
    (line,) = read_lines(tmp_path / "m.jsonl")
    assert line["loss"] == pytest.approx(0.5)
    assert line["seconds"]["lookup"] == pytest.approx(0.5 / 3, abs=1e-6)
    assert {name: line[name] for name in ("step", "triplets", "triplets_per_second", "ranks", "restarts")} == {
        "step": 3,
        "triplets": 300,
        "triplets_per_second": 150.0,
        "ranks": 2,
        "restarts": 0,
    }
    metrics.close()
    assert len(read_lines(tmp_path / "m.jsonl")) == 1


def test_a_resumed_run_reports_it_and_counts_restarts(tmp_path):
    first = make(tmp_path / "m.jsonl")
    first.begin()
    first.advance(4, epoch=1, loss=0.5, mean=0.5)
    first.close()
    with (tmp_path / "m.jsonl").open("a") as file:
        file.write('{"step": 5, "tri')  # killed in the middle of a line
    second = make(tmp_path / "m.jsonl", ranks=1)
    assert second.begin(4, was=2) == "resumed at step 4 on 1 rank (was 2)"
    second.close()
    third = make(tmp_path / "m.jsonl", ranks=1)
    assert third.begin(4, was=1) == "resumed at step 4 on 1 rank"
    third.advance(10, epoch=2, loss=0.4, mean=0.4)
    third.close()
    lines = read_lines(tmp_path / "m.jsonl")
    assert [line.get("event") for line in lines] == [None, "resumed", "resumed", None]
    assert lines[-1]["restarts"] == 2
    assert lines[-1]["step"] == 10


def test_other_ranks_report_nothing(tmp_path):
    reports = []
    metrics = make(tmp_path / "m.jsonl", rank=1, report=reports.append)
    metrics.begin()
    metrics.advance(10, epoch=2, loss=0.4, mean=0.4)
    metrics.close()
    assert not reports
    assert not list(tmp_path.iterdir())


def test_progress_counts_the_triplets_of_all_ranks():
    reports = []
    metrics = make(None, report=reports.append)
    metrics.begin(5, was=2)
    metrics.advance(6, epoch=2, loss=0.4, mean=0.45)
    last = reports[-1]
    assert (last.done, last.total, last.loss, last.epoch) == (600, 1000, 0.45, 2)


def test_a_folder_also_gets_tensorboard_files(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    metrics = make(tmp_path / "run")
    metrics.begin()
    metrics.advance(1, epoch=1, loss=0.25, mean=0.25)
    metrics.close()
    assert json.loads(metrics_file(tmp_path / "run").read_text())["loss"] == 0.25
    events = accumulator.EventAccumulator(str(tmp_path / "run"))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(1, 0.25)]


def test_a_file_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match=r"--metrics .*file.x\.jsonl: .*written"):
        make(tmp_path / "file" / "x.jsonl")
