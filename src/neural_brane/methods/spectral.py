"""Attributes seen over some hops, reduced together: what three baselines are cases of."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.kernels.linear import inverse_frequency, leading, leading_steps, transition, weigh
from neural_brane.methods.factorisation import Factorisation
from neural_brane.methods.steps import Steps


@dataclass(frozen=True, slots=True)
class Hops:
    """The matrix M = [w₀X, w₁ÂX, w₂Â²X, …], which is only ever multiplied with.

    X are the weighted attributes, Â averages over a node and its neighbours. ÂX fills in: it is never formed.
    """

    averages: sparse.csr_array
    attributes: sparse.csr_array
    weights: Sequence[float]

    def gram(self, table: np.ndarray) -> np.ndarray:
        """M(Mᵀ table)."""
        spread = [table]
        for _ in self.weights[1:]:
            spread.append(self.averages.T @ spread[-1])
        total = np.zeros_like(table)
        for weight, part in zip(reversed(self.weights), reversed(spread), strict=True):
            total = self.averages @ total
            if weight:
                total += weight**2 * (self.attributes @ (self.attributes.T @ part))
        return total


class Spectral(Factorisation):
    """The left singular vectors of weighted hops, times the singular values, at one scale for all graphs.

    Vectors are scaled by one number, so that their mean squared length is dim: a coordinate's square is one on
    average, as in standardised features, whatever the hops shrink. Ratios between vectors and between directions
    stay as the decomposition gives them.
    """

    def _factorise(self, graph: AttributedGraph) -> np.ndarray:
        attributes = weigh(graph.attributes, inverse_frequency(graph.attributes))
        hops = Hops(transition(graph.adjacency, self_loops=True), attributes, self._weights())
        report = Steps(self.progress, leading_steps(len(graph), self.dim))
        values, vectors = leading(hops.gram, len(graph), self.dim, seed=self.seed_, threads=self.threads, report=report)
        self.squares_ = values
        mean_square = values.sum() / len(graph) or 1.0  # nothing to scale where there are no attributes
        return vectors * np.sqrt(values * self.dim / mean_square)

    @abstractmethod
    def _weights(self) -> Sequence[float]:
        """What the attributes 0, 1, 2, … hops away weigh."""
