"""TADW: factorise random walks of two steps with the help of attributes."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import by_slabs
from neural_brane.linalg.eigenvectors import REPORTS, Hops
from neural_brane.linalg.weights import inverse_frequency, transition, unit_rows, weigh
from neural_brane.methods.factorisation import Factorisation
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.spectral import decompose
from neural_brane.methods.training import DOUBLE, SINGLE, WEIGHED, Loop, Moments, diverged, spectral_moments
from neural_brane.progress import Meter


class TADWFactors(NamedTuple):
    """The vectors, the factors and the reduced attributes."""

    vectors: np.ndarray  # (nodes, dim)
    nodes: np.ndarray  # Wᵀ (nodes, half)
    directions: np.ndarray  # Hᵀ (text_dim, half)
    text: np.ndarray  # Tᵀ (nodes, text_dim)


class TADW(Factorisation):
    """Factorise the probabilities of short random walks, with attributes as a fixed factor.

    Network representation learning with rich text information (Yang, Liu, Zhao, Sun, Chang; 2015). It is fast and good
    on most graphs with attributes. It minimises ‖M − WᵀHT‖² + λ/2 (‖W‖² + ‖H‖²). M = (P + P²)/2 contains the
    probabilities of one and two steps of a random walk; it is never formed. T is the text: tf-idf attributes reduced by
    SVD. W and H are solved exactly, in turn. A vector joins the node's columns of W and HT, each of length one as in
    the authors' program; an odd dim drops the last number of HT.
    """

    title = "tadw"
    growth = "time: epochs × (edges × dim + nodes × dim × text_dim); memory: entries + nodes × (dim + text_dim)"
    paper = "Yang, Liu, Zhao, Sun, Chang: Network representation learning with rich text information, 2015"
    shortlisted = True
    holds = {"tadw factors": TADWFactors}
    learns = {
        "nodes_": "ndarray (nodes, half): Wᵀ, where half is dim / 2, rounded up.",
        "directions_": "ndarray (text_dim, half): Hᵀ.",
        "text_": "ndarray (nodes, text_dim): Tᵀ, the reduced attributes.",
    }

    text_dim: int = whole("Dimensions to which the attributes are reduced.", default=200)
    l2: float = number("Weight of the regularisation, the paper's λ.", default=0.2, above=0)
    epochs: int = shared("epochs", default=20, about="Number of times that W and H are solved.")

    def memory(self, sizes: Sizes) -> Moments:
        n, half = sizes.nodes, (self.dim + 1) // 2
        text = {"text": DOUBLE * n * self.text_dim}
        factor = DOUBLE * n * half
        walk = {"matrices": WEIGHED * sizes.links}
        return {
            **spectral_moments(sizes, self.text_dim, hops=1),
            "text": text | {"vectors": SINGLE * n * self.text_dim},
            "training": text | walk | {"tables": 5 * factor},
            "vectors": text | walk | {"tables": 2 * factor, "vectors": 5 * factor},
        }

    def _factorise(self, graph: AttributedGraph, seed: int) -> TADWFactors:
        meter = Meter(self.progress, REPORTS + self.epochs, "steps", epochs=self.epochs)

        def reduce() -> np.ndarray:
            words = Hops(weigh(graph.attributes, inverse_frequency(graph.attributes)))
            found = decompose(words, self.text_dim, seed=seed, threads=self.threads, report=meter.advance)
            return found.vectors.astype(np.float64)

        text, walk = self._stages.once("text", reduce), transition(graph.adjacency)

        half, ridge = (self.dim + 1) // 2, self.l2 / 2
        text_squares, text_axes = np.linalg.eigh(text.T @ text)
        directions = np.random.default_rng(seed).standard_normal((self.text_dim, half))
        nodes = np.zeros((half, len(text))).T  # memory order of `solve`; sums in BLAS depend on it
        advice = f"raise l2={self.l2:g}, which keeps the equations solvable"
        loop = Loop(self._stages.stage("factors"), meter, self.epochs, advice=advice)

        def step(epoch: int) -> None:
            texts = text @ directions
            targets = by_slabs(lambda table: _two_steps(walk, table), texts, threads=self.threads)
            nodes[:] = solve(texts.T @ texts + ridge * np.eye(half), targets, loop, epoch)
            # Along the eigenvectors of WWᵀ and TTᵀ, WWᵀ H TTᵀ + λ/2 H = W M Tᵀ is one equation for each number of H.
            squares, axes = np.linalg.eigh(nodes.T @ nodes)
            targets = by_slabs(lambda table: _two_steps(walk.T, table), nodes, threads=self.threads)
            along = text_axes.T @ (text.T @ targets) @ axes
            along /= np.maximum(np.outer(text_squares, squares), 0) + ridge
            directions[:] = text_axes @ along @ axes.T
            loop.require_finite(epoch, H=directions)

        meter.resume(REPORTS)  # also if the checkpoint held the text
        loop.run({"W": nodes.T, "H": directions}, step)
        vectors = np.hstack([unit_rows(nodes), unit_rows(text @ directions)])[:, : self.dim]
        return TADWFactors(vectors, nodes, directions, text)


def solve(squares: np.ndarray, targets: np.ndarray, loop: Loop, epoch: int) -> np.ndarray:
    """Return Wᵀ (nodes, half). squares: HTTᵀHᵀ + λ/2 I (half, half). targets: M TᵀHᵀ (nodes, half)."""
    try:
        nodes: np.ndarray = np.linalg.solve(squares, targets.T).T
    except np.linalg.LinAlgError as error:
        diverged(f"in epoch {epoch + 1}: the equations for W cannot be solved ({error})", **loop.remedies)
    loop.require_finite(epoch, W=nodes.T @ nodes)  # finite only if all of W is
    return nodes


def _two_steps(walk: sparse.csr_array, table: np.ndarray) -> np.ndarray:
    """Return (P + P²)/2 times a table."""
    once = walk @ table
    return (once + walk @ once) / 2
