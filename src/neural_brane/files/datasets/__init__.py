"""Load graphs by name: published ones (downloaded and checked), one in the package, and synthetic ones of any size."""

from __future__ import annotations

import difflib
import hashlib
import os
import shutil
import tarfile
import tempfile
import tomllib
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from neural_brane.errors import DatasetError, GraphError
from neural_brane.files import nodes as node_files
from neural_brane.files.graphs.formats import TEXT, find_format, read_graph
from neural_brane.files.nodes import Kind, ReadOptions, Targets, label_kind, label_lines, label_series, to_targets
from neural_brane.files.nodes import read_labels as read_label_file
from neural_brane.files.reading import STANDARD_INPUT
from neural_brane.files.storage import atomic, exists
from neural_brane.files.tables import is_table
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops
from neural_brane.graph.synthetic import synthetic


@dataclass(frozen=True, slots=True)
class File:
    """A file of a dataset: its role ("graph", "attributes" or "labels"), name, hash and address."""

    role: str
    name: str
    hash: str = ""
    address: str = ""
    member: str = ""  # name of the file in the archive at the address; "" if the address is not an archive
    optional: bool = False  # True if the graph can be loaded without it, with a warning


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset: its files and counts; an unknown count is None."""

    name: str
    about: str
    files: tuple[File, ...]
    nodes: int | None = None
    edges: int | None = None
    attributes: int | None = None
    classes: int | None = None
    label_separator: str = ""  # labels end before it; "" keeps them whole


@cache
def registry() -> dict[str, Dataset]:
    """Return all datasets by name, in the order of registry.toml."""
    text = resources.files(__package__).joinpath("registry.toml").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = tomllib.loads(text)
    return {
        name: Dataset(name=name, **(entry | {"files": tuple(File(**file) for file in entry["files"])}))
        for name, entry in found.items()
    }


# A file of a dataset is in the user's folder or in the cache, or else it is downloaded. Its hash is checked.
#
# The environment variable NEURAL_BRANE_DATA names the user's folder. This folder and the cache have one subfolder per
# dataset; the files in it have their published names.

FOLDER_VARIABLE = "NEURAL_BRANE_DATA"
TIMEOUT = 30  # seconds without an answer after which a download fails
LARGEST = 1 << 30  # most bytes of a member of an archive


def find(dataset: Dataset, file: File) -> tuple[str, Path | None]:
    """Return the state of a file and its path: "in the package", "here", "cached" or "not downloaded"."""
    if not file.hash:
        return "in the package", Path(str(resources.files(__package__).joinpath(file.name)))
    if (own := _own(dataset, file)) is not None and own.is_file():
        return "here", own
    if (cached := _cached(dataset, file)).is_file():
        return "cached", cached
    return "not downloaded", None


def fetch(dataset: Dataset, file: File) -> Path:
    """Return the path of a file with the right hash; download it first if necessary."""
    state, path = find(dataset, file)
    if path is None:
        return _download(dataset, file)
    if state == "in the package" or digest(path, file.hash) == file.hash:
        return path
    if state == "cached" and file.address:
        return _download(dataset, file)
    found = f"{path}: the file has {digest(path, file.hash)}, but dataset '{dataset.name}' expects {file.hash};"
    raise DatasetError(f"{found} replace it by the published file, or remove it")


def digest(path: Path, like: str) -> str:
    """Return the hash of a file, in the form of the hash `like`: sha256:HEX or git-blob:HEX."""
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
    """Return the path of a dataset's file in a folder; refuse names that lead out of the folder."""
    for name in (dataset.name, file.name):
        if name in ("", ".", "..") or set(name) & {"/", "\\", "\0"}:
            raise DatasetError(f"'{name}' cannot name a dataset or its file; give a name without / and ..")
    return folder / dataset.name / file.name


def _download(dataset: Dataset, file: File) -> Path:
    """Download a file to the cache, where it appears only if it is complete and its hash is right."""
    target = _cached(dataset, file)
    if not file.address:
        raise DatasetError(_absent(dataset, file, "and has no public address"))
    try:
        with atomic(target) as draft:
            _retrieve(file, draft)
            found = digest(draft, file.hash)
            if found != file.hash:
                raise DatasetError(_absent(dataset, file, f"and {file.address} now has another file, {found}"))
    except (OSError, KeyError, tarfile.TarError) as error:
        text = str(error)  # messages of network libraries are long
        reason = f"{type(error).__name__}: {text if len(text) < 100 else text[:97] + '...'}"
        why = f"and could not be downloaded from {file.address} ({reason})"
        raise DatasetError(_absent(dataset, file, why)) from error
    return target


