import json

import numpy as np
import pytest

from neural_brane.errors import CheckpointError
from neural_brane.files import checkpoints
from neural_brane.files.checkpoints import Stages


class HaltError(Exception):
    """An error that stops a run in these tests."""


def count(checkpoint, total, *, stop=None, until=lambda: False, **options):
    """Run steps that add their number to an array and a list; return both, and the steps of this run."""
    table, numbers, seen = np.zeros(3), {"sum": []}, []
    with checkpoint as opened:
        for step in Stages(opened).stage("counting").steps(total, {"table": table}, numbers, until=until, **options):
            if step == stop:
                raise HaltError
            table += step
            numbers["sum"].append(step)
            seen.append(step)
    return table, numbers["sum"], seen


def test_without_a_checkpoint_all_steps_run_and_nothing_is_saved():
    stages = Stages()
    assert list(stages.stage("a").steps(3, {})) == [0, 1, 2]
    assert list(stages.within("b").stage("a").steps(3, {}, until=lambda: True)) == []
    assert stages.once("c", lambda: np.ones(2)).tolist() == [1, 1]
    assert stages.stage("a").position == 0


def test_a_stopped_stage_resumes_at_its_next_step(make):
    with pytest.raises(HaltError):
        count(make(), 5, stop=3)
    table, numbers, seen = count(make(), 5)
    assert seen == [3, 4]
    assert numbers == [0, 1, 2, 3, 4]
    assert table.tolist() == [10, 10, 10]
    assert count(make(), 5)[2] == []
    assert count(make(), 7)[2] == [5, 6]


def test_fewer_steps_than_were_taken_are_refused(make):
    count(make(), 6, per_epoch=2)
    with pytest.raises(CheckpointError, match=r"3 epochs.*2"):
        count(make(), 4, per_epoch=2)


def test_a_stage_computed_once_is_kept_and_later_stages_restart_after_an_earlier_one_continues(make):
    def run(total, made):
        with make() as opened:
            stages = Stages(opened)
            first = stages.once("first", lambda: np.full(2, made))
            middle = list(stages.stage("middle").steps(total, {"table": np.zeros(1)}))
            last = list(stages.within("part").stage("last").steps(2, {"table": np.zeros(1)}))
        return first.tolist(), middle, last

    assert run(3, 7.0) == ([7, 7], [0, 1, 2], [0, 1])
    assert run(3, 8.0) == ([7, 7], [], [])
    assert run(4, 8.0) == ([7, 7], [3], [0, 1])


def test_arrays_on_a_device_are_fetched_until_their_stage_ends(make):
    """The arrays of a stage may live on a GPU, whose memory is freed when the stage has ended."""
    table, open_ = np.zeros(2), [True]

    def fetch():
        assert open_[0]
        return {"table": table.copy()}

    with make() as opened:
        stages = Stages(opened)
        for step in stages.stage("elsewhere").steps(2, fetch):
            table += step
        open_[0] = False
        list(stages.stage("next").steps(2, {"table": np.zeros(1)}))
    with make() as opened:
        again = Stages(opened).stage("elsewhere")
        restored = np.zeros(2)
        again.restore({"table": restored}, {})
        assert restored.tolist() == [1, 1]


def test_a_stage_ends_before_a_step_that_is_not_needed(make):
    ended = []
    assert count(make(), 5, until=lambda: len(ended) > 1 or bool(ended.append(0)))[2] == [0, 1]
    assert count(make(), 5, until=lambda: True)[2] == []


def test_a_checkpoint_is_saved_at_intervals_and_at_the_end_of_a_stage(make, tmp_path):
    now, positions = [0.0], []

    def clock():
        return now[0]

    with make(interval=10, clock=clock) as opened:
        for _ in Stages(opened).stage("counting").steps(5, {"table": np.zeros(1)}):
            now[0] += 4
            path = tmp_path / "run.checkpoint"
            positions.append(position(path) if path.exists() else None)
    assert positions == [None, None, None, 3, 3]
    assert position(tmp_path / "run.checkpoint") == 5


def position(path):
    content = path.read_bytes()
    about = json.loads(json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]["about"])
    return about["stages"]["counting"]["position"]


