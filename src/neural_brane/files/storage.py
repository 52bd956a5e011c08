"""Write files whole or not at all, and describe folders of files by a manifest with checksums.

Before a long computation, `check_target` and `check_distinct` refuse paths that cannot hold its result. After it,
`atomic` writes one file, and `atomic_together` several files that belong together.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shlex
import shutil
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from neural_brane.errors import BraneError, ParameterError

try:
    import fcntl
except ImportError:  # Windows lacks these locks, so drafts of killed runs stay there
    fcntl = None  # type: ignore[assignment]

DRAFT = ".brane-"  # drafts are called .brane-PID-RANDOM, with the suffix of the final file
DRAFT_NAME = re.compile(rf"{re.escape(DRAFT)}\d+-[0-9a-f]{{8}}")
NO_ROOM = tuple(getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG") if hasattr(errno, name))


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield the path of a draft beside `path`, and rename it to `path` if nothing fails.

    Missing folders are made. The draft has the suffix of `path`, because many writers choose a format by it. It is
    synced to the disk before it is renamed. If `path` is a link, its target is replaced. The permissions of an
    existing file are kept. Drafts of killed runs are removed.
    """
    with atomic_together([path]) as (draft,):
        yield draft


@contextmanager
def atomic_together(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """Yield drafts of files that belong together, and rename them when all are on the disk.

    Readers look for the last file. It is removed before the others are replaced, so that readers refuse the set that a
    crash between two renames leaves, and never take a mixture of old and new files for one set.
    """
    targets = [Path(os.path.realpath(path)) for path in paths]
    with naming(paths[0]), ExitStack() as stack:
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
        with suppress(OSError):  # if a folder cannot be synced, a power cut can only lose the new name
            _sync(folder, os.O_RDONLY)


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Name `path` in errors of the disk that name no file or a draft; libraries raise some that are no OSError."""
    try:
        yield
    except Exception as failure:
        name = getattr(failure, "filename", None)
        known = next((one for one in NO_ROOM if os.strerror(one) in str(failure)), None)
        number = known or getattr(failure, "errno", None)
        if isinstance(failure, BraneError) or number is None or (name is not None and DRAFT not in str(name)):
            raise
        raise OSError(number, os.strerror(number), str(path)) from failure


def check_target(
    path: str | Path, suffixes: Collection[str], expected: str, error: type[BraneError], *, size: int = 0
) -> Path:
    """Return the path if a file with one of the suffixes can be written there, else raise `error`.

    Call it before the computation of the file's content. `expected` lists the suffixes for the message. `size` is the
    expected number of bytes.
    """
    path = Path(path)
    if path.suffix not in suffixes:
        raise error(f"{path}: its suffix names no format; give a file that ends in {expected}")
    if path.is_dir():
        raise error(f"{path}: is a folder; give a file in it")
    check_writable(path, error)
    check_space(path, size, error)
    return path


def require_folder(path: str | Path, error: type[BraneError]) -> Path:
    """Return the folder of a file, even if `path` is a link; raise `error` if the folder does not exist."""
    folder = Path(os.path.realpath(path)).parent
    if not folder.exists():
        raise error(f"{path}: there is no folder '{folder}'; make it with: mkdir -p {shlex.quote(str(folder))}")
    return folder


def check_writable(path: str | Path, error: type[BraneError], *, folder: bool = False) -> None:
    """Raise `error` if a file, or with `folder` a folder of files, cannot be written; the test writes a draft.

    A folder at `path` will be made, but not the one that it is in.
    """
    target = Path(os.path.realpath(path))
    home = target.parent
    try:
        with suppress(FileNotFoundError):
            target.stat()  # fails for example if a name is too long
        home = target if folder and target.exists() else require_folder(path, error)
        if not home.is_dir():
            raise NotADirectoryError
        with _draft(home, target.suffix):
            pass
    except OSError as failure:
        reason = f" ({failure.strerror})" if failure.strerror else ""
        raise error(f"{path}: '{home}' is not a folder that can be written to{reason}; choose another one") from None
    if target.exists() and not os.access(target, os.W_OK):
        raise error(f"{path}: is write-protected; make it writable, or choose another file")


def check_space(path: str | Path, size: int, error: type[BraneError]) -> None:
    """Raise `error` if the disk has no room for `size` bytes beside the file that they replace."""
    folder = next(folder for folder in Path(os.path.realpath(path)).parents if folder.exists())
    free = shutil.disk_usage(folder).free
    if size > free:
        raise error(
            f"{path}: needs about {size:,} bytes, but '{folder}' has {free:,} free; make room, or choose another folder"
        )


def check_distinct(outputs: Mapping[str, str | Path | None], inputs: Mapping[str, str | Path | None]) -> None:
    """Raise an error if an output is also an input or another output, even through a link.

    The keys are the options of the paths, such as "--output". Paths that are None are ignored.
    """
    written = [(name, path) for name, path in outputs.items() if path is not None]
    read = [(name, path) for name, path in inputs.items() if path is not None]
    for place, (name, path) in enumerate(written):
        for other, other_path in [*read, *written[:place]]:
            if same_file(path, other_path):
                shown = f"{path}" if str(path) == str(other_path) else f"{path}, the same file as {other_path},"
                use = "read" if (other, other_path) in read else "written"
                raise ParameterError(
                    f"{name} {shown} is also {use} as {other} and would be overwritten; choose another file"
                )


def exists(path: str | Path, error: type[BraneError]) -> bool:
    """Return whether a path exists; raise `error` if it is too long, or in a folder that this user may not enter."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as failure:  # ValueError: the path contains the character NUL
        reason = getattr(failure, "strerror", None) or failure
        raise error(f"{path}: cannot be read ({reason}); correct the path, or make its folder readable") from None
    return True


def same_file(one: str | Path, other: str | Path) -> bool:
    """Return whether two paths lead to one file, even through links; the files need not exist.

    >>> same_file("graph.txt", "./folder/../graph.txt")
    True
    """
    with suppress(OSError, ValueError):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def remove_abandoned(folder: Path) -> None:
    """Remove the drafts of killed runs from a folder; a draft that is being written is locked and stays."""
    if fcntl is None:
        return
    for path in folder.glob(f"{DRAFT}*"):
        if DRAFT_NAME.fullmatch(path.name.removesuffix(path.suffix)) is None:
            continue
        with suppress(OSError):  # the draft was removed meanwhile, is locked, or belongs to another user
            descriptor = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def _draft(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield an empty, locked file in the folder, and remove it at the end."""
    path = folder / f"{DRAFT}{os.getpid()}-{secrets.token_hex(4)}{suffix}"
    with ExitStack() as stack:
        stack.callback(path.unlink, missing_ok=True)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            if fcntl is None:
                os.close(descriptor)
                break
            with suppress(OSError):  # without locks on this file system, no other run removes the draft either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if path.exists():
                stack.callback(os.close, descriptor)
                break
            os.close(descriptor)  # another run removed the draft before it was locked
        yield path


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


MANIFEST = "manifest.json"
CHECKSUM = "checksum"  # the key of the manifest's own CRC-32, computed from its other entries
REPAIR = "make it again, or copy it again"
DEEPEST = 100  # levels of JSON that are read
BLOCK = 1 << 22  # bytes read at once
Files = dict[str, dict[str, int]]  # for each path in the folder, its `bytes` and `crc32`


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text from a file; raise ValueError if it is damaged or nested too deeply."""
    with suppress(RecursionError):
        value = json.loads(text)
        level = [value]
        for _ in range(DEEPEST):
            inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
            if not (level := list(chain.from_iterable(inner))):
                return value
    raise ValueError(f"its JSON is nested more than {DEEPEST} deep")


@dataclass(frozen=True)
class Manifest:
    """The description of a folder, with typed entries; integers are counts and never negative."""

    FORMAT: ClassVar[str]
    VERSION: ClassVar[int]
    ERROR: ClassVar[type[BraneError]]
    FILE: ClassVar[str] = MANIFEST
    SEALED: ClassVar[bool] = True  # False if manifests of earlier versions have no checksum
    REPAIR: ClassVar[str] = REPAIR  # advice for a damaged folder

    files: Files

    def contradiction(self) -> str:
        """Return a contradiction between entries of the right types, or an empty string."""
        return ""

    @property
    def size(self) -> int:
        """The total number of bytes of all files."""
        return sum(record["bytes"] for record in self.files.values())

    def write(self, folder: Path) -> None:
        """Write the manifest after all other files."""
        with atomic(folder / self.FILE) as draft:
            self.write_draft(draft)

    def write_draft(self, draft: Path) -> None:
        """Write the manifest with its own checksum to a file that is renamed later."""
        content = {"format": self.FORMAT, "version": self.VERSION} | asdict(self)
        text = json.dumps(content | {CHECKSUM: _checksum_of_content(content)}, indent=1)
        draft.write_text(text + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, name: str | None = None) -> Self:
        """Return a folder's manifest, or that in its file `name`; raise an error if it is missing or damaged."""
        path = folder / (name or cls.FILE)
        if not path.is_file():
            state = f"has no {path.name}; it is incomplete or not a folder of {cls.FORMAT}" if folder.is_dir() else ""
            raise cls.ERROR(f"{folder}: {state or 'does not exist'}; {cls.REPAIR}")
        try:
            content = dict(parse_json(path.read_bytes()))
        except (ValueError, TypeError):
            raise cls.ERROR(f"{path}: is damaged or cut off, it is not JSON; {cls.REPAIR}") from None
        if content.get("format") != cls.FORMAT:
            raise cls.ERROR(f"{path}: has format {content.get('format')!r}, expected {cls.FORMAT!r}; {cls.REPAIR}")
        if content.get("version") != cls.VERSION:
            raise cls.ERROR(
                f"{path}: has version {content.get('version')!r}, but this version of neural-brane reads "
                f"{cls.VERSION}; read it with the version that wrote it, or {cls.REPAIR}"
            )
        sealed = cls.SEALED or CHECKSUM in content
        if content.pop(CHECKSUM, None) != _checksum_of_content(content) and sealed:
            raise cls.ERROR(f"{path}: is damaged or changed: it does not match its checksum; {cls.REPAIR}")
        if odd := content.keys() ^ {"format", "version", *(field.name for field in fields(cls))}:
            raise cls.ERROR(f"{path}: is damaged, '{min(odd)}' is missing or unknown; {cls.REPAIR}")
        types = get_type_hints(cls)
        for field in fields(cls):
            if not _has_type(content[field.name], types[field.name]):
                raise cls.ERROR(f"{path}: is damaged, '{field.name}' is not {field.type}; {cls.REPAIR}")
        found = cls(**{field.name: content[field.name] for field in fields(cls)})
        if not all({"bytes", "crc32"} <= record.keys() for record in found.files.values()):
            raise cls.ERROR(f"{path}: is damaged, a file lacks its bytes or crc32; {cls.REPAIR}")
        if contradiction := found.contradiction():
            raise cls.ERROR(f"{path}: is damaged, {contradiction}; {cls.REPAIR}")
        return found

    @classmethod
    def begins(cls, folder: Path) -> bool:
        """Return whether the first characters of a folder's manifest name this format."""
        try:
            with (folder / cls.FILE).open(encoding="utf-8", errors="replace") as file:
                return f'"{cls.FORMAT}"' in file.read(200)
        except OSError:
            return False

    def check_sizes(self, folder: Path) -> None:
        """Raise an error if a file is missing or has the wrong size."""
        for name, record in self.files.items():
            try:
                found = (folder / name).stat().st_size
            except OSError:
                raise self.ERROR(f"{folder / name}: is missing, but {self.FILE} lists it; {self.REPAIR}") from None
            if found != record["bytes"]:
                raise self.ERROR(
                    f"{folder / name}: has {found:,} bytes, but {self.FILE} lists {record['bytes']:,}; it is cut off "
                    f"or changed: {self.REPAIR}"
                )

    def check_file(self, folder: Path, name: str) -> None:
        """Read a file once and raise an error if its CRC-32 is not the one in the manifest."""
        if checksum_of(folder / name) != self.files[name]["crc32"]:
            raise self.ERROR(f"{folder / name}: is damaged: its checksum is not the one in {self.FILE}; {self.REPAIR}")


def _checksum_of_content(content: Mapping[str, Any]) -> int:
    """Return the checksum of a manifest's own content."""
    return zlib.crc32(json.dumps(dict(content), sort_keys=True).encode())


def _has_type(value: Any, kind: Any) -> bool:
    """Return whether a value from JSON has the type of a dataclass field."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin is Literal:
        return value in arguments
    if origin in (list, tuple):
        return isinstance(value, list) and all(_has_type(one, arguments[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(_has_type(one, arguments[1]) for one in value.values())
    if origin is UnionType:
        return any(_has_type(value, one) for one in arguments)
    return type(value) is kind and (kind is not int or value >= 0)


def checksum_of(path: Path) -> int:
    """Return the CRC-32 of a file's bytes."""
    checksum = 0
    with path.open("rb") as file:
        while data := file.read(BLOCK):
            checksum = zlib.crc32(data, checksum)
    return checksum


def describe_files(folder: Path, names: Iterable[str]) -> Files:
    """Return the size and CRC-32 of each file, as a manifest lists them."""
    return {name: {"bytes": (folder / name).stat().st_size, "crc32": checksum_of(folder / name)} for name in names}
