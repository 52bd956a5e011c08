"""Manifests: what a folder of files says about itself, as JSON that is written last.

A kind of folder declares its manifest once, as a frozen dataclass derived from `Manifest`: its fields and their types,
the format's name and version, and the error to raise. A folder without its manifest is not complete and does not open.
Sizes of files are compared when a folder is opened, which reads nothing of the files; checksums when somebody asks, or
before a library that trusts its input reads a file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from neural_brane.errors import BraneError
from neural_brane.files.storage import atomic

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
