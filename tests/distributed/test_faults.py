"""If ranks and hosts are killed, the job still reaches the loss of an undisturbed job."""

import os
import signal
import socket
from contextlib import suppress

import pytest

from neural_brane import load
from neural_brane.files.graphs.shards import write_shards

pytestmark = pytest.mark.slow

KILLS = 5
EVERY = 10  # steps between two checkpoints
SETTINGS = ("spectral_dim=0", "batch_size=2000", "batches_per_epoch=30", "tolerance=none")
WORDS = ["--checkpoint-every", str(EVERY), "--seed", "0", "--dim", "32", "--epochs", "10"]
WORDS += [word for setting in SETTINGS for word in ("--set", setting)]
LEARNED = 0.5  # a loss well below 0.69, the loss of random vectors
ALONE = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--max-restarts", "10")


@pytest.fixture(scope="module")
def graph(tmp_path_factory, with_torchrec):
    folder = tmp_path_factory.mktemp("graph") / "stdlib"
    write_shards(load("stdlib"), folder, 2)
    return folder


@pytest.fixture
def job(tmp_path, graph, jobs):
    with jobs.Running(tmp_path, graph, WORDS) as running:
        yield running


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, graph, jobs):
    """The loss of a job without kills."""
    with jobs.Running(tmp_path_factory.mktemp("undisturbed"), graph, WORDS) as running:
        running.start(*ALONE, "--nproc-per-node", "2")
        loss = running.finish()
        assert not running.resumed()
        assert loss < LEARNED
        return loss


def test_a_rank_that_is_killed_is_replaced(job, jobs, undisturbed):
    agent = job.start(*ALONE, "--nproc-per-node", "2")
    for kills in range(KILLS):
        job.wait_for_progress(kills, ranks=2)
        os.kill(jobs.workers(agent)[kills % 2], signal.SIGKILL)
        job.wait(lambda so_far=kills + 1: len(job.resumed()) == so_far)
    assert job.finish() == pytest.approx(undisturbed, rel=0.01)
    steps = [line["step"] for line in job.resumed()]
    assert len(steps) == KILLS
    assert steps == sorted(steps)
    assert steps[0] >= EVERY
    for step in steps:
        assert f"resumed at step {step:,} on 2 ranks\n" in job.log()


def test_the_job_continues_without_a_killed_host_until_the_host_returns(job, jobs, undisturbed):
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
    meeting = ("--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "hosts")
    host = (*meeting, "--nnodes", "1:2", "--nproc-per-node", "1", "--max-restarts", "30", "--rdzv-conf")
    first = job.start(*host, f"{jobs.QUICK},is_host=true")  # it owns the store, so it must not be killed
    other = job.start(*host, f"{jobs.QUICK},is_host=false")
    times = 0
    for _ in range(KILLS):
        job.wait_for_progress(times, ranks=2)
        jobs.kill_host(other)
        job.wait(lambda so_far=times: len(job.resumed()) > so_far)
        job.wait_for_progress(len(job.resumed()), ranks=1)
        times = len(job.resumed())
        (left,) = jobs.workers(first).values()
        os.kill(left, signal.SIGSTOP)  # otherwise it could finish before the other host has started
        other = job.start(*host, f"{jobs.QUICK},is_host=false")
        job.wait(lambda pid=left: jobs.has_pending_sigterm(pid))
        with suppress(ProcessLookupError):
            os.kill(left, signal.SIGCONT)
        job.wait(lambda so_far=times: len(job.resumed()) > so_far)
        times = len(job.resumed())
    assert job.finish() == pytest.approx(undisturbed, rel=0.01)
    moves = [(line["was"], line["ranks"]) for line in job.resumed()]
    assert moves.count((2, 1)) == KILLS
    assert moves.count((1, 2)) == KILLS
    assert "on 1 rank (was 2)\n" in job.log()
    assert "on 2 ranks (was 1)\n" in job.log()
