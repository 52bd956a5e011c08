"""Attributes seen over some hops, reduced together: what three baselines are cases of."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.linalg import by_slabs, inverse_frequency, leading, leading_steps, transition, weigh
from neural_brane.methods._factorisation import Factorisation
from neural_brane.methods.base import InductiveEmbedder
from neural_brane.methods.steps import Steps


@dataclass(frozen=True, slots=True)
class Hops:
    """The matrix M = [w₀X, w₁ÂX, w₂Â²X, …], which is only ever multiplied with.

    X are the weighted attributes, Â averages over a node and its neighbours. ÂX fills in: it is never formed.
    """

    averages: sparse.csr_array
    attributes: sparse.csr_array
    weights: Sequence[float]

    def across(self, other: "Hops", table: np.ndarray) -> np.ndarray:
        """M(Nᵀ table), N the same of another graph, or of this one."""
        spread = [table]
        for _ in self.weights[1:]:
            spread.append(other.averages.T @ spread[-1])
        total = np.zeros((len(self), table.shape[1]))
        for weight, part in zip(reversed(self.weights), reversed(spread), strict=True):
            total = self.averages @ total
            if weight:
                total += weight**2 * (self.attributes @ (other.attributes.T @ part))
        return total

    def __len__(self) -> int:
        return self.attributes.shape[0]


class Spectral(Factorisation, InductiveEmbedder):
    """The left singular vectors of weighted hops, times the singular values, at one scale for all graphs.

    Vectors are scaled by one number, so that their mean squared length is dim: a coordinate's square is one on
    average, as in standardised features, whatever the hops shrink. Ratios between vectors and between directions
    stay as the decomposition gives them. Other nodes are projected on the same directions.
    """

    def _factorise(self, graph: AttributedGraph) -> np.ndarray:
        hops = self._hops(graph, graph.attributes)
        report = Steps(self.progress, leading_steps(len(graph), self.dim))
        self.values_, vectors = leading(
            lambda table: hops.across(hops, table),
            len(graph), self.dim, seed=self.seed_, threads=self.threads, report=report,
        )  # fmt: skip
        mean_square = self.values_.sum() / len(graph) or 1.0  # nothing to scale where there are no attributes
        return vectors * np.sqrt(self.values_ * self.dim / mean_square)

    def _encode(self, graph: AttributedGraph, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        # Directions are V = MᵀU / √values: from the vectors and the graph learned from, so nobody has to keep them.
        learned, other = self._hops(self.graph_, self.graph_.attributes), self._hops(graph, attributes)
        shares = np.divide(self.vectors_, self.values_, out=np.zeros(self.vectors_.shape), where=self.values_ > 0)
        yield by_slabs(lambda table: other.across(learned, table), shares, threads=self.threads)

    def _hops(self, graph: AttributedGraph, attributes: sparse.csr_array) -> Hops:
        rarity = inverse_frequency(self.graph_.attributes)
        return Hops(transition(graph.adjacency, self_loops=True), weigh(attributes, rarity), self._weights())

    @abstractmethod
    def _weights(self) -> Sequence[float]:
        """What the attributes 0, 1, 2, … hops away weigh."""
