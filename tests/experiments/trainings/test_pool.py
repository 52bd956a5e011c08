import os
import signal
import threading
from pathlib import Path

import pytest

from neural_brane.errors import ParameterError
from neural_brane.experiments.compute import OUT_OF_TIME, Process, run


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    """Let new processes import this file, however the tests were started."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2])


def work(task):
    """Return the task, raise an error, or kill this process, depending on the task."""
    if task == "fail":
        raise ParameterError("no such thing")
    if task == "bug":
        raise ZeroDivisionError("by zero")
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return task if isinstance(task, str) else (os.getpid(), b"x" * task)


def wait_for_nothing(task):
    threading.Event().wait()


def test_calls_that_fail_or_are_killed_are_told_and_the_others_go_on():
    ended = {one.task: one for one in run(work, ["fail", "bug", "die", "fine"], jobs=2)}
    assert (ended["fine"].result, ended["fine"].failure) == ("fine", "")
    assert ended["fail"].failure == "no such thing"
    assert ended["bug"].failure == "ZeroDivisionError: by zero"
    assert "signal 9" in ended["die"].failure


def test_each_call_has_a_process_of_its_own_and_its_answer_may_be_large():
    answers = [one.result for one in run(work, [10, 2**20], jobs=1)]
    assert [len(text) for _, text in answers] == [10, 2**20]
    assert len({pid for pid, _ in answers} | {os.getpid()}) == 3


def test_one_job_may_run_in_this_process():
    ended = list(run(work, [1, "fail"], jobs=1, isolated=False))
    assert ended[0].result[0] == os.getpid()
    assert ended[1].failure == "no such thing"
    with pytest.raises(ZeroDivisionError):
        list(run(work, ["bug"], jobs=1, isolated=False))


def test_a_caller_that_stops_ends_the_processes(monkeypatch):
    started = []
    start = Process.__init__

    def note(self, *arguments):
        start(self, *arguments)
        started.append(self)

    monkeypatch.setattr(Process, "__init__", note)
    monkeypatch.setattr("neural_brane.experiments.compute.wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(run(wait_for_nothing, [1, 2], jobs=2))
    failures = [process.end().failure for process in started]
    assert ["signal 9" in failure for failure in failures] == [True, True]


def interrupt(connections):
    raise KeyboardInterrupt


def test_a_call_that_takes_too_long_is_ended():
    (ended,) = run(wait_for_nothing, [1], jobs=1, timeout=0.01)
    assert ended.failure == OUT_OF_TIME


def test_no_jobs_is_a_mistake():
    with pytest.raises(ParameterError, match="jobs=0"):
        next(run(work, [1], jobs=0))
