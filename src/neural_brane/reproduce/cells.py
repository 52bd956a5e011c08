"""A cell computed: one training, its scores, what it took; and the folder where finished cells are kept."""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane import __version__
from neural_brane.errors import EmbeddingError
from neural_brane.graph import AttributedGraph
from neural_brane.io.atomic import atomic
from neural_brane.machine import describe_machine
from neural_brane.reproduce.plan import SHARES, Cell

UNSEEN = ("seed", "threads", "progress", "checkpoint")  # parameters that stand elsewhere or change no vector
DIGITS = 6  # kept of a score
Record = dict[str, Any]


def identity(cell: Cell, digest: str) -> Record:
    """All that a cell's scores depend on: when it is the same, the cell need not be computed again."""
    from neural_brane.methods import METHODS

    parameters = METHODS[cell.method](**cell.parameters).parameters_in_force()
    record = {
        "method": cell.method,
        "parameters": {name: value for name, value in parameters.items() if name not in UNSEEN},
        "dataset": cell.dataset,
        "digest": digest,
        "seed": cell.seed,
        "version": __version__,
        "scoring": cell.scoring,
    }
    return json.loads(json.dumps(record, default=str))


def key(record: Record) -> str:
    """A short hash of an identity."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


class Store:
    """A folder of finished cells, one small JSON file each."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, cell: Cell) -> Path:
        """Where a cell is kept: a name that can be read, and the hash of its identity."""
        name = f"{cell.dataset}-{cell.method}-{cell.seed}-{key(identity(cell, data_of(cell.dataset)['digest']))}"
        return self.folder / f"{name.replace(':', '_')}.json"

    def get(self, cell: Cell) -> Record | None:
        """A finished cell, or None."""
        path = self.path(cell)
        if not path.exists():
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise EmbeddingError(
                f"{path}: not a finished cell ({error}); remove it, and it is computed again"
            ) from None

    def put(self, cell: Cell, record: Record) -> None:
        """Keep a finished cell; its file appears whole or not at all."""
        with atomic(self.path(cell)) as draft:
            draft.write_text(json.dumps(record, separators=(",", ":")) + "\n", encoding="utf-8")

    def distinct(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells without those that are another one by another name."""
        return list({self.path(cell): cell for cell in cells}.values())


@cache
def data_of(dataset: str) -> Record:
    """What a dataset holds, and its hash."""
    return _describe(_load(dataset))


def compute(cell: Cell) -> Record:
    """Train once and score the vectors. The memory is that of this process, so each cell wants one of its own."""
    from threadpoolctl import threadpool_limits

    from neural_brane.methods import METHODS

    graph = _load(cell.dataset)
    method = METHODS[cell.method](**cell.parameters | {"seed": cell.seed})
    if "threads" in method.get_params():
        method.set_params(threads=1)
    with threadpool_limits(1):
        start = time.perf_counter()
        vectors = method.fit_transform(graph).vectors
        seconds = time.perf_counter() - start
        peak = peak_memory()
        scores = score(cell, vectors, graph)
    return {
        "identity": identity(cell, graph.digest()),
        "data": _describe(graph),
        **scores,
        "loss": _rounded(getattr(method, "loss_history_", None) or []),
        "seconds": round(seconds, 3),
        "peak_mb": peak,
        "machine": describe_machine() | _gpu(method),
    }


def score(cell: Cell, vectors: np.ndarray, graph: AttributedGraph) -> Record:
    """F1 of the classes predicted, agreement of the clusters found, and the map where one is wanted."""
    from neural_brane.evaluate import classify, cluster, map_2d

    wanted, seed, labels = cell.scoring, cell.seed, graph.labels
    classes = classify(vectors, labels, train=SHARES, splits=wanted["splits"], seed=seed, C=wanted["C"])
    clusters = cluster(vectors, labels, starts=wanted["starts"], seed=seed)
    record: Record = {
        "macro_f1": {f"{one.train:g}": _rounded(one.macro.values) for one in classes.scores},
        "micro_f1": {f"{one.train:g}": _rounded(one.micro.values) for one in classes.scores},
        **{name: _rounded(getattr(clusters, name).values) for name in ("nmi", "purity", "ari")},
    }
    if cell.mapped:
        points = map_2d(vectors, seed=seed)
        record["map"] = {"points": np.round(points.astype(float), 2).tolist(), "labels": np.asarray(labels).tolist()}
    return record


def _gpu(method: Any) -> Record:
    """The GPU that a method was trained on, if it was."""
    from neural_brane.methods.devices import gpu_name

    return {"gpu": gpu_name()} if method.get_params().get("device") == "cuda" else {}


def peak_memory() -> float:
    """The most memory this process has had resident so far, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (2**20 if sys.platform == "darwin" else 2**10), 1)


def _load(dataset: str) -> AttributedGraph:
    from neural_brane import datasets

    graph = datasets.load(dataset)
    if graph.labels is None:
        raise EmbeddingError(f"dataset '{dataset}' has no labels to score by; choose one that has")
    return graph


def _describe(graph: AttributedGraph) -> Record:
    counts = {"nodes": len(graph), "edges": graph.edges, "attributes": graph.attributes.shape[1]}
    classes = len(set(graph.labels.tolist()) - {""}) if graph.labels is not None else 0
    return {"name": graph.name, **counts, "classes": classes, "digest": graph.digest()}


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(float(value), DIGITS) for value in values]
