"""A fitted method in one file: its parameters, the graph that it learned from, and what it learned.

The file is that of `neural_brane.io.tensors`, with a checksum of every bit. Its JSON tells the method, the parameters
as they were given and as they were in force, the graph in numbers, and which arrays make up what was learned.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane import __version__
from neural_brane.errors import BraneError, ModelError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.columns import Encoder
from neural_brane.io import tensors
from neural_brane.io.atomic import check_space, check_target
from neural_brane.methods import METHODS
from neural_brane.methods.base import Embedder
from neural_brane.methods.devices import resolve
from neural_brane.methods.fitted import Fitted
from neural_brane.methods.kinds import cores
from neural_brane.models.values import Packer, check_rows, unpack

SUFFIX = ".brane"
FORMAT = "1"
MODEL = tensors.Kind(
    "model",
    FORMAT,
    ModelError,
    mend="restore it from a copy, or fit the method again and save it",
    outdated="open it with the version that wrote it ('brane info FILE' tells which), or fit the method again and save "
    "it with this one",
    mark="model",
)
GRAPH_PARTS = ("adjacency", "attributes", "ids", "attribute_names", "labels", "name")


def save_model(model: Embedder, path: str | Path) -> None:
    """Write a fitted method to a file that `load_model` opens; it appears whole or not at all."""
    fitted = model._require_fitted()
    path = check_model_target(path)
    about, arrays = describe(model, fitted)
    check_space(path, sum(array.nbytes for array in arrays.values()), ModelError)
    tensors.write(path, MODEL, about, arrays)


def check_model_target(path: str | Path) -> Path:
    """Refuse a path that no model can be written to, before the work whose result it shall hold."""
    return check_target(path, (SUFFIX,), SUFFIX, ModelError)


def load_model(path: str | Path, *, verify: bool = True) -> Embedder:
    """Open a fitted method that `save` wrote; it behaves as it did when it was saved, in all its bits.

    Arrays are views of the file, which the system reads where they are used, so a model larger than memory opens. The
    file must not be changed in place as long as the model lives; `save` to the same path replaces it and does no harm.

    Parameters
    ----------
    path
        The file.
    verify
        Compare the checksum, which reads the whole file once: any changed byte is refused. Without it, a large model
        opens at once, and damage to its numbers goes unseen.

    Examples
    --------
    >>> import tempfile, neural_brane
    >>> path = tempfile.mkdtemp() + "/m.brane"
    >>> neural_brane.Attributes(dim=4, seed=0).fit(neural_brane.load("stdlib")).save(path)
    >>> neural_brane.load_model(path).embedding_.vectors.shape
    (554, 4)
    """
    path = Path(path)
    try:
        _check_kind(path)
        about, arrays = tensors.read(path, MODEL, mapped=True, verify=verify)
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file; give one that model.save wrote") from None
    except IsADirectoryError:
        raise ModelError(f"{path}: is a folder; give a file that model.save wrote") from None
    try:
        return _restore(about, arrays)
    except ModelError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, StopIteration, BraneError) as error:
        raise MODEL.damaged(path, f"or of another version: {type(error).__name__}: {error}") from None


def _check_kind(path: Path) -> None:
    """Refuse a file that is nothing like a model, by its name and its first bytes."""
    with path.open("rb") as file:
        begin = file.read(8 + len(tensors.PREFIX))
    if not begin:
        raise ModelError(f"{path}: is empty; fit the method again and save it")
    if path.suffix != SUFFIX and not begin.endswith(tensors.PREFIX):
        raise ModelError(
            f"{path}: is not a model; 'brane embed SOURCE -o VECTORS --save-model FILE{SUFFIX}' "
            "writes one, and 'brane info' tells what a file is"
        )


def describe(model: Embedder, fitted: Fitted) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What the file says of a fitted method, and its arrays."""
    packer, graph = Packer(), fitted.graph
    losses = getattr(fitted.learned, "loss_history", None)
    about = {
        "method": fitted.method.title,
        "version": fitted.version,
        "written by": __version__,
        "libraries": {name: version(name) for name in ("numpy", "scipy")},
        "nodes": len(graph),
        "dim": fitted.method.dim,
        "graph": fitted.data,
        "updated": fitted.updated,
        "labels known": fitted.labels_known,
        "loss": None if not losses else float(losses[-1]),
        "epochs": None if losses is None else len(losses),
        "given": packer.pack(_given(model, fitted), "given"),
        "settings": packer.pack(fitted.settings | {"progress": None}, "settings"),
        "encoder": None if graph.encoder is None else graph.encoder.as_dict(),
        "parts": packer.pack({part: getattr(graph, part) for part in GRAPH_PARTS}, "graph"),
        "learned": packer.pack(fitted.learned, "learned"),
    }
    return about, packer.arrays()


def _given(model: Embedder, fitted: Fitted) -> dict[str, Any]:
    """The parameters as they were given; one that is an object of Python's stands there as it was in force."""
    plain = (bool, int, float, str, tuple, list, Path, np.generic, type(None))
    in_force = fitted.settings | {"progress": None}
    return {name: value if isinstance(value, plain) else in_force[name] for name, value in model.get_params().items()}


def _restore(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Embedder:
    if about["method"] not in METHODS:
        raise ModelError(
            f"this model is of method {about['method']!r}, which this version does not have; open it with version "
            f"{about['written by']}"
        )
    kind = METHODS[about["method"]]
    encoder = None if about["encoder"] is None else Encoder.from_dict(about["encoder"])
    graph = AttributedGraph(**unpack(about["parts"], arrays), encoder=encoder)
    settings = _for_this_machine(unpack(about["settings"], arrays), kind)
    known = about.get("labels known", 0)  # files of earlier versions have no such line, and their methods no labels
    fitted = Fitted(kind(**settings), graph, unpack(about["learned"], arrays), about["updated"], known)
    fitted.version = about["version"]
    fitted.data = about["graph"]
    _check_learned(fitted)
    model = kind(**unpack(about["given"], arrays))
    model._fitted = fitted
    return model


def _for_this_machine(settings: dict[str, Any], kind: type[Embedder]) -> dict[str, Any]:
    """The parameters in force, with threads and a device that can be had here."""
    if settings["threads"] is not None:
        settings["threads"] = min(settings["threads"], cores())
    if settings.get("device", "cpu") != "cpu":
        settings["device"] = resolve("auto", needs=kind.packages)
    return settings


def _check_learned(fitted: Fitted) -> None:
    """Refuse arrays that do not go with the graph: compiled code reads them without looking."""
    vectors, nodes = getattr(fitted.learned, "vectors", None), len(fitted.graph)
    if vectors is not None and vectors.shape != (nodes, fitted.method.dim):
        raise ValueError(f"vectors of shape {vectors.shape} for {nodes} nodes of dim {fitted.method.dim}")
    part = getattr(fitted.learned, "part", None)
    if part is not None:
        tables = part.model.attribute_table, part.model.neighbour_table
        for bags, table in zip(part.bags, tables, strict=True):
            check_rows(bags.indptr, bags.indices, nodes, len(table))
