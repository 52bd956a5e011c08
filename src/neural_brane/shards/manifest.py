"""What a folder of parts says of itself: sizes, where the parts begin, and the checksum of every file.

The manifest is written last. A folder without one is not finished, and does not open.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from neural_brane.errors import ShardError
from neural_brane.io.atomic import atomic

FORMAT, VERSION = "neural-brane shards", 1
MANIFEST = "manifest.json"
NAMES = "attributes.parquet"
IDS = "ids.parquet"
AGAIN = "make the folder again with 'brane shard SOURCE -o DIR', or restore it"
BLOCK = 1 << 22  # bytes that are read at once


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` holds; part k has the nodes from bounds[k] to bounds[k + 1] - 1."""

    name: str
    nodes: int
    edges: int
    attributes: int
    entries: int
    parts: int
    bounds: list[int]
    weighted: bool  # whether any edge weighs other than 1
    amounts: bool  # whether any node has other than 1 of an attribute
    ids: Literal["string", "integer"]
    files: dict[str, dict[str, int]]  # by path in the folder: bytes and crc32

    def write(self, folder: Path) -> None:
        """Write it to its folder: from then on the folder opens."""
        record = {"format": FORMAT, "version": VERSION} | asdict(self)
        with atomic(folder / MANIFEST) as draft:
            draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(about["bytes"] for about in self.files.values())


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; refuse one that is missing, damaged or of another version."""
    path = folder / MANIFEST
    if not path.is_file():
        found = "has no manifest.json: it is not a folder of parts, or its making was stopped"
        state = found if folder.is_dir() else "is not there"
        raise ShardError(f"{folder}: {state}; make it with 'brane shard SOURCE -o {folder}', or go on by the same")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ShardError(f"{path}: is damaged, it is not JSON; {AGAIN}") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ShardError(f"{path}: is not the manifest of a graph in parts; {AGAIN}")
    if record.get("version") != VERSION:
        raise ShardError(f"{path}: has version {record.get('version')}, and this program reads {VERSION}; {AGAIN}")
    return _checked(record, path)


def is_shards(folder: Path) -> bool:
    """Whether a folder holds a graph in parts, by the first words of its manifest."""
    path = folder / MANIFEST
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return f'"{FORMAT}"' in file.read(200)


def _checked(record: dict[str, Any], path: Path) -> Manifest:
    names = [field.name for field in fields(Manifest)]
    if lacking := [name for name in names if name not in record]:
        raise ShardError(f"{path}: is damaged, '{lacking[0]}' is missing; {AGAIN}")
    manifest = Manifest(**{name: record[name] for name in names})
    bounds = manifest.bounds
    numbers = (manifest.nodes, manifest.edges, manifest.attributes, manifest.entries, manifest.parts)
    sound = (
        all(type(number) is int and number >= 0 for number in numbers)
        and isinstance(bounds, list)
        and all(type(bound) is int for bound in bounds)
        and len(bounds) == manifest.parts + 1
        and (bounds[0], bounds[-1]) == (0, manifest.nodes)
        and bounds == sorted(bounds)
        and isinstance(manifest.files, dict)
        and all(_describes_file(about) for about in manifest.files.values())
    )
    if not sound:
        raise ShardError(f"{path}: is damaged, its numbers contradict each other; {AGAIN}")
    return manifest


def _describes_file(about: Any) -> bool:
    return isinstance(about, dict) and all(type(about.get(name)) is int for name in ("bytes", "crc32"))


def part_folder(number: int) -> str:
    """The name of a part's folder.

    >>> part_folder(7)
    'part-00007'
    """
    return f"part-{number:05d}"


def part_files(number: int, *, weighted: bool, amounts: bool) -> list[str]:
    """The files of one part, by their paths in the folder."""
    files = ["adjacency.indptr.npy", "adjacency.indices.npy", "attributes.indptr.npy", "attributes.indices.npy", IDS]
    files += ["adjacency.weights.npy"] * weighted + ["attributes.amounts.npy"] * amounts
    return [f"{part_folder(number)}/{file}" for file in files]


def describe_files(folder: Path, files: Iterable[str]) -> dict[str, dict[str, int]]:
    """The bytes and the checksum of some files, as the manifest keeps them."""
    return {file: {"bytes": (folder / file).stat().st_size, "crc32": checksum(folder / file)} for file in files}


def checksum(path: Path) -> int:
    """The CRC-32 of a file, read block by block."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            value = zlib.crc32(block, value)
    return value
