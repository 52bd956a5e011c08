"""A folder of files with a manifest: JSON that is written last and tells the size and CRC-32 of every other file.

Sizes are compared when the folder is opened, which reads nothing of the files; checksums when somebody asks, or before
a program that trusts its input reads a file.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from neural_brane.errors import BraneError
from neural_brane.io.atomic import atomic

MANIFEST = "manifest.json"
CHECKSUM = "checksum"  # of the manifest itself: the CRC-32 of its other entries
CHUNK = 1 << 22
AGAIN = "make it again, or copy it anew"


def checksum_of(path: Path) -> int:
    """The CRC-32 of a file's bytes."""
    found = 0
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            found = zlib.crc32(data, found)
    return found


def describe_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, int]]:
    """What a manifest says of files: their bytes and CRC-32."""
    return {name: {"bytes": (folder / name).stat().st_size, "crc32": checksum_of(folder / name)} for name in names}


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write the manifest of a folder, with a checksum of its own; call it when all other files are there."""
    with atomic(folder / MANIFEST) as draft:
        text = json.dumps(dict(content) | {CHECKSUM: _own_checksum(content)}, indent=1)
        draft.write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: Path, form: str, version: int, error: type[BraneError]) -> dict[str, Any]:
    """The manifest of a folder of the format `form`; one that is missing, damaged or of another version is refused."""
    path = folder / MANIFEST
    if not path.is_file():
        raise error(
            f"{folder}: has no {MANIFEST}; it is no folder of {form}, or what writes it has not ended: wait, or "
            "make it again"
        )
    try:
        content = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError):
        raise error(f"{path}: is damaged or cut off; {AGAIN}") from None
    if content.get("format") != form:
        raise error(f"{path}: is of format {content.get('format')!r}, and {form!r} was expected")
    if content.get("version") != version:
        raise error(
            f"{path}: is of version {content.get('version')!r}, and this version of neural-brane reads {version}; "
            "read it with the one that wrote it"
        )
    if content.pop(CHECKSUM, None) != _own_checksum(content):
        raise error(f"{path}: is damaged or changed: it is not what its checksum says; {AGAIN}")
    return content


def _own_checksum(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(dict(content), sort_keys=True).encode())


def check_sizes(folder: Path, files: Mapping[str, Mapping[str, int]], error: type[BraneError]) -> None:
    """Refuse a folder in which a file is missing, or has other than the bytes that the manifest says."""
    for name, record in files.items():
        try:
            found = (folder / name).stat().st_size
        except OSError:
            raise error(f"{folder / name}: is missing, and {MANIFEST} lists it; {AGAIN}") from None
        if found != record["bytes"]:
            raise error(
                f"{folder / name}: has {found:,} bytes, and {MANIFEST} says {record['bytes']:,}; it is cut off or "
                f"changed: {AGAIN}"
            )


def check_checksum(folder: Path, name: str, record: Mapping[str, int], error: type[BraneError]) -> None:
    """Read a file once, and refuse it where its bytes are not what the manifest's CRC-32 says."""
    if checksum_of(folder / name) != record["crc32"]:
        raise error(f"{folder / name}: is damaged or changed: it is not what its checksum in {MANIFEST} says; {AGAIN}")
