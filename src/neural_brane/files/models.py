"""Save a fitted method to one file and load it again, with its parameters, its graph and its learned arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane import __version__
from neural_brane.errors import BraneError, ModelError
from neural_brane.files import tensors
from neural_brane.files.npz import check_text
from neural_brane.files.storage import check_space, check_target, exists
from neural_brane.files.tensors import CODES
from neural_brane.graph import AttributedGraph
from neural_brane.graph.encoder import Encoder
from neural_brane.insight.pairs import PairFeatures
from neural_brane.methods import METHODS
from neural_brane.methods.base import Embedder, Fitted
from neural_brane.methods.parameters import cores
from neural_brane.methods.training import resolve

# Learned values become JSON and arrays. JSON stores numbers, texts, booleans and None directly. Every other value is an
# object with one key, its kind: an array, a sparse matrix, a list, a tuple, a dict, or one of the named tuples in the
# method's `holds`. No other name in a file is looked up, so a file cannot make the program import or call anything.
# Each array is stored once beside the JSON, even if it is used several times.

Arrays = Mapping[str, np.ndarray]


class Packer:
    """Turn values into JSON and collect their arrays; `holds` maps names in files to named tuples."""

    def __init__(self, holds: Mapping[str, type]) -> None:
        self._types = {kind: name for name, kind in holds.items()}
        self._names: dict[int, str] = {}
        self._found: dict[str, np.ndarray] = {}  # keeps the arrays alive, so that no two have the same id()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name, wide dtypes first, so that each array is aligned in the file."""
        return dict(sorted(self._found.items(), key=lambda item: -item[1].dtype.itemsize))

    def pack(self, value: Any, where: str) -> Any:
        """Return a value as JSON; `where` names the value in errors and its arrays in the file."""
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            return value if not isinstance(value, np.generic) else value.item()
        if isinstance(value, float | np.generic):
            return {"number": self._array(np.asarray(value), where)}
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "U":
                codes = np.ascontiguousarray(value).view(np.uint32)
                return {"text": self._array(codes.reshape(*value.shape, value.dtype.itemsize // 4), where)}
            turned = value.ndim == 2 and value.flags.f_contiguous and not value.flags.c_contiguous
            return {"turned": self._array(value.T, where)} if turned else {"array": self._array(value, where)}
        if isinstance(value, sparse.csr_array):
            names = ("data", "indices", "indptr")
            parts = {name: self._array(getattr(value, name), f"{where}/{name}") for name in names}
            return {"sparse": parts | {"shape": list(value.shape)}}
        if isinstance(value, Path):
            return {"path": str(value)}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self.pack(one, f"{where}/{key}") for key, one in value.items()}}
        if type(value) in self._types:
            fields = {field: self.pack(one, f"{where}/{field}") for field, one in value._asdict().items()}
            return {"type": self._types[type(value)], "fields": fields}
        if type(value) in (list, tuple):
            kind = type(value).__name__
            return {kind: [self.pack(one, f"{where}/{at}") for at, one in enumerate(value)]}
        raise ModelError(f"{where} is a {type(value).__name__}, which a model file cannot hold; use plain values")

    def _array(self, array: np.ndarray, where: str) -> str:
        if array.dtype not in CODES:
            raise ModelError(f"{where} is an array of {array.dtype}, which a model file cannot hold; use numbers")
        if id(array) not in self._names:
            self._names[id(array)] = where
            self._found[where] = array
        return self._names[id(array)]


def unpack(packed: Any, arrays: Arrays, holds: Mapping[str, Any]) -> Any:
    """Return the value that `pack` described; raise ValueError, KeyError or TypeError if it is malformed."""
    if isinstance(packed, list):
        raise ValueError("a list without its kind")
    if not isinstance(packed, dict):
        return packed
    again = partial(unpack, arrays=arrays, holds=holds)
    kind, content = next(iter(packed.items()))
    match kind:
        case "number":
            return arrays[content][()]
        case "array":
            return arrays[content]
        case "turned":
            return arrays[content].T
        case "text":
            codes = arrays[content]
            dtype = np.dtype(f"<U{codes.shape[-1]}")
            check_text(codes.reshape(-1).view(np.uint8), dtype)
            return codes.reshape(-1).view(dtype).reshape(codes.shape[:-1])
        case "sparse":
            return _unpack_sparse(content, arrays)
        case "path":
            return Path(content)
        case "dict":
            return {key: again(value) for key, value in content.items()}
        case "list":
            return [again(value) for value in content]
        case "tuple":
            return tuple(again(value) for value in content)
        case "type":
            fields, expected = packed["fields"], holds[content]._fields
            if lacking := set(expected) - fields.keys():
                raise ValueError(f"{content} without {', '.join(lacking)}")
            return holds[content](**{name: again(fields[name]) for name in expected})  # earlier versions had more
    raise KeyError(kind)


def _unpack_sparse(content: dict[str, Any], arrays: Arrays) -> sparse.csr_array:
    data, indices, indptr = (arrays[content[name]] for name in ("data", "indices", "indptr"))
    rows, columns = content["shape"]
    check_rows(indptr, indices, rows, columns)
    return sparse.csr_array((data, indices, indptr), shape=(rows, columns))


def check_rows(indptr: np.ndarray, indices: np.ndarray, rows: int, columns: int) -> None:
    """Raise an error if the indices of a sparse matrix are wrong: compiled code would read outside its arrays."""
    whole = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    rising = bool((indptr[1:] >= indptr[:-1]).all())
    inside = len(indices) == 0 or (indices.min() >= 0 and indices.max() < columns)
    if not (whole and rising and inside):
        raise ValueError(f"sparse entries outside {rows} rows and {columns} columns")


# `neural_brane.files.tensors` writes a model file with a checksum of every bit. Its JSON contains the method, the
# parameters that were given and those in effect, the sizes of the graph, and the names of the learned arrays.

SUFFIX = ".brane"
FORMAT = "1"
MODEL = tensors.FileKind(
    "model",
    FORMAT,
    ModelError,
    advice="restore it from a copy, or fit the method again and save it",
    outdated="open it with the version that wrote it ('brane info FILE' prints it), or fit and save the method again",
    mark="model",
)
GRAPH_PARTS = ("adjacency", "attributes", "ids", "attribute_names", "labels", "name")


def save_model(model: Embedder, path: str | Path) -> None:
    """Write a fitted method to a file for `load_model`.

    Parameters
    ----------
    model : Embedder
        The fitted method.
    path : str or Path
        A file that ends in .brane. It is replaced only when the new file is complete.
    """
    fitted = model._require_fitted()
    path = check_model_target(path)
    packer, graph = Packer(fitted.method.holds), fitted.graph
    losses = getattr(fitted.learned, "loss_history", None)
    plain = (bool, int, float, str, tuple, list, Path, np.generic, type(None))
    in_effect = fitted.settings | {"progress": None}
    given = {name: one if isinstance(one, plain) else in_effect[name] for name, one in model.get_params().items()}
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
        "given": packer.pack(given, "given"),  # other Python objects are replaced by the value in effect
        "settings": packer.pack(in_effect, "settings"),
        "encoder": None if graph.encoder is None else graph.encoder.as_dict(),
        "parts": packer.pack({part: getattr(graph, part) for part in GRAPH_PARTS}, "graph"),
        "learned": packer.pack(fitted.learned, "learned"),
        "link weights": packer.pack(fitted.link_weights, "link weights"),
    }
    arrays = packer.arrays()
    check_space(path, sum(array.nbytes for array in arrays.values()), ModelError)
    tensors.write(path, MODEL, about, arrays)