def _retrieve(file: File, draft: Path, largest: int = LARGEST) -> None:
    """Download a file to a draft: from its address, or as a member of the archive there."""
    import pooch

    download = pooch.HTTPDownloader(timeout=TIMEOUT)
    if not file.member:
        download(file.address, str(draft), None)
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "archive"
        download(file.address, str(archive), None)
        with tarfile.open(archive) as members, draft.open("wb") as stream:
            content = members.extractfile(file.member)  # opened for reading: no path of the archive is written to
            if content is None:
                raise KeyError(f"{file.member} is not a file")
            if (size := members.getmember(file.member).size) > largest:
                raise KeyError(f"{file.member} has {size:,} bytes, more than {largest:,}")
            shutil.copyfileobj(content, stream)


def _absent(dataset: Dataset, file: File, why: str) -> str:
    own = _own(dataset, file)
    setting = "" if own else f", or set {FOLDER_VARIABLE} to a folder that has {dataset.name}/{file.name}"
    advice = f"put it in {(own or _cached(dataset, file)).parent}{setting}"
    return f"dataset '{dataset.name}' needs {file.name} ({file.hash}), which is not here {why}; {advice}"


__all__ = ["Listing", "list_datasets", "load", "read", "read_labels", "read_targets", "source_files", "synthetic"]

SYNTHETIC = "synthetic:"


@dataclass(frozen=True, slots=True)
class Listing:
    """A dataset in the list of datasets; an unknown count is None."""

    name: str
    nodes: int | None
    edges: int | None
    attributes: int | None
    classes: int | None
    state: str  # "in the package", "here", "cached" or "not downloaded"
    where: str  # folders of its files
    about: str


def load(name: str, *, duplicates: Duplicates = "max", self_loops: SelfLoops = "keep") -> AttributedGraph:
    """Load a dataset by name.

    Its files are taken from the folder that the environment variable NEURAL_BRANE_DATA names, else from the cache. If
    they are in neither, they are downloaded to the cache. If the attributes of arnetminer-15753 are not available, the
    graph is loaded without them, with a warning.

    Parameters
    ----------
    name : str
        A name that `list_datasets` lists; `synthetic:NODES` makes a graph with so many nodes.
    duplicates : {"max", "sum"}
        The weight of an edge that appears several times, in either direction: the largest weight or the sum.
    self_loops : {"keep", "drop"}
        Whether to keep edges from a node to itself.

    Returns
    -------
    AttributedGraph

    Examples
    --------
    >>> len(load("stdlib"))
    554
    """
    if name.startswith(SYNTHETIC):
        return synthetic(synthetic_nodes(name))
    if name not in registry():
        raise DatasetError(f"there is no dataset '{name}'{_hint(name, 'choose from')}")
    dataset = registry()[name]
    paths: Any = {}
    for file in dataset.files:
        try:
            paths[file.role] = fetch(dataset, file)
        except DatasetError as error:
            if not file.optional or find(dataset, file)[1] is not None:
                raise
            warnings.warn(f"'{name}' is loaded without its {file.role}: {error}", stacklevel=2)
    graph = read_graph(paths.pop("graph"), **paths, duplicates=duplicates, self_loops=self_loops)
    labels = graph.labels
    if labels is not None and dataset.label_separator:
        labels = np.array([label.partition(dataset.label_separator)[0] for label in labels.tolist()])
    return graph.renamed(name).relabelled(labels)


def read(source: str | Path, /, **options: Unpack[ReadOptions]) -> AttributedGraph:
    """Load a dataset by name, or read a graph file.

    Parameters
    ----------
    source : str or Path
        The name of a dataset or the path of a graph file. If a file has the name of a dataset, write ./NAME.
    **options
        Options of `read_graph`. A dataset takes only `duplicates` and `self_loops`.

    Returns
    -------
    AttributedGraph
    """
    name = str(source)
    if name in registry() or name.startswith(SYNTHETIC):
        rules: Any = {rule: options[rule] for rule in ("duplicates", "self_loops") if rule in options}
        for what, given in options.items():
            if given is not None and what not in rules:
                raise DatasetError(f"dataset '{name}' has its own {what}; leave out {given}")
        return load(name, **rules)
    if name != STANDARD_INPUT and not exists(source, DatasetError):
        raise DatasetError(f"'{name}' is neither a file nor a dataset{_hint(name, 'give a path of a graph, or')}")
    if Path(source).suffix == ".brane":
        raise DatasetError(f"{name}: is a model, not a graph; give the graph to which it was fitted")
    return read_graph(source, **options)


