"""Clusters of vectors, with their names and central nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError, GraphError, ParameterError, printable
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.groups.naming import Name, name_clusters
from neural_brane.groups.partition import choose_k, partition
from neural_brane.progress import Reporter
from neural_brane.search.exact import unit_rows

NAMES, CENTRAL = 5, 3  # attributes and nodes told of a cluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster: its size, what its nodes have more often than others, and the nodes nearest to its middle."""

    size: int
    attributes: list[Name]
    centre: list[Any]

    def __str__(self) -> str:
        names = ", ".join(printable(one.attribute) for one in self.attributes) or "nothing over-represented"
        return f"{self.size} nodes: {names}; around {', '.join(map(printable, self.centre))}"


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The cluster of every node, and what each cluster is; the largest is number 0."""

    ids: np.ndarray
    assignments: np.ndarray  # (nodes,) int64
    clusters: tuple[Cluster, ...]
    chosen: bool  # whether k was chosen by the rule

    @property
    def k(self) -> int:
        """How many there are."""
        return len(self.clusters)

    def __len__(self) -> int:
        return self.k

    def __iter__(self) -> Iterator[Cluster]:
        return iter(self.clusters)

    def __getitem__(self, at: int) -> Cluster:
        return self.clusters[at]

    def __repr__(self) -> str:
        how = "chosen" if self.chosen else "given"
        lines = [f"  {at}  {one}" for at, one in enumerate(self.clusters)]
        return "\n".join([f"{self.k} clusters ({how}) of {len(self.ids)} nodes", *lines])

    def as_dict(self) -> dict[str, Any]:
        """What the clusters are, as plain values for JSON; `assignments` are not in it."""
        return {
            "nodes": len(self.ids),
            "k": self.k,
            "chosen": self.chosen,
            "clusters": [
                {"size": one.size, "centre": one.centre, "attributes": [name._asdict() for name in one.attributes]}
                for one in self.clusters
            ],
        }


def find_clusters(
    vectors: np.ndarray,
    ids: np.ndarray,
    k: int | None = None,
    *,
    graph: AttributedGraph | None = None,
    seed: int = 0,
    progress: Reporter | None = None,
) -> Clusters:
    """Divide nodes by k-means on their vectors, each brought to length one.

    Without `k`, `neural_brane.groups.partition.choose_k` chooses a number up to 20, by 2,000 of the nodes.
    The attributes of `graph`, matched by id, name the clusters.
    """
    _check(vectors, k, seed)
    unit = unit_rows(vectors)
    chosen = choose_k(unit, seed, progress) if k is None else int(k)
    found = partition(unit, chosen, seed)
    names: list[list[Name]] = [[] for _ in range(chosen)]
    if graph is not None:
        names = _names(graph, ids, found, chosen)
    clusters = tuple(
        Cluster(int((found == at).sum()), names[at], ids[_central(unit, found == at)].tolist()) for at in range(chosen)
    )
    return Clusters(ids, found, clusters, k is None)


def _names(graph: AttributedGraph, ids: np.ndarray, found: np.ndarray, k: int) -> list[list[Name]]:
    rows = locate(graph.ids, ids)
    known = rows >= 0
    if not known.any():
        raise GraphError(
            f"none of the {len(ids):,} vectors belongs to a node of graph '{graph.name}'; give the graph they were "
            "learned from"
        )
    return name_clusters(graph.attributes[rows[known]], graph.attribute_names, found[known], k, NAMES)


def _central(unit: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The rows of the members nearest to their mean, by cosine."""
    rows = np.flatnonzero(members)
    nearness = unit[rows] @ unit[rows].mean(axis=0)
    return rows[np.argsort(-nearness, kind="stable")[:CENTRAL]]


def _check(vectors: np.ndarray, k: int | None, seed: int) -> None:
    if len(vectors) == 0:
        raise EmbeddingError("there are no vectors to divide into clusters; give some")
    if not np.isfinite(vectors).all():
        raise EmbeddingError("some vectors hold NaN or infinity, which are in no cluster; leave them out")
    whole = isinstance(k, int | np.integer) and not isinstance(k, bool)
    if k is not None and not (whole and 1 <= k <= len(vectors)):
        raise ParameterError(f"k={k!r} makes no sense; give a whole number from 1 to {len(vectors)}, or None")
    if seed < 0:
        raise ParameterError(f"seed={seed} makes no sense; give 0 or more")
