"""What is known of each dataset, and its files: found in a folder or the cache, or downloaded and checked."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from neural_brane.errors import DatasetError
from neural_brane.files.storage import atomic

# What is known of each dataset, read from registry.toml.


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
    found: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {
        name: Dataset(name=name, **(entry | {"files": tuple(File(**file) for file in entry["files"])}))
        for name, entry in found.items()
    }


# Files of datasets: found in the user's folder or in the cache, or else downloaded; their hashes are checked.
#
# The environment variable NEURAL_BRANE_DATA names the user's folder. Both it and the cache hold one
# folder per dataset, with the files under their published names.

FOLDER_VARIABLE = "NEURAL_BRANE_DATA"
TIMEOUT = 30  # seconds without an answer before a download is given up
LARGEST = 1 << 30  # bytes that a member of an archive may have


def find(dataset: Dataset, file: File) -> tuple[str, Path | None]:
    """Say where a file is, without opening it: "in the package", "here", "cached" or "not downloaded"."""
    if not file.hash:
        return "in the package", Path(str(resources.files(__package__).joinpath(file.name)))
    if (own := _own(dataset, file)) is not None and own.is_file():
        return "here", own
    if (cached := _cached(dataset, file)).is_file():
        return "cached", cached
    return "not downloaded", None


def fetch(dataset: Dataset, file: File) -> Path:
    """Return the path of a file whose hash is right, after downloading it if it is not here."""
    state, path = find(dataset, file)
    if path is None:
        return _download(dataset, file)
    if state == "in the package" or digest(path, file.hash) == file.hash:
        return path
    if state == "cached" and file.address:
        return _download(dataset, file)
    raise DatasetError(
        f"{path}: the file has {digest(path, file.hash)}, and dataset '{dataset.name}' expects {file.hash}; "
        "put the published file there, or remove this one"
    )


def digest(path: Path, like: str) -> str:
    """Return the hash of a file, of the same kind as `like`: sha256:HEX or git-blob:HEX."""
    kind = like.partition(":")[0]
    with path.open("rb") as stream:
        if kind == "sha256":
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
        blob = hashlib.sha1(f"blob {path.stat().st_size}\0".encode(), usedforsecurity=False)
        for block in iter(lambda: stream.read(1 << 20), b""):
            blob.update(block)
        return f"git-blob:{blob.hexdigest()}"


def _own(dataset: Dataset, file: File) -> Path | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    return _place(Path(folder).expanduser(), dataset, file) if folder else None


def _cached(dataset: Dataset, file: File) -> Path:
    import pooch

    return _place(Path(pooch.os_cache("neural-brane")), dataset, file)


def _place(folder: Path, dataset: Dataset, file: File) -> Path:
    """Where a dataset's file lies in a folder; names that would lead out of it are refused."""
    for name in (dataset.name, file.name):
        if name in ("", ".", "..") or set(name) & {"/", "\\", "\0"}:
            raise DatasetError(f"'{name}' is no name of a dataset or of its file; give one without / and ..")
    return folder / dataset.name / file.name


def _download(dataset: Dataset, file: File) -> Path:
    """Download a file to the cache; it appears there only when it is complete and its hash is right."""
    target = _cached(dataset, file)
    if not file.address:
        raise DatasetError(_absent(dataset, file, "and has no public address"))
    try:
        with atomic(target) as draft:
            _retrieve(file, draft)
            found = digest(draft, file.hash)
            if found != file.hash:
                raise DatasetError(_absent(dataset, file, f"and {file.address} now holds another file, {found}"))
    except (OSError, KeyError, tarfile.TarError) as error:
        text = str(error)  # those of network libraries run over several lines
        reason = f"{type(error).__name__}: {text if len(text) < 100 else text[:97] + '...'}"
        raise DatasetError(
            _absent(dataset, file, f"and could not be downloaded from {file.address} ({reason})")
        ) from error
    return target


def _retrieve(file: File, draft: Path, largest: int = LARGEST) -> None:
    """Download what is at the file's address to a draft: the file itself, or the archive that has it as a member."""
    import pooch

    download = pooch.HTTPDownloader(timeout=TIMEOUT)
    if not file.member:
        download(file.address, str(draft), None)
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "archive"
        download(file.address, str(archive), None)
        with tarfile.open(archive) as members, draft.open("wb") as stream:
            content = members.extractfile(file.member)  # copied, never extracted: its path in the archive is not used
            if content is None:
                raise KeyError(f"{file.member} is not a file")
            if (size := members.getmember(file.member).size) > largest:
                raise KeyError(f"{file.member} has {size:,} bytes, more than {largest:,}")
            shutil.copyfileobj(content, stream)


def _absent(dataset: Dataset, file: File, why: str) -> str:
    own = _own(dataset, file)
    setting = "" if own else f", or set {FOLDER_VARIABLE} to a folder that has {dataset.name}/{file.name}"
    return (
        f"dataset '{dataset.name}' needs {file.name} ({file.hash}), which is not here {why}; "
        f"put it in {(own or _cached(dataset, file)).parent}{setting}"
    )
