import errno
import os
import socket
import subprocess
import sys

import pytest

from neural_brane.errors import CheckpointError
from neural_brane.files.checkpoints import Lock


def unsupported(file, how):
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.fixture(params=["flock", "without flock", "a file system without locks"])
def lock(request, tmp_path):
    options = {"flock": {}, "without flock": {"flock": None}}.get(request.param, {"flock": unsupported})
    return lambda: Lock(tmp_path / "run.checkpoint", **options)


def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_second_run_is_refused_until_the_first_ends(lock, tmp_path):
    for _ in range(2):
        with (
            lock(),
            pytest.raises(CheckpointError, match=rf"process {os.getpid()} on .* is training with this"),
            lock(),
        ):
            pass
        assert not list(tmp_path.iterdir())


def test_the_lock_of_a_process_that_died_is_taken_over(lock, tmp_path):
    (tmp_path / ".run.checkpoint.lock").write_text(f"{dead_process()} {socket.gethostname()}\n")
    with lock():
        assert (tmp_path / ".run.checkpoint.lock").read_text().split()[0] == str(os.getpid())
    assert not list(tmp_path.iterdir())


def test_without_locks_of_the_system_another_machines_process_counts_as_living(tmp_path):
    (tmp_path / ".run.checkpoint.lock").write_text("1 elsewhere\n")
    with pytest.raises(CheckpointError, match=r"process 1 on elsewhere .*remove .*\.run\.checkpoint\.lock"):
        Lock(tmp_path / "run.checkpoint", flock=None).__enter__()


def test_a_lock_that_was_removed_meanwhile_is_made_again(tmp_path):
    """Another run ends, and removes its lock, after this one has opened it."""
    lock = Lock(tmp_path / "run.checkpoint")
    opened = []

    def remove_first(file, how):
        opened.append(file)
        if len(opened) == 1:
            lock.path.unlink()

    lock._flock = remove_first
    with lock:
        assert len(opened) == 2
        assert lock.path.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="no checkpoint can be written there"):
        Lock(tmp_path / "run.checkpoint").__enter__()


def test_a_file_in_the_way_of_a_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="no checkpoint can be written there"):
        Lock(tmp_path / "file" / "run.checkpoint").__enter__()
