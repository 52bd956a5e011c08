"""A lock beside a checkpoint, so that two runs never write the same one."""

from __future__ import annotations

import errno
import os
import socket
import sys
from pathlib import Path
from typing import Any, Self

from neural_brane.errors import CheckpointError

try:
    import fcntl
except ImportError:  # as on Windows
    fcntl = None  # type: ignore[assignment]

WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)  # what such file systems answer


class Lock:
    """Held by one process at a time, for as long as the block lasts: a file `.NAME.lock` beside the checkpoint.

    The system lets go of it when a process dies, however it dies. Where the file system has no locks, the file itself
    is the lock: it tells the process and the machine, and that of a process that has died is taken over.

    flock: what locks an open file; None where the system has nothing of the kind.
    """

    def __init__(self, path: Path, *, flock: Any = fcntl and fcntl.flock):
        self.checkpoint = path
        self.path = path.with_name(f".{path.name}.lock")
        self._flock = flock
        self._file: int | None = None

    def __enter__(self) -> Self:
        while self._file is None:
            self._file = self._try()
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is None:
            return
        if self._flock is None:  # Windows removes no open file
            os.close(self._file)
        self.path.unlink(missing_ok=True)  # where it is locked, before it is let go: nobody else can hold it yet
        if self._flock is not None:
            os.close(self._file)
        self._file = None

    def _try(self) -> int | None:
        """The open file once it is ours; None where another run removed it meanwhile, and it must be made again."""
        file, made = self._open()
        try:
            if not self._take(file, made):
                raise self._refusal(_holder(file))
            if not self._is_current(file):
                os.close(file)
                return None
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, f"{os.getpid()} {socket.gethostname()}\n".encode())
        except BaseException:
            os.close(file)
            raise
        return file

    def _open(self) -> tuple[int, bool]:
        """The lock's file, and whether it was made just now."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644), True
            except FileExistsError:
                return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), False
        except OSError as error:
            raise CheckpointError(
                f"{self.checkpoint}: no checkpoint can be written there ({error.strerror}); name a file in a folder "
                "that can be written to"
            ) from error

    def _take(self, file: int, made: bool) -> bool:
        """Lock the file; False where another run has it."""
        if self._flock is not None:
            try:
                self._flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                return False
            except OSError as error:
                if error.errno not in WITHOUT_LOCKS:
                    raise
        if made:
            return True
        holder = _holder(file)
        if len(holder) != 2 or _lives(*holder):
            return False
        self.path.unlink(missing_ok=True)  # and so it is made again
        return True

    def _is_current(self, file: int) -> bool:
        """Whether the path still leads to this file: another run may have removed it between opening and locking."""
        try:
            return os.path.samestat(os.fstat(file), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _refusal(self, holder: list[str]) -> CheckpointError:
        who = "process {} on {}".format(*holder) if len(holder) == 2 else "another process"
        return CheckpointError(
            f"{self.checkpoint}: {who} is training with this checkpoint; wait until it ends, or name another file "
            f"(if no such process runs any more, remove {self.path})"
        )


def _holder(file: int) -> list[str]:
    """The process and the machine that wrote a lock; another number of words where it does not tell them."""
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, 200).decode(errors="replace").split()


def _lives(process: str, host: str) -> bool:
    """Whether the process that wrote a lock may still run; one on another machine may."""
    if host != socket.gethostname() or not process.isdigit():
        return host != socket.gethostname()
    if sys.platform == "win32":  # where os.kill with 0 would end it
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
