"""What is known of each dataset, read from registry.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class File:
    """A file of a dataset: what it holds (its role), its name, its hash and where to download it."""

    role: str
    name: str
    hash: str = ""
    address: str = ""
    member: str = ""  # the file's name inside the archive at the address, where there is one
    optional: bool = False  # the graph can be loaded without it, with a warning


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset: its files and what they hold; a count is None where it is not known."""

    name: str
    about: str
    files: tuple[File, ...]
    nodes: int | None = None
    edges: int | None = None
    attributes: int | None = None
    classes: int | None = None
    label_separator: str = ""  # labels are cut off before it; registry.toml shows where that matters


@cache
def registry() -> dict[str, Dataset]:
    """Return all datasets by name, in the order of the file."""
    text = resources.files(__package__).joinpath("registry.toml").read_text(encoding="utf-8")
    return {name: _dataset(name, entry) for name, entry in tomllib.loads(text).items()}


def _dataset(name: str, entry: dict[str, Any]) -> Dataset:
    files = tuple(File(**file) for file in entry.pop("files"))
    return Dataset(name=name, files=files, **entry)
