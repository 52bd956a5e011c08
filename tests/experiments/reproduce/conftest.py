"""Invent results, to test tables, figures, sentences and the report without training."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from neural_brane.experiments.reproduce import plan as paper
from neural_brane.experiments.reproduce.figures import draw_all
from neural_brane.experiments.reproduce.plan import COLUMNS, FULL, OUTPUTS, plan
from neural_brane.experiments.reproduce.results import summarise
from neural_brane.experiments.store import Store

DATA = {
    "citeseer": (3312, 4675, 3703, 6),
    "arnetminer": (5509, 17938, 135647, 5),
    "arnetminer-15753": (15753, 109548, 0, 5),
    "caltech36": (671, 15645, 65, 2),
    "reed98": (895, 17631, 88, 2),
}
MACHINE = {
    "processor": "Abacus 3000", "cores": 2, "memory_gb": 8, "python": "3.11.0", "packages": {"numpy": "2.0.0"},
}  # fmt: skip
BASELINES = {"citeseer": 0.70, "arnetminer": 0.88, "caltech36": 0.90, "reed98": 0.86}


def data_facts(dataset):
    nodes, edges, attributes, classes = DATA[dataset]
    counts = {"nodes": nodes, "edges": edges, "attributes": attributes, "classes": classes}
    parts = {"components": nodes // 3, "largest_component": nodes // 10}
    return {"name": dataset, **counts, **parts, "digest": f"{zlib.crc32(dataset.encode()):08x}"}


def made_up(training):
    """Return the record of an invented training, with scores near the published ones."""
    method, parameters, dataset = training.method, training.parameters, training.dataset
    rng = np.random.default_rng([zlib.crc32(f"{method}{parameters}{dataset}".encode()), training.seed])
    row = paper.macro_f1(method, paper.counterpart(dataset))
    base = np.array(row) if row else BASELINES[dataset] + np.array([-0.02, 0, 0.01])
    base = base - 0.03 * (parameters.get("recipe") == "paper") - 0.05 * (parameters.get("pooling") == "sum")
    base = base - max(0, 150 - parameters.get("dim", 150)) / 2500
    scores = {share: (base[k] + rng.normal(0, 0.006, 10)).tolist() for k, share in enumerate(("0.3", "0.5", "0.7"))}
    record = {
        "data": data_facts(dataset),
        "loss": [],
        "seconds": float(rng.uniform(1, 60)),
        "peak_mb": float(rng.uniform(200, 900)),
        "machine": MACHINE,
    }
    if "links" in training.scoring:
        return record | {"scorer_auc": float(rng.uniform(0.8, 0.9)), "auc_of_cosines": float(rng.uniform(0.7, 0.8))}
    record |= {"macro_f1": scores, "micro_f1": scores}
    for name, factor in (("nmi", 1.9), ("purity", 1.1), ("ari", 2.1)):
        record[name] = float(base[0] / factor + rng.normal(0, 0.01))
    if method == "neural-brane":
        record["loss"] = (0.05 + 0.65 * np.exp(-np.arange(30) / 3) + rng.normal(0, 0.004, 30)).tolist()
    if training.scoring["map"]:
        labels = rng.permutation(np.repeat(["faculty", "student"], [40, 160]))
        points = rng.normal(0, 10, (200, 2)) + 25 * (labels == "faculty")[:, None]
        record["map"] = {"points": points.round(2).tolist(), "labels": labels.tolist()}
    return record


class MadeUp:
    """A store in which every training is finished, with an invented record; `change` may alter or drop it."""

    def __init__(self, change):
        self.change = change

    def get(self, training):
        return self.change(training, made_up(training))

    def fingerprint(self, training):
        return f"{zlib.crc32(training.method.encode()):016x}"


@pytest.fixture
def store(tmp_path):
    """Return an empty store that distinguishes the paper's datasets without reading them."""
    return Store(tmp_path, digest=lambda name: data_facts(name)["digest"], fingerprint=lambda method, parameters: "")


@pytest.fixture(scope="session")
def fill():
    """Return a function that makes results of outputs on datasets from invented records."""

    def fill(outputs=OUTPUTS, datasets=FULL.datasets, columns=COLUMNS, runs=4, change=lambda training, record: record):
        series = plan(outputs, columns, datasets, FULL, runs=runs)
        return summarise(series, MadeUp(change), scale="full", failures=[])

    return fill


@pytest.fixture(scope="session")
def everything(fill):
    """Return results of all outputs."""
    return fill(runs=4)


@pytest.fixture(scope="session")
def drawn(everything, tmp_path_factory):
    """Draw all figures of these results, and return the SVG files by name."""
    return draw_all(everything, tmp_path_factory.mktemp("figures"))
