import os
import signal
from multiprocessing.connection import wait

import pytest

from neural_brane.errors import ParameterError
from neural_brane.reproduce.cells import Store
from neural_brane.reproduce.plan import Cell
from neural_brane.reproduce.pool import _Job, compute_all

SCORING = {"train": [0.3, 0.5, 0.7], "splits": 1, "starts": 1, "C": 1.0}


def cell(dim, seed=0):
    return Cell("attributes", {"dim": dim}, "stdlib", seed, SCORING, False)


def test_a_failing_cell_is_told_and_the_others_are_kept(tmp_path):
    store = Store(tmp_path)
    ended = {one.cell.parameters["dim"]: one.failure for one in compute_all([cell(-1), cell(4)], store, jobs=2)}
    assert ended[4] == ""
    assert "dim=-1 makes no sense" in ended[-1]
    assert store.get(cell(4)) is not None
    assert store.get(cell(-1)) is None


def test_a_process_that_is_killed_is_told(tmp_path):
    job = _Job(cell(4), Store(tmp_path))
    os.kill(job.process.pid, signal.SIGKILL)
    wait([job.process.sentinel])
    assert "killed by signal 9" in job.finish().failure


def test_no_jobs_is_a_mistake(tmp_path):
    with pytest.raises(ParameterError, match="jobs=0: at least one"):
        next(compute_all([cell(4)], Store(tmp_path), jobs=0))