def source_files(source: str | Path) -> dict[str, Path]:
    """Return the files that `read` would open, by their names for messages; of a dataset, those on this machine."""
    if dataset := registry().get(str(source)):
        found = {f"{file.role} of {dataset.name}": find(dataset, file)[1] for file in dataset.files}
        return {name: path for name, path in found.items() if path is not None}
    path = Path(source)
    return {"SOURCE": path} | ({"its .content file": path.with_suffix(".content")} if path.suffix == ".cites" else {})


def read_labels(
    source: str | Path, *, id: str | None = None, label: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of nodes and their labels.

    Parameters
    ----------
    source : str or Path
        The name of a dataset, a graph file, a table of nodes or a label file. Graph files end in .npz, .graphml, .gexf,
        .gml, .mtx, .cites or .content; the last two must lie in the same folder.
    id, label : str, optional
        Columns of a table. They can be left out if the table has only two columns.

    Returns
    -------
    ids, labels : ndarray
        Both (nodes,).
    """
    path = Path(source)
    if _is_label_table(path, id, label):
        return node_files.read_label_table(path, id=id, label=label)
    return read_label_file(path) if _is_label_file(path) else _graph_labels(source)


def read_targets(
    source: str | Path,
    *,
    id: str | None = None,
    label: str | None = None,
    kind: Kind | None = None,
    separator: str | None = None,
) -> tuple[np.ndarray, Targets]:
    """Return the ids of nodes and their targets: classes, several labels or numbers.

    Parameters
    ----------
    source, id, label
        The same as for `read_labels`.
    kind : {"class", "several", "number"}, optional
        Left out, the kind is recognised from the labels of a file; labels of a graph are classes.
    separator : str, optional
        The separator between several labels of a node; recognised if left out.

    Returns
    -------
    ids : ndarray, (nodes,)
    targets : ndarray of str or float64, (nodes,), or MultiLabels
    """
    path = Path(source)
    table = _is_label_table(path, id, label)
    if not table and not _is_label_file(path):
        ids, labels = _graph_labels(source)
        known = labels != ""
        lines = label_lines(str(source), ids[known], label_series(labels[known]))
        return (ids, labels) if kind in (None, "class") else to_targets(lines, kind, separator)
    lines = node_files.read_label_lines(path, id=id, label=label) if table else node_files.read_file_lines(path)
    kind = kind or ("several" if separator else label_kind(lines))
    # The reader of classes names the line in its errors.
    return read_labels(source, id=id, label=label) if kind == "class" else to_targets(lines, kind, separator)


def _is_label_table(path: Path, id: str | None, label: str | None) -> bool:
    return id is not None or label is not None or (path.is_file() and is_table(path))


def _is_label_file(path: Path) -> bool:
    return path.is_file() and path.suffix != ".content" and find_format(path) is TEXT


def _graph_labels(source: str | Path) -> tuple[np.ndarray, np.ndarray]:
    path = Path(source)
    graph = read(path.with_suffix(".cites") if path.suffix == ".content" else source)
    if graph.labels is None:
        raise GraphError(f"{source}: this graph has no labels; give a label file with lines of 'node<TAB>label'")
    return graph.ids, graph.labels


def list_datasets() -> list[Listing]:
    """Return all datasets and where their files are: "in the package", "here", "cached" or "not downloaded"."""
    listed = []
    order = ["not downloaded", "cached", "here", "in the package"]
    for one in registry().values():
        found = [find(one, file) for file in one.files if not file.optional]
        state = min((state for state, _ in found), key=order.index)  # the state of the least available file
        where = sorted({str(path.parent) for _, path in found if path is not None}) if state != order[0] else []
        counts = (one.nodes, one.edges, one.attributes, one.classes)
        listed.append(Listing(one.name, *counts, state, ", ".join(where), one.about))
    about = "Synthetic graph with classes, of any size, for tests of speed and memory, as in synthetic:1000000"
    made = Listing(f"{SYNTHETIC}NODES", None, None, None, None, "in the package", "made on demand", about)
    return [*listed, made]


def synthetic_nodes(name: str) -> int:
    """Return the number of nodes in `synthetic:NODES`."""
    digits = name.removeprefix(SYNTHETIC)
    if not digits.isdecimal():
        raise DatasetError(f"'{name}' has no number of nodes; write one, as in {SYNTHETIC}10000")
    return int(digits)


def _hint(name: str, choose: str) -> str:
    close = difflib.get_close_matches(name, registry(), n=1)
    mean = f" (did you mean '{close[0]}'?)" if close else ""
    return f"{mean}; {choose} {', '.join([*registry(), f'{SYNTHETIC}NODES'])}"
