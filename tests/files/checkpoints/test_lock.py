import errno
import os
import socket
import subprocess
import sys

import filelock
import pytest

from neural_brane.errors import CheckpointError
from neural_brane.files.checkpoints import locked


@pytest.fixture(params=[None, errno.ENOLCK, errno.EOPNOTSUPP])
def path(request, tmp_path, monkeypatch):
    """Return the path of a checkpoint; two of three times on a file system without locks."""

    def refuse(lock):
        raise OSError(request.param, os.strerror(request.param))

    if request.param:
        monkeypatch.setattr(filelock.FileLock, "_acquire", refuse)
    return tmp_path / "run.checkpoint"


def dead_process():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_second_run_is_refused_until_the_first_ends(path):
    for _ in range(2):
        with locked(path), pytest.raises(CheckpointError, match=rf"process {os.getpid()} on "), locked(path):
            pass
        assert not list(path.parent.iterdir())


def test_the_lock_of_a_process_that_died_is_taken_over(path):
    lock = path.with_name(".run.checkpoint.lock")
    lock.write_text(f"{dead_process()}\n{socket.gethostname()}\n")
    with locked(path):
        assert lock.read_text().split()[0] == str(os.getpid())
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("path", [errno.ENOLCK], indirect=True)
def test_without_system_locks_a_process_of_another_machine_counts_as_alive(path):
    path.with_name(".run.checkpoint.lock").write_text("1\nelsewhere\n")
    with pytest.raises(CheckpointError, match="process 1 on elsewhere"), locked(path):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="no checkpoint can be written there"), locked(tmp_path / "run"):
        pass


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="no checkpoint can be written there"), locked(tmp_path / "file" / "run"):
        pass
