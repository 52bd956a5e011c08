"""Attributes seen over some hops, reduced together: what three baselines are cases of."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.linalg import (
    by_slabs,
    eigenvector_reports,
    inverse_frequency,
    leading_eigenvectors,
    transition,
    weigh,
)
from neural_brane.methods._factorisation import Factorisation
from neural_brane.methods.base import Fitted, InductiveEmbedder
from neural_brane.progress import Meter


@dataclass(frozen=True, slots=True)
class Hops:
    """The matrix M = [w₀X, w₁ÂX, w₂Â²X, …], which is only ever multiplied with.

    X are the weighted attributes, Â averages over a node and its neighbours. ÂX has many entries: it is never formed.
    """

    averages: sparse.csr_array
    attributes: sparse.csr_array
    weights: Sequence[float]

    def across(self, other: "Hops", table: np.ndarray) -> np.ndarray:
        """M(Nᵀ table), where N is the same matrix of another graph, or of this one."""
        propagated = [table]
        for _ in self.weights[1:]:
            propagated.append(other.averages.T @ propagated[-1])
        total = np.zeros((self.attributes.shape[0], table.shape[1]))
        for weight, part in zip(reversed(self.weights), reversed(propagated), strict=True):
            total = self.averages @ total
            if weight:
                total += weight**2 * (self.attributes @ (other.attributes.T @ part))
        return total


class Decomposition(NamedTuple):
    """The vectors, and the squared singular values of M."""

    vectors: np.ndarray  # (nodes, dim)
    values: np.ndarray  # (dim,)


class Spectral(Factorisation, InductiveEmbedder):
    """The left singular vectors of weighted hops, times the singular values, at one scale for all graphs.

    One number scales all vectors, so that their mean squared length is dim: then a coordinate's square is 1 on
    average, as in standardised features, however much averaging over hops shrinks them. Ratios between vectors and
    between directions stay as the decomposition gives them. New nodes are projected on the same directions.
    """

    def _factorise(self, graph: AttributedGraph, seed: int) -> Decomposition:
        hops = self._hops(graph, graph.attributes, graph.attributes)
        meter = Meter(self.progress, eigenvector_reports(len(graph), self.dim), "steps")
        values, vectors = leading_eigenvectors(
            lambda table: hops.across(hops, table),
            len(graph), self.dim, seed=seed, threads=self.threads, report=meter.advance,
        )  # fmt: skip
        mean_square = values.sum() / len(graph) or 1.0  # without attributes there is nothing to scale
        return Decomposition(vectors * np.sqrt(values * self.dim / mean_square), values)

    def _encode(self, fitted: Fitted, graph: AttributedGraph, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        # The directions are V = MᵀU / √values. Vectors and graph give them, so they need not be kept.
        known, (vectors, values) = fitted.graph.attributes, fitted.learned
        learned, other = self._hops(fitted.graph, known, known), self._hops(graph, attributes, known)
        shares = np.divide(vectors, values, out=np.zeros(vectors.shape), where=values > 0)
        yield by_slabs(lambda table: other.across(learned, table), shares, threads=self.threads)

    def _hops(self, graph: AttributedGraph, attributes: sparse.csr_array, known: sparse.csr_array) -> Hops:
        """The matrix of a graph; an attribute's weight is its rarity among those learned from."""
        averages = transition(graph.adjacency, self_loops=True)
        return Hops(averages, weigh(attributes, inverse_frequency(known)), self._weights())

    @abstractmethod
    def _weights(self) -> Sequence[float]:
        """The weights of the attributes 0, 1, 2, … hops away."""