def test_writing_takes_a_small_share_of_the_time(make, tmp_path, monkeypatch):
    now, written = [0.0], []

    def slow(path, kind, about, arrays):
        now[0] += 1
        written.append(now[0])

    monkeypatch.setattr("neural_brane.files.tensors.write", slow)
    with make(interval=1, share=0.02, clock=lambda: now[0]) as opened:
        for _ in Stages(opened).stage("counting").steps(200, {"table": np.zeros(1)}):
            now[0] += 1
    assert len(written) == 1 + 200 // 50


def test_nan_is_never_saved(make, tmp_path):
    table = np.zeros(3)
    with make() as opened:
        for step in Stages(opened).stage("counting").steps(4, {"table": table}):
            table[:] = np.nan if step == 2 else step
            if step == 3:
                break
    assert position(tmp_path / "run.checkpoint") == 2


def test_a_full_disk_does_not_stop_training(make, monkeypatch):
    def full(path, kind, about, arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("neural_brane.files.tensors.write", full)
    with pytest.warns(UserWarning, match=r"run\.checkpoint: .*No space left on device.*training continues"):
        assert count(make(), 3)[2] == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"method": "deepwalk"}, "method 'nnmf'.*'deepwalk'; remove it"),
        ({"graph": {"nodes": 3, "digest": "f"}}, r"another graph.*'small' \(12 nodes, .*'small' \(3 nodes"),
        ({"parameters": {"dim": 9}}, "another run: dim was 8, now 9.*give the earlier value"),
        ({"seed": 2}, "seed was 1, now 2"),
    ],
)
def test_another_run_is_refused_with_the_reason(make, change, reason):
    count(make({"dim": 8}), 2)
    with pytest.raises(CheckpointError, match=reason):
        count(make(**{"parameters": {"dim": 8}} | change), 2)


def test_parameters_that_are_free_may_differ(make):
    count(make({"epochs": 2}), 2)
    assert count(make({"epochs": 3}, free=("epochs",)), 3)[2] == [2]


def test_other_code_is_refused(make):
    count(make(), 2)
    with pytest.raises(CheckpointError, match=r"version.*steps differ"):
        count(make(code={"behaviour": "ff", "sample": [1.0, -2.1]}), 2)


def test_code_without_a_trial_is_identified_by_its_version(make, monkeypatch):
    count(make(code={"untried": True}), 2)
    count(make(), 2)
    monkeypatch.setattr(checkpoints, "__version__", "9.9")
    with pytest.raises(CheckpointError, match=r"9\.9"):
        count(make(), 2)


def test_the_digest_of_sources_that_earlier_versions_kept_is_refused(make):
    checkpoint = make()
    checkpoint.identity["code"] = "0123456789abcdef"
    count(checkpoint, 2)
    with pytest.raises(CheckpointError, match="was written by version"):
        count(make(), 2)


@pytest.mark.parametrize("code", [None, {"behaviour": "ff", "sample": [1.0, -2.0001]}])
def test_a_warning_says_that_last_bits_may_differ(make, monkeypatch, code):
    """Other libraries or processors round sums in another way."""
    count(make(), 2)
    if code is None:
        monkeypatch.setattr(checkpoints, "version", lambda name: "9.9")
    with pytest.warns(UserWarning, match="last bits"):
        count(make(code=code), 2)


def test_other_arrays_are_refused(make):
    count(make(), 2)
    with make() as opened, pytest.raises(CheckpointError, match=r"arrays.*'counting'.*3"):
        list(Stages(opened).stage("counting").steps(2, {"table": np.zeros(4)}, {}))
    with make() as opened, pytest.raises(CheckpointError, match=r"arrays.*float64.*float32"):
        list(Stages(opened).stage("counting").steps(2, {"table": np.zeros(3, np.float32)}, {}))


def test_a_folder_is_refused(make, tmp_path):
    (tmp_path / "run.checkpoint").mkdir()
    with pytest.raises(CheckpointError, match=r"run\.checkpoint: is a folder"):
        count(make(), 2)


def test_nothing_but_the_checkpoint_is_left(make, tmp_path):
    with pytest.raises(HaltError):
        count(make(), 5, stop=3)
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]