def check_model_target(path: str | Path) -> Path:
    """Return the path if a model can be written there, else raise an error; call it before the training."""
    return check_target(path, (SUFFIX,), SUFFIX, ModelError)


def load_model(path: str | Path, *, verify: bool = True) -> Embedder:
    """Open a fitted method that `save` wrote; all its results are the same, bit for bit.

    The arrays are views of the file and are read when they are used, so a model may be larger than memory. Do not
    change the file in place while the model exists; `save` may replace it.

    Parameters
    ----------
    path : str or Path
        The file.
    verify : bool
        Compare the checksum, which reads the whole file once. Without it, a large model opens at once, but damaged
        numbers go unnoticed.

    Returns
    -------
    Embedder
        The fitted method.

    Examples
    --------
    >>> import tempfile, neural_brane
    >>> path = tempfile.mkdtemp() + "/m.brane"
    >>> neural_brane.Attributes(dim=4, seed=0).fit(neural_brane.load("stdlib")).save(path)
    >>> neural_brane.load_model(path).embedding_.vectors.shape
    (554, 4)
    """
    path = Path(path)
    if not exists(path, ModelError):
        raise ModelError(f"{path}: does not exist; give a file that model.save wrote")
    try:
        with path.open("rb") as file:
            begin = file.read(8 + len(tensors.PREFIX))
        if not begin:
            raise ModelError(f"{path}: is empty; fit the method again and save it")
        if path.suffix != SUFFIX and not begin.endswith(tensors.PREFIX):
            raise ModelError(
                f"{path}: is not a model; 'brane embed SOURCE -o VECTORS --save-model FILE{SUFFIX}' "
                "writes one, and 'brane info' describes a file"
            )
        about, arrays = tensors.read(path, MODEL, mapped=True, verify=verify)
    except IsADirectoryError:
        raise ModelError(f"{path}: is a folder; give a file that model.save wrote") from None
    try:
        return _restore(about, arrays)
    except ModelError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, StopIteration, BraneError) as error:
        raise MODEL.damaged(path, f"or from another version: {type(error).__name__}: {error}") from None


