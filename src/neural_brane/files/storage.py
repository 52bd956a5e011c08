"""Write files whole or not at all, and describe folders of files by a manifest with checksums."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

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


MANIFEST = "manifest.json"
CHECKSUM = "checksum"  # of the manifest itself: the CRC-32 of its other entries
AGAIN = "make it again, or copy it anew"
BLOCK = 1 << 22  # bytes of a file that are read at once
Files = dict[str, dict[str, int]]  # by a file's path in its folder: its bytes and crc32


@dataclass(frozen=True)
class Manifest:
    """The facts about a folder of one kind, checked by their types. Whole numbers are counts, from 0 on."""

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int]
    ERROR: ClassVar[type[BraneError]]
    FILE: ClassVar[str] = MANIFEST
    AGAIN: ClassVar[str] = AGAIN  # how to mend a folder

    files: Files

    def contradiction(self) -> str:
        """Return what is wrong with facts that each have the right type, or nothing."""
        return ""

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(record["bytes"] for record in self.files.values())

    def write(self, folder: Path) -> None:
        """Write the manifest with a checksum of its own; call it when all other files are there."""
        content = {"format": self.FORMAT, "version": self.VERSION} | asdict(self)
        with atomic(folder / self.FILE) as draft:
            text = json.dumps(content | {CHECKSUM: _checksum_of_content(content)}, indent=1)
            draft.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of a folder; refuse one that is missing, damaged, or of another format or version."""
        path = folder / cls.FILE
        if not path.is_file():
            state = f"has no {cls.FILE}; it is no folder of {cls.FORMAT}, or is not complete" if folder.is_dir() else ""
            raise cls.ERROR(f"{folder}: {state or 'is not there'}; {cls.AGAIN}")
        try:
            content = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, RecursionError):
            raise cls.ERROR(f"{path}: is damaged or cut off, it is not JSON; {cls.AGAIN}") from None
        if content.get("format") != cls.FORMAT:
            raise cls.ERROR(f"{path}: is of format {content.get('format')!r}, and {cls.FORMAT!r} was expected")
        if content.get("version") != cls.VERSION:
            raise cls.ERROR(
                f"{path}: is of version {content.get('version')!r}, and this version of neural-brane reads "
                f"{cls.VERSION}; read it with the one that wrote it, or {cls.AGAIN}"
            )
        checksum = content.pop(CHECKSUM, None)  # earlier manifests of graphs have none
        if checksum not in (None, _checksum_of_content(content)):
            raise cls.ERROR(f"{path}: is damaged or changed: it is not what its checksum says; {cls.AGAIN}")
        types = get_type_hints(cls)
        for field in fields(cls):
            if field.name not in content:
                raise cls.ERROR(f"{path}: is damaged, '{field.name}' is missing; {cls.AGAIN}")
            if not _fits(content[field.name], types[field.name]):
                raise cls.ERROR(f"{path}: is damaged, '{field.name}' is no {field.type}; {cls.AGAIN}")
        found = cls(**{field.name: content[field.name] for field in fields(cls)})
        if not all({"bytes", "crc32"} <= record.keys() for record in found.files.values()):
            raise cls.ERROR(f"{path}: is damaged, a file lacks its bytes or crc32; {cls.AGAIN}")
        if wrong := found.contradiction():
            raise cls.ERROR(f"{path}: is damaged, {wrong}; {cls.AGAIN}")
        return found

    @classmethod
    def begins(cls, folder: Path) -> bool:
        """Whether a folder has a manifest of this format, judged by its first words."""
        try:
            with (folder / cls.FILE).open(encoding="utf-8", errors="replace") as file:
                return f'"{cls.FORMAT}"' in file.read(200)
        except OSError:
            return False

    def check_sizes(self, folder: Path) -> None:
        """Refuse a folder in which a file is missing, or has another size than its manifest says."""
        for name, record in self.files.items():
            try:
                found = (folder / name).stat().st_size
            except OSError:
                raise self.ERROR(f"{folder / name}: is missing, and {self.FILE} lists it; {self.AGAIN}") from None
            if found != record["bytes"]:
                raise self.ERROR(
                    f"{folder / name}: has {found:,} bytes, and {self.FILE} says {record['bytes']:,}; it is cut off or "
                    f"changed: {self.AGAIN}"
                )

    def check_file(self, folder: Path, name: str) -> None:
        """Read a file once, and refuse it where its bytes are not what the CRC-32 in the manifest says."""
        if checksum_of(folder / name) != self.files[name]["crc32"]:
            raise self.ERROR(
                f"{folder / name}: is damaged or changed: its checksum is not the one in {self.FILE}; {self.AGAIN}"
            )


def _checksum_of_content(content: Mapping[str, Any]) -> int:
    """Return the checksum that a manifest has of itself."""
    return zlib.crc32(json.dumps(dict(content), sort_keys=True).encode())


def _fits(value: Any, kind: Any) -> bool:
    """Tell whether a value read from JSON has a type as dataclasses declare them."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return value in arguments
    if origin in (list, tuple):
        return isinstance(value, list) and all(_fits(one, arguments[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(one, arguments[1]) for one in value.values())
    if origin is UnionType:
        return any(_fits(value, one) for one in arguments)
    return type(value) is kind and (kind is not int or value >= 0)


def checksum_of(path: Path) -> int:
    """Return the CRC-32 of a file's bytes."""
    found = 0
    with path.open("rb") as file:
        while data := file.read(BLOCK):
            found = zlib.crc32(data, found)
    return found


def describe_files(folder: Path, names: Iterable[str]) -> Files:
    """Return the bytes and CRC-32 of files, as a manifest lists them."""
    return {name: {"bytes": (folder / name).stat().st_size, "crc32": checksum_of(folder / name)} for name in names}
