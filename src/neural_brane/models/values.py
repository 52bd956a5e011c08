"""What a method has learned, as JSON and arrays, and back.

Numbers, texts, truths and None are JSON as they are. All else is an object with one key that says what it is: an
array, a sparse matrix, a list, a tuple, a dict, or one of the named tuples of `neural_brane.models.types`. Arrays are
kept beside the JSON, each once, however often it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import ModelError
from neural_brane.io.npz import check_text
from neural_brane.io.tensors import CODES
from neural_brane.models.types import find_type, name_of


class Packer:
    """Collects the arrays of values that become JSON."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._found: dict[str, np.ndarray] = {}  # also keeps the arrays alive, so that no two get one number

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name, those of wide numbers first: so each begins where a processor reads it best."""
        return dict(sorted(self._found.items(), key=lambda item: -item[1].dtype.itemsize))

    def pack(self, value: Any, where: str) -> Any:
        """A value as JSON; `where` names its arrays, and the value in errors."""
        if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
            return value if not isinstance(value, np.generic) else value.item()
        if isinstance(value, float | np.generic):
            return {"number": self._array(np.asarray(value), where)}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, where)
        if isinstance(value, sparse.csr_array):
            names = ("data", "indices", "indptr")
            parts = {name: self._array(getattr(value, name), f"{where}/{name}") for name in names}
            return {"sparse": parts | {"shape": list(value.shape)}}
        if isinstance(value, Path):
            return {"path": str(value)}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self.pack(one, f"{where}/{key}") for key, one in value.items()}}
        if isinstance(value, tuple) and (name := name_of(type(value))) is not None:
            fields = zip(value._fields, value, strict=True)  # type: ignore[attr-defined]
            return {"type": name, "fields": {field: self.pack(one, f"{where}/{field}") for field, one in fields}}
        if type(value) in (list, tuple):
            kind = type(value).__name__
            return {kind: [self.pack(one, f"{where}/{at}") for at, one in enumerate(value)]}
        raise ModelError(f"{where} is a {type(value).__name__}, which a model file cannot hold; give plain values")

    def _pack_array(self, array: np.ndarray, where: str) -> dict[str, Any]:
        if array.dtype.kind == "U":
            width = array.dtype.itemsize // 4
            codes = np.ascontiguousarray(array).view(np.uint32).reshape(*array.shape, width)
            return {"text": self._array(codes, where)}
        if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
            return {"turned": self._array(array.T, where)}
        return {"array": self._array(array, where)}

    def _array(self, array: np.ndarray, where: str) -> str:
        if array.dtype not in CODES:
            raise ModelError(f"{where} is an array of {array.dtype}, which a model file cannot hold; give numbers")
        if id(array) not in self._names:
            self._names[id(array)] = where
            self._found[where] = array
        return self._names[id(array)]


def unpack(packed: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The value that `pack` described; ValueError, KeyError or TypeError where it describes none."""
    if not isinstance(packed, dict):
        if isinstance(packed, list):
            raise ValueError("a bare list")
        return packed
    kind, content = next(iter(packed.items()))
    if kind == "type":
        return _named_tuple(find_type(content), packed["fields"], arrays)
    return _READERS[kind](content, arrays)


def _named_tuple(kind: Any, fields: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    if fields.keys() != set(kind._fields):
        raise ValueError(f"{kind.__name__} with {', '.join(fields)}, not {', '.join(kind._fields)}")
    return kind(**{name: unpack(value, arrays) for name, value in fields.items()})


def _sparse(content: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> sparse.csr_array:
    data, indices, indptr = (arrays[content[name]] for name in ("data", "indices", "indptr"))
    rows, columns = content["shape"]
    check_rows(indptr, indices, rows, columns)
    return sparse.csr_array((data, indices, indptr), shape=(rows, columns))


def check_rows(indptr: np.ndarray, indices: np.ndarray, rows: int, columns: int) -> None:
    """Refuse the structure of a sparse matrix that leads beyond its arrays: compiled code would follow it."""
    whole = len(indptr) == rows + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    rising = bool((indptr[1:] >= indptr[:-1]).all())
    inside = len(indices) == 0 or (indices.min() >= 0 and indices.max() < columns)
    if not (whole and rising and inside):
        raise ValueError(f"entries that are not in {rows} rows and {columns} columns")


def _text(name: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    codes = arrays[name]
    dtype = np.dtype(f"<U{codes.shape[-1]}")
    check_text(codes.reshape(-1).view(np.uint8), dtype)
    return codes.reshape(-1).view(dtype).reshape(codes.shape[:-1])


_READERS: dict[str, Callable[[Any, Mapping[str, np.ndarray]], Any]] = {
    "number": lambda name, arrays: arrays[name][()],
    "array": lambda name, arrays: arrays[name],
    "turned": lambda name, arrays: arrays[name].T,
    "text": _text,
    "sparse": _sparse,
    "path": lambda text, arrays: Path(text),
    "dict": lambda content, arrays: {key: unpack(value, arrays) for key, value in content.items()},
    "list": lambda content, arrays: [unpack(value, arrays) for value in content],
    "tuple": lambda content, arrays: tuple(unpack(value, arrays) for value in content),
}