def _restore(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Embedder:
    if about["method"] not in METHODS:
        raise ModelError(
            f"the model was fitted by method {about['method']!r}, which this version lacks; open it with version "
            f"{about['written by']}"
        )
    kind = METHODS[about["method"]]
    read = partial(unpack, arrays=arrays, holds=kind.holds)
    encoder = None if about["encoder"] is None else Encoder.from_dict(about["encoder"])
    graph = AttributedGraph(**read(about["parts"]), encoder=encoder)
    settings = read(about["settings"])
    if settings["threads"] is not None:  # this machine may have fewer threads and another device
        settings["threads"] = min(settings["threads"], cores())
    if settings.get("device", "cpu") != "cpu":
        settings["device"] = resolve("auto", needs=kind.packages)
    known = about.get("labels known", 0)  # earlier versions lack this key, and no method of theirs used labels
    fitted = Fitted(kind(**settings), graph, read(about["learned"]), about["updated"], known)
    fitted.version = about["version"]
    fitted.data = about["graph"]
    fitted.link_weights = read(about.get("link weights"))  # models of earlier versions have none
    _check_learned(fitted)
    model = kind(**read(about["given"]))
    model._fitted = fitted
    return model


def _check_learned(fitted: Fitted) -> None:
    """Raise an error if arrays do not fit the graph, because compiled code reads them without checks."""
    vectors, nodes = getattr(fitted.learned, "vectors", None), len(fitted.graph)
    if vectors is not None and vectors.shape != (nodes, fitted.method.dim):
        raise ValueError(f"vectors have shape {vectors.shape}, expected {(nodes, fitted.method.dim)}")
    weights = fitted.link_weights
    if weights is not None and weights.shape != (len(PairFeatures.NAMES) + 1,):
        raise ValueError(f"weights of links have shape {weights.shape}, expected {(len(PairFeatures.NAMES) + 1,)}")
    part = getattr(fitted.learned, "part", None)
    if part is not None:
        tables = part.model.attribute_table, part.model.neighbour_table
        for bags, table in zip(part.bags, tables, strict=True):
            check_rows(bags.indptr, bags.indices, nodes, len(table))
