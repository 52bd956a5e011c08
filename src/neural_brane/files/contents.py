"""Tell what is inside a file from its first bytes and headers; arrays are left unread where that is possible."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural_brane.errors import BraneError
from neural_brane.files import tensors
from neural_brane.files.graphs.parts import GraphManifest, is_shards
from neural_brane.files.npz import open_npz
from neural_brane.files.reading import SIGNATURES, npz_headers, recognise
from neural_brane.files.text import is_word2vec
from neural_brane.files.trial import why_unreadable
from neural_brane.files.vectors.parts import is_parts, open_parts

HEAD = 4096  # bytes that tell what a file is
SPLITS = ("ids", "orders")
PAIRS = ("training", "positives", "negatives", "about")
Facts = dict[str, Any]


class Contents(NamedTuple):
    """The kind of a file in a word or two, its size in bytes, and the facts that it states."""

    path: Path
    kind: str
    size: int
    facts: Facts

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON holds it."""
        return {"file": str(self.path), "kind": self.kind, "size": self.size, **self.facts}


def look_into(path: str | Path) -> Contents:
    """Tell what a file holds: one of ours in full, another one as far as its first bytes tell.

    Checksums are not compared, since that takes all bytes; whoever opens a file does it.

    >>> import tempfile, neural_brane
    >>> path = tempfile.mkdtemp() + "/m.brane"
    >>> neural_brane.Attributes(dim=4, seed=0).fit(neural_brane.load("stdlib")).save(path)
    >>> found = look_into(path)
    >>> found.kind, found.facts["method"], found.facts["nodes"], found.facts["dim"]
    ('model', 'attributes', 554, 4)
    """
    path = Path(path)
    if is_shards(path):
        return _look_into_shards(path)
    if path.is_dir():
        return _look_into_folder(path)
    with path.open("rb") as file:
        head = file.read(HEAD)
    kind, facts = _tell(path, head)
    return Contents(path, kind, path.stat().st_size, {name: one for name, one in facts.items() if one is not None})


def _look_into_shards(path: Path) -> Contents:
    """What a graph in parts says of itself in its manifest."""
    found = GraphManifest.read(path)
    facts = {name: getattr(found, name) for name in ("name", "nodes", "edges", "attributes", "entries", "parts")}
    data = {"weights": found.weighted, "amounts": found.amounts, "ids": found.ids}
    return Contents(path, "graph in parts", found.size, facts | data | {"first nodes": found.bounds[:-1]})


def _look_into_folder(path: Path) -> Contents:
    """Describe a folder of vectors in parts by its manifest."""
    if not is_parts(path):
        raise BraneError(f"{path}: is a folder without a manifest; name a file in it")
    parts = open_parts(path)
    size = sum(about["bytes"] for about in parts.files.values())
    facts = {"nodes": parts.nodes, "dim": parts.dim, "parts": len(parts.bounds) - 1, "format": parts.kind}
    facts |= {"scores pairs": True} if parts.layer is not None else {}
    told = {name: one for name, one in _of_provenance(parts.provenance).items() if one is not None}
    return Contents(path, "vectors in parts", size, facts | told)


def _tell(path: Path, head: bytes) -> tuple[str, Facts]:
    if head.startswith(b"PK\x03\x04"):
        return _tell_npz(path)
    if head.startswith(b"PAR1"):
        return _tell_parquet(path)
    if head.startswith(np.lib.format.MAGIC_PREFIX):
        return _tell_npy(path)
    if len(head) > 9 and head[8:9] == b"{":
        return _tell_tensors(path)
    kind = recognise(head).kind
    if kind in ("gzip", "zstd", "bzip2", "xz"):
        return f"compressed by {kind}", {}
    return (kind, {}) if kind in SIGNATURES.values() else _tell_text(path, head)


def _tell_tensors(path: Path) -> tuple[str, Facts]:
    listed = tensors.list_arrays(path, BraneError)
    told = listed.metadata
    arrays = {name: f"{code} {spell(shape)}" for name, (code, shape) in listed.arrays.items()}
    about = _json(told.get("about"))
    if "checksum" not in told or not isinstance(about, dict):
        provenance = _json(told.get("provenance"))
        others = {name: text for name, text in told.items() if name != "provenance"}
        return "safetensors", _of_provenance(provenance) | {"metadata": others or None, "arrays": arrays}
    mark = str(told.get("kind", "checkpoint"))
    tell = {"model": _of_model, "checkpoint": _of_checkpoint}.get(mark)
    try:
        found = tell(about) if tell else {"about": about}
    except (AttributeError, KeyError, TypeError):
        raise BraneError(f"{path}: the {mark} is damaged, what it tells of itself makes no sense; restore it") from None
    facts = {"format": told.get("format")} | found
    return mark, facts | {"arrays": len(arrays)}


def _of_model(about: Mapping[str, Any]) -> Facts:
    settings = _parameters(about.get("settings"))
    facts = {name: about.get(name) for name in ("method", "nodes", "dim", "graph", "version", "loss", "epochs")}
    encoder = about.get("encoder") or {}
    columns = [column["name"] for column in encoder.get("columns", ())] or None
    return facts | {"seed": settings.pop("seed", None), "parameters": settings, "columns of its table": columns}


