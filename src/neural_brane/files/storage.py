"""Write files whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from neural_brane.errors import BraneError, ParameterError

# The one way in which files are written: whole or not at all, and to a path that was tried before the work.
#
# `check_target` and `check_distinct` refuse a path before the work whose result it shall hold; `atomic` writes it
# after, and `atomic_together` several files that belong together.

try:
    import fcntl
except ImportError:  # Windows has no such locks: what a killed run leaves behind stays there
    fcntl = None  # type: ignore[assignment]

DRAFT = ".brane-"  # drafts are called .brane-PID-RANDOM, with the suffix of the file that they shall become
DRAFT_NAME = re.compile(rf"{re.escape(DRAFT)}\d+-[0-9a-f]{{8}}")


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield the path of a draft beside `path`; what is written there becomes `path` if nothing fails.

    Missing folders are made. The draft keeps the suffix, by which many writers choose a format. It is on the disk
    before it is moved. Of a link, the file that it leads to is replaced. A file that was there keeps its permissions.
    Drafts of runs that were killed are removed.
    """
    with atomic_together([path]) as (draft,):
        yield draft


@contextmanager
def atomic_together(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """Yield drafts of files that belong together, as `atomic` does of one; they are moved when all are on the disk.

    Readers look for the last of them. Of several, that one is taken away before the others are replaced: a crash
    between two moves leaves a set that is refused, and never old and new files that pass for one set.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]
    with ExitStack() as stack:
        drafts = []
        for target in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_abandoned(target.parent)
            drafts.append(stack.enter_context(_draft(target.parent, target.suffix)))
        yield drafts
        for target, draft in zip(targets, drafts, strict=True):
            if target.exists():
                shutil.copymode(target, draft)
            _sync(draft, os.O_RDWR)
        if len(targets) > 1:
            targets[-1].unlink(missing_ok=True)
        for target, draft in zip(targets, drafts, strict=True):
            os.replace(draft, target)
    for folder in {target.parent for target in targets}:
        with suppress(OSError):  # where folders cannot be synced, only the new name could be lost by a power cut
            _sync(folder, os.O_RDONLY)


def check_target(
    path: str | Path, suffixes: Collection[str], expected: str, error: type[BraneError], *, size: int = 0
) -> Path:
    """Return the path if a file with one of the suffixes can be written there, else raise `error`.

    Call it before the work whose result the file shall hold. `expected` lists the suffixes in the message. `size` is
    the number of bytes that the file is expected to have.
    """
    path = Path(path)
    if path.suffix not in suffixes:
        raise error(f"{path}: cannot tell its format; name a file ending in {expected}")
    if path.is_dir():
        raise error(f"{path}: is a folder; name a file in it")
    check_writable(path, error)
    check_space(path, size, error)
    return path


def check_writable(path: str | Path, error: type[BraneError]) -> None:
    """Refuse a file that cannot be written, by making one for a moment in the nearest folder that exists."""
    target = Path(os.path.realpath(path))
    folder = _nearest_folder(target)
    try:
        if not folder.is_dir():
            raise NotADirectoryError
        with _draft(folder, target.suffix):
            pass
    except OSError as failure:
        reason = f" ({failure.strerror})" if failure.strerror else ""
        raise error(f"{path}: '{folder}' is not a folder that can be written to{reason}; choose another") from None
    if target.exists() and not os.access(target, os.W_OK):
        raise error(f"{path}: is write-protected; make it writable, or choose another file")


def check_space(path: str | Path, size: int, error: type[BraneError]) -> None:
    """Refuse a file of `size` bytes that its disk has no room for; the one that it replaces stays until the end."""
    folder = _nearest_folder(Path(os.path.realpath(path)))
    free = shutil.disk_usage(folder).free
    if size > free:
        raise error(
            f"{path}: about {size:,} bytes are needed and {free:,} are free in '{folder}'; "
            "make room, or choose another folder"
        )


def check_distinct(outputs: Mapping[str, str | Path | None], inputs: Mapping[str, str | Path | None]) -> None:
    """Refuse an output that is also an input or another output, by whatever name, link or spelling.

    The keys say where a path was given, as in "--output"; a path that is None was not given.
    """
    given = [(name, path) for name, path in outputs.items() if path is not None]
    others = [(name, path) for name, path in inputs.items() if path is not None]
    for place, (name, path) in enumerate(given):
        for other, its_path in [*others, *given[:place]]:
            if same_file(path, its_path):
                shown = f"{path}" if str(path) == str(its_path) else f"{path}, the same file as {its_path},"
                what = "read" if (other, its_path) in others else "written"
                raise ParameterError(
                    f"{name} {shown} is also {what} as {other} and would be overwritten; choose another file"
                )


def same_file(one: str | Path, other: str | Path) -> bool:
    """Whether two paths lead to one file, also by links; the files need not exist.

    >>> same_file("graph.txt", "./folder/../graph.txt")
    True
    """
    with suppress(OSError):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def remove_abandoned(folder: Path) -> None:
    """Remove the drafts that killed runs have left in a folder; a draft that somebody writes is locked and stays."""
    if fcntl is None:
        return
    for path in folder.glob(f"{DRAFT}*"):
        if DRAFT_NAME.fullmatch(path.name.removesuffix(path.suffix)) is None:
            continue
        with suppress(OSError):  # gone meanwhile, locked, or not ours to remove
            descriptor = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def _draft(folder: Path, suffix: str) -> Iterator[Path]:
    """Make an empty file in the folder, locked as long as this process needs it, and remove it at the end."""
    path = folder / f"{DRAFT}{os.getpid()}-{secrets.token_hex(4)}{suffix}"
    with ExitStack() as stack:
        stack.callback(path.unlink, missing_ok=True)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            if fcntl is None:
                os.close(descriptor)
                break
            with suppress(OSError):  # file systems without locks: nobody can lock it, so nobody removes it
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists():
                stack.callback(os.close, descriptor)
                break
            os.close(descriptor)  # another run has removed it just before it was locked
        yield path


def _nearest_folder(target: Path) -> Path:
    """The folder of a file, or the nearest one above it that exists."""
    return next(folder for folder in target.absolute().parents if folder.exists())


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
