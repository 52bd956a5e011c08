"""TADW: random walks of two steps and text, factorised together."""

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
from neural_brane.methods.training import (
    DOUBLE,
    SINGLE,
    WEIGHED,
    Loop,
    Moments,
    diverged,
    spectral_moments,
    spectral_width,
)
from neural_brane.progress import Meter


class Factors(NamedTuple):
    """The vectors, and the factors and the text that they are made of."""

    vectors: np.ndarray  # (nodes, dim)
    nodes: np.ndarray  # Wᵀ (nodes, half)
    directions: np.ndarray  # Hᵀ (text_dim, half)
    text: np.ndarray  # Tᵀ (nodes, text_dim)


class TADW(Factorisation):
    """Network representation learning with rich text information (Yang, Liu, Zhao, Sun, Chang; 2015).

    Minimises ‖M − WᵀHT‖² + λ/2 (‖W‖² + ‖H‖²), where M = (P + P²)/2 holds the chances of a random walk's first two
    steps and T the text: tf-idf attributes reduced by SVD. W and H are solved for in turn, each exactly. M is only
    ever multiplied with. A vector is the node's column of W beside that of HT, each of length one as in the authors'
    program; an odd dim leaves out the last number of HT.
    """

    title = "tadw"
    growth = "time: epochs × (edges × dim + nodes × dim × text_dim); memory: entries + nodes × (dim + text_dim)"
    paper = "Yang, Liu, Zhao, Sun, Chang: Network representation learning with rich text information, 2015"
    shortlisted = True
    holds = {"tadw factors": Factors}

    text_dim: int = whole("Directions of the attributes that are kept.", default=200)
    l2: float = number("Weight of the regularisation, the paper's λ.", default=0.2, above=0)
    epochs: int = shared("epochs", default=20, about="How many times W and H are solved for.")

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

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: the SVD of the attributes, and every turn of the two factors."""
        n, half, width = sizes.nodes, (self.dim + 1) // 2, spectral_width(sizes.nodes, self.text_dim)
        decomposition = width * (14 * sizes.attribute_entries + 14 * n * width)
        return float(decomposition + self.epochs * half * (8 * sizes.links + 4 * n * self.text_dim + 4 * n * half))

    def _factorise(self, graph: AttributedGraph, seed: int) -> Factors:
        meter = Meter(self.progress, REPORTS + self.epochs, "steps", epochs=self.epochs)

        def reduce() -> np.ndarray:
            words = Hops(weigh(graph.attributes, inverse_frequency(graph.attributes)))
            found = decompose(words, self.text_dim, seed=seed, threads=self.threads, report=meter.advance)
            return found.vectors.astype(np.float64)

        text, walk = self._stages.once("text", reduce), transition(graph.adjacency)

        half, ridge = (self.dim + 1) // 2, self.l2 / 2
        text_squares, text_axes = np.linalg.eigh(text.T @ text)
        directions = np.random.default_rng(seed).standard_normal((self.text_dim, half))
        nodes = np.zeros((half, len(text))).T  # as `solve` gives it: in another order BLAS may add up otherwise
        advice = f"raise l2={self.l2:g}, which keeps the equations apart from singular ones"
        loop = Loop(self._stages.stage("factors"), meter, self.epochs, advice=advice)

        def step(epoch: int) -> None:
            seen = text @ directions
            targets = by_slabs(lambda table: _two_steps(walk, table), seen, threads=self.threads)
            nodes[:] = solve(seen.T @ seen + ridge * np.eye(half), targets, loop, epoch)
            # WWᵀ H TTᵀ + λ/2 H = W M Tᵀ is one equation per number along the axes of both squares.
            squares, axes = np.linalg.eigh(nodes.T @ nodes)
            targets = by_slabs(lambda table: _two_steps(walk.T, table), nodes, threads=self.threads)
            along = text_axes.T @ (text.T @ targets) @ axes
            along /= np.maximum(np.outer(text_squares, squares), 0) + ridge
            directions[:] = text_axes @ along @ axes.T
            loop.require_finite(epoch, H=directions)

        meter.resume(REPORTS)  # also where the text was kept
        loop.run({"W": nodes.T, "H": directions}, step)
        vectors = np.hstack([unit_rows(nodes), unit_rows(text @ directions)])[:, : self.dim]
        return Factors(vectors, nodes, directions, text)


def solve(squares: np.ndarray, targets: np.ndarray, loop: Loop, epoch: int) -> np.ndarray:
    """Wᵀ, from the squares of HT beside the regularisation."""
    try:
        nodes: np.ndarray = np.linalg.solve(squares, targets.T).T
    except np.linalg.LinAlgError as error:
        diverged(f"in epoch {epoch + 1}: W cannot be solved for ({error})", **loop.remedies)
    loop.require_finite(epoch, W=nodes.T @ nodes)  # and so all of W is finite
    return nodes


def _two_steps(walk: sparse.csr_array, table: np.ndarray) -> np.ndarray:
    """(P + P²)/2 times a table."""
    once = walk @ table
    return (once + walk @ once) / 2