def _of_checkpoint(about: Mapping[str, Any]) -> Facts:
    facts = {name: about.get(name) for name in ("method", "graph", "version", "seed", "parameters")}
    stages = {name: stage.get("position") for name, stage in about.get("stages", {}).items()}
    losses = [one for stage in about.get("stages", {}).values() for one in stage.get("numbers", {}).get("losses", ())]
    return facts | {"steps done": stages, "loss": losses[-1] if losses else None}


def _parameters(packed: Any) -> Facts:
    """The parameters of a model that JSON shows as they are; tuples of numbers as lists."""
    content = packed.get("dict", {}) if isinstance(packed, dict) else {}
    plain = {name: one.get("tuple") if isinstance(one, dict) else one for name, one in content.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _of_provenance(provenance: Any) -> Facts:
    """Return how vectors were made, from their provenance."""
    if not isinstance(provenance, dict):
        return {}
    facts = {name: provenance.get(name) for name in ("method", "version", "training", "transformed")}
    parameters = dict(provenance.get("parameters") or {})
    return facts | {"graph": provenance.get("data"), "seed": parameters.pop("seed", None), "parameters": parameters}


def _tell_npz(path: Path) -> tuple[str, Facts]:
    headers = npz_headers(path, BraneError)
    shapes = {name: shape for name, (shape, _) in headers.items()}

    def read(name: str) -> Any:
        with open_npz(path, BraneError, "arrays") as archive:
            return archive[name] if name in archive.names else None

    if "vectors" in shapes and len(shapes["vectors"]) == 2:
        made = read("provenance")
        told = _of_provenance(_json(None if made is None else made.item()))
        scores = "layer_weight" in shapes or None
        return "vectors", {"nodes": shapes["vectors"][0], "dim": shapes["vectors"][1], "scores pairs": scores} | told
    if all(name in shapes for name in PAIRS):
        counts = {name: shapes[name][0] for name in ("positives", "negatives")}
        edges = {"nodes": shapes["ids"][0], "edges to train on": shapes["training"][0]}
        return "held-out pairs", edges | counts | (_json(read("about").item()) or {})
    if "adj_indptr" in shapes or {"indptr", "indices", "data"} <= shapes.keys():
        return "graph", _of_graph(shapes, read)
    arrays = {name: f"{dtype} {spell(shape)}" for name, (shape, dtype) in headers.items() if name != "checksums"}
    return ("NumPy archive" if headers else "zip archive"), {"arrays": arrays}


def _of_graph(shapes: Mapping[str, tuple[int, ...]], read: Callable[[str], Any]) -> Facts:
    """The sizes of a graph, from headers alone; self-loops, which count once, would take the entries."""
    ours = "adj_indptr" in shapes
    rows, entries = (shapes[f"adj_{name}" if ours else name][0] for name in ("indptr", "data"))
    width = read("attr_shape")
    return {
        "nodes": rows - 1,
        "entries of the adjacency": entries,
        "attributes": 0 if width is None else int(width[1]),
        "attribute entries": shapes.get("attr_data", (0,))[0],
        "labels": "labels" in shapes,
        "made from a table": "encoder" in shapes,
    }


def _tell_npy(path: Path) -> tuple[str, Facts]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return "NumPy array", {"shape": list(array.shape), "numbers": str(array.dtype)}


def _tell_parquet(path: Path) -> tuple[str, Facts]:
    with path.open("rb") as file:
        if reason := why_unreadable("Parquet", file):  # a damaged one can end the process that reads it
            return "Parquet, damaged", {"reason": reason}
    import polars as pl

    schema = pl.read_parquet_schema(path)
    rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
    provenance = _json(pl.read_parquet_metadata(path).get("provenance"))
    wide = [name for name in schema if name != "id"]
    if "id" in schema and wide and (isinstance(provenance, dict) or wide[0] == "d0"):
        first = schema[wide[0]]
        dim = first.size if isinstance(first, pl.Array) else len(wide)
        return "vectors", {"nodes": rows, "dim": dim} | _of_provenance(provenance)
    return "table", {"rows": rows, "columns": {name: str(kind) for name, kind in schema.items()}}


def _tell_text(path: Path, head: bytes) -> tuple[str, Facts]:
    try:
        lines = head[: head.rfind(b"\n") + 1 or len(head)].decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return "unknown", {}
    if head.startswith(b"{") and b'"ids"' in head and (splits := _splits(path)):
        return "splits", splits
    words = lines[0].split() if lines else []
    if is_word2vec("\n".join(lines[:2])):
        return "vectors", {"nodes": int(words[0]), "dim": int(words[1]), "format": "word2vec text"}
    titles = words if len(words) > 1 else lines[0].split(",") if lines else []
    if titles[:2] == ["id", "d0"]:
        return "vectors", {"dim": len(titles) - 1}
    return "text", {"first line": lines[0][:200] if lines else "", "see": f"brane inspect {path}"}


def _splits(path: Path) -> Facts | None:
    """Describe a file of splits; JSON has no header, so all of it is read."""
    record = _json(path.read_text(encoding="utf-8", errors="replace"))
    if not isinstance(record, dict) or not all(isinstance(record.get(name), list) for name in SPLITS):
        return None
    told = {name: record.get(name) for name in ("seed", "stratify", "tuning")}
    return {"nodes": len(record["ids"]), "splits": len(record["orders"])} | told


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def spell(shape: tuple[int, ...]) -> str:
    """A shape in words, as in 554 x 16."""
    return " x ".join(f"{length:,}" for length in shape) or "one"
