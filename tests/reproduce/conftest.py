"""Results that were made up, so that tables, figures, words and the report can be tried without training."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from neural_brane.reproduce import cells
from neural_brane.reproduce import paper as published
from neural_brane.reproduce.cells import Store, identity
from neural_brane.reproduce.plan import COLUMNS, FULL, OUTPUTS, plan
from neural_brane.reproduce.results import summarise

DATA = {
    "citeseer": (3312, 4675, 3703, 6),
    "arnetminer": (5509, 17938, 135647, 5),
    "caltech36": (671, 15645, 65, 2),
    "reed98": (895, 17631, 88, 2),
}
MACHINE = {
    "processor": "Abacus 3000", "cores": 2, "memory_gb": 8, "python": "3.11.0", "packages": {"numpy": "2.0.0"},
}  # fmt: skip
BASELINES = {"citeseer": 0.70, "arnetminer": 0.88, "caltech36": 0.90, "reed98": 0.86}


def describe(dataset):
    nodes, edges, attributes, classes = DATA[dataset]
    counts = {"nodes": nodes, "edges": edges, "attributes": attributes, "classes": classes}
    return {"name": dataset, **counts, "digest": f"{zlib.crc32(dataset.encode()):08x}"}


def made_up(cell):
    """A record as a training leaves it, with scores near the published ones."""
    rng = np.random.default_rng([zlib.crc32(f"{cell.method}{cell.parameters}{cell.dataset}".encode()), cell.seed])
    row = published.macro_f1(cell.method, published.counterpart(cell.dataset))
    base = np.array(row or [BASELINES[cell.dataset] - 0.02, BASELINES[cell.dataset], BASELINES[cell.dataset] + 0.01])
    base = base - 0.03 * (cell.parameters.get("recipe") == "paper") - 0.05 * (cell.parameters.get("pooling") == "sum")
    base = base - 2 / cell.parameters.get("dim", 150) + 2 / 150
    scores = {share: (base[k] + rng.normal(0, 0.006, 10)).tolist() for k, share in enumerate(("0.3", "0.5", "0.7"))}
    record = {
        "identity": identity(cell, describe(cell.dataset)["digest"]),
        "data": describe(cell.dataset),
        "macro_f1": scores,
        "micro_f1": scores,
        **{name: (base[0] / factor + rng.normal(0, 0.01, 10)).tolist() for name, factor in
           (("nmi", 1.9), ("purity", 1.1), ("ari", 2.1))},
        "loss": [],
        "seconds": float(rng.uniform(1, 60)),
        "peak_mb": float(rng.uniform(200, 900)),
        "machine": MACHINE,
    }  # fmt: skip
    if cell.method == "neural-brane":
        record["loss"] = (0.05 + 0.65 * np.exp(-np.arange(30) / 3) + rng.normal(0, 0.004, 30)).tolist()
    if cell.mapped:
        labels = rng.permutation(np.repeat(["faculty", "student"], [40, 160]))
        points = rng.normal(0, 10, (200, 2)) + 25 * (labels == "faculty")[:, None]
        record["map"] = {"points": points.round(2).tolist(), "labels": labels.tolist()}
    return record


@pytest.fixture
def data(monkeypatch):
    """Describe the paper's datasets without reading them."""
    monkeypatch.setattr(cells, "data_of", describe)


@pytest.fixture
def fill(data, tmp_path):
    """A function that makes results of all outputs, or some, on some datasets, with cells made up."""

    def fill(outputs=OUTPUTS, datasets=FULL.datasets, columns=COLUMNS, runs=4, change=lambda cell, record: record):
        store = Store(tmp_path / "cells")
        series = plan(outputs, columns, datasets, FULL, runs=runs)
        for cell in (cell for one in series for cell in one.cells):
            record = change(cell, made_up(cell))
            if record is not None:
                store.put(cell, record)
        return summarise(series, store, scale="full", failures=[])

    return fill
