"""Graphs, settings and requests of several ranks; the program and its tests import them."""

import os
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane import AttributedGraph, load, synthetic

COUNT = 11  # rows of the table in requests
SETTINGS = {
    "hop_weights": (1.0, 1.0, 1.0),
    "link_weight": 0.3,
    "centre": True,
    "spectral_dim": 12,
    "threads": 1,
    "device": "cpu",
    "progress": None,
}
JOINING = {"dim": 5, "centre": True, "spectral_power": 1.5, "learned_weight": 0.35, "length": 2.0}
VALUES = np.array([4.0, 2.0, 0.5])  # squared singular values of the spectral part


class Case(NamedTuple):
    """A graph, the number of its shards, and settings that differ from SETTINGS."""

    graph: AttributedGraph
    settings: Mapping[str, Any] = MappingProxyType({})
    parts: int = 3
    most_rows: int = 65_536

    def all_settings(self) -> dict[str, Any]:
        return SETTINGS | dict(self.settings)


def requested(rank: int) -> np.ndarray:
    """Return the rows that a rank requests: not in order, some twice; rank 2 requests none."""
    return np.random.default_rng(rank).integers(0, COUNT, 0 if rank == 2 else 9)


def two_parts() -> tuple[np.ndarray, np.ndarray]:
    """Return a spectral and a learned part for COUNT nodes; the spectral part of one node is zero."""
    generator = np.random.default_rng(3)
    spectral, learned = generator.standard_normal((COUNT, 3)), generator.standard_normal((COUNT, 2)) + 4
    spectral[6] = 0
    return spectral.astype(np.float32), learned.astype(np.float32)


def uneven(nodes: int, attributes: int, *, loops: bool = True, amounts: bool = True) -> AttributedGraph:
    """Return a random graph with weights; a few nodes have most edges, and some have none."""
    generator = np.random.default_rng(nodes)
    ends = (nodes * generator.random((2, 4 * nodes)) ** 2).astype(int)
    ends = ends[:, (ends[0] != ends[1]) | loops]
    weights = generator.uniform(0.5, 3, ends.shape[1])
    adjacency = sparse.coo_array((weights, tuple(ends)), shape=(nodes, nodes)).tocsr()
    entries = sparse.random_array((nodes, attributes), density=min(5 / max(attributes, 1), 1), rng=generator)
    entries.data = entries.data * 3 + 1 if amounts else np.ones_like(entries.data)
    return AttributedGraph.from_sparse(sparse.csr_array(adjacency.maximum(adjacency.T)), entries.tocsr())


@cache
def large_graph() -> AttributedGraph:
    """Return a graph so large that its tables take most of the memory."""
    return synthetic(10_000, attributes=300, seed=4)


def alike(amount: float) -> AttributedGraph:
    """Return a graph in which all nodes have the same attribute; the last node has it in this amount."""
    graph = uneven(40, 0)
    amounts = np.ones((40, 1))
    amounts[-1] = amount
    return AttributedGraph.from_sparse(graph.adjacency, sparse.csr_array(amounts))


@cache
def make_cases() -> dict[str, Case]:
    """Return all cases by name."""
    graph = uneven(300, 70)
    cases = {
        "links and attributes": Case(graph),
        "many rounds": Case(graph, most_rows=8),
        "links alone": Case(uneven(300, 0)),
        "links as identity": Case(uneven(300, 0), {"link_weight": 0.0}),
        "attributes alone": Case(graph, {"link_weight": 0.0, "hop_weights": (1.0,)}),
        "averages without links": Case(graph, {"link_weight": 0.0, "hop_weights": (0.5, 0.0, 2.0)}),
        "no amounts, no loops": Case(uneven(200, 300, loops=False, amounts=False), parts=1),
        "one amount": Case(alike(1.0), {"spectral_dim": 4}),
        "two amounts": Case(alike(2.0), {"spectral_dim": 4}),
        "three nodes": Case(uneven(3, 5), {"spectral_dim": 2}),
        "planted classes": Case(synthetic(500, classes=4, seed=2), parts=4),
        "stdlib": Case(load("stdlib"), {"spectral_dim": 112}, parts=2),
    }
    if os.environ.get("NEURAL_BRANE_DATA"):
        cases["citeseer"] = Case(load("citeseer"), {"spectral_dim": 112}, parts=5)
    return cases
