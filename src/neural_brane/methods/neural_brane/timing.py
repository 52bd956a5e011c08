"""Estimate the time of Neural-Brane on this machine by short trials of each section."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.graph.memory import Sizes
from neural_brane.kernels import cpu
from neural_brane.kernels.model import Bags, Model, padded, zeros
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.linalg.eigenvectors import ITERATIONS
from neural_brane.linalg.tables import Tables
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.methods.training import spectral_width
from neural_brane.sampling.triplets import TripletSampler

# A kernel is several times slower on tables that do not fit the processor's caches. So tables have their true size in a
# trial, up to `MOST_NODES` rows; only the number of steps is small.

MOST_NODES = 500_000
ENTRIES = 1_000_000  # entries multiplied in a trial, or random entries of bags
PATIENCE = 0.15  # seconds for each trial
REPEATS = 3  # at least; the first one compiles kernels or loads them
PASSES = 12  # passes over all vectors that join both parts and set their length


class Probes:
    """Trials with given settings, for a graph of given sizes."""

    def __init__(self, settings: dict[str, Any], sizes: Sizes, threads: int | None):
        self.sizes, self.settings, self.threads = sizes, settings, threads
        self.nodes = min(sizes.nodes, MOST_NODES)
        self.attributes = max(min(sizes.attributes, MOST_NODES), 1)
        self.random = np.random.default_rng(0)

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each section, if training runs to the last epoch."""
        found = {}
        with cpu.threads(self.threads):
            if self.settings["spectral_dim"]:
                found["spectral part"] = self.spectral()
            if self.settings["spectral_dim"] < self.settings["dim"] and self.sizes.edges:
                found["training"] = self.training()
        return found | {"vectors": self.vectors()}

    def spectral(self) -> float:
        """Return the seconds of the SVD: products with both matrices for each hop, and of the basis with itself."""
        links, words, hops = self.sizes.links, self.sizes.attribute_entries, len(self.settings["hop_weights"])
        linked = 1 if self.settings["link_weight"] else 0
        width = spectral_width(self.sizes.nodes, self.settings["spectral_dim"])
        passes = ITERATIONS + 0.5  # The last pass is half as long.
        from_nodes = passes * (2 * (hops - 1) * links + hops * (words + 2 * linked * links))
        from_attributes = passes * hops * words
        slabs = width // SLAB_COLUMNS
        products = slabs * (from_nodes * self.gather(self.nodes) + from_attributes * self.gather(self.attributes))
        return products + (ITERATIONS + 1) * self.sizes.nodes * self.rotation(width)

    def gather(self, rows: int) -> float:
        """Return the seconds per entry of a sparse matrix times a slab of a table with so many rows."""
        each = 20
        indices = self.random.integers(rows, size=ENTRIES, dtype=np.int32)
        indptr = np.arange(0, ENTRIES + 1, each)
        matrix = sparse.csr_array((np.ones(ENTRIES, np.float32), indices, indptr), shape=(ENTRIES // each, rows))
        table = np.ones((rows, SLAB_COLUMNS), np.float32)
        product = Tables(self.threads).matrix(matrix)
        return repeat(lambda: product @ table) / ENTRIES

    def rotation(self, width: int) -> float:
        """Return the seconds per row of the basis for its inner products and its rotation."""
        tables, table = Tables(self.threads), np.ones((32_768, width), np.float32)
        rotation = np.eye(width)
        return repeat(lambda: tables.rotate(table, rotation) is tables.gram(table)) / len(table)

    def training(self) -> float:
        """Return the seconds for drawing all triplets and taking all steps."""
        s, own = self.settings, self.settings["attribute_dim"]
        learned = s["dim"] - s["spectral_dim"]
        neighbours = self.bags(self.sizes.links, self.nodes)
        words = self.bags(self.sizes.attribute_entries, self.attributes)
        model = Model(
            ones(self.attributes, own), ones(self.nodes, learned - own), ones(s["hidden"], learned)[:, :learned],
            np.zeros(s["hidden"], np.float32),
        )  # fmt: skip
        batch = s["batch_size"]
        steps = max(1, 20_000 // batch)
        triplets = self.random.integers(self.nodes, size=(steps, batch, 3), dtype=np.int32)
        trainer = cpu.Trainer(model, words, neighbours, kernel_settings(s), batch)
        step = repeat(lambda: trainer(triplets)) / (steps * batch)
        data = np.ones(len(neighbours.indices), np.float32)
        adjacency = sparse.csr_array((data, neighbours.indices, neighbours.indptr), shape=(self.nodes, self.nodes))
        sampler = TripletSampler(adjacency, negative_power=s["negative_power"])
        draw = repeat(lambda: sampler.draw(0, 50_000)) / 50_000
        return s["epochs"] * s["batches_per_epoch"] * batch * (step + draw)

    def vectors(self) -> float:
        """Return the seconds for joining the parts, the digest of the graph, and writing."""
        sample = np.ones(1 << 22, np.float32)
        passes = PASSES * repeat(lambda: np.multiply(sample, sample)) / sample.nbytes
        digest = repeat(lambda: hashlib.sha256(sample.data).digest()) / sample.nbytes
        table = 4 * self.sizes.nodes * self.settings["dim"]
        return table * (passes + digest) + self.sizes.graph_bytes * digest

    def bags(self, entries: int, rows: int) -> Bags:
        """Return one bag of the mean size for each node; its entries are random and repeat after `ENTRIES`."""
        each = round(entries / max(self.sizes.nodes, 1))
        drawn = np.sort(self.random.integers(rows, size=(max(ENTRIES // max(each, 1), 1), each), dtype=np.int32))
        indices = np.resize(drawn.ravel(), self.nodes * each)
        return Bags(np.arange(self.nodes + 1, dtype=np.int64) * each, indices)


def ones(rows: int, width: int) -> np.ndarray:
    """Return a table that is really in memory; the system keeps no pages for one of zeros."""
    table = zeros(rows, padded(width))
    table[:, :width] = 0.01
    return table


def repeat(task: Callable[[], Any]) -> float:
    """Return the shortest time of a repeated task, because other programs only make it slower."""
    times: list[float] = []
    end = time.perf_counter() + PATIENCE
    while len(times) < REPEATS or time.perf_counter() < end:
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)
