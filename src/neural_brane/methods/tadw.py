"""TADW: random walks of two steps and text, factorised together."""

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.linalg import (
    by_slabs,
    inverse_frequency,
    leading,
    leading_steps,
    transition,
    unit_rows,
    weigh,
)
from neural_brane.methods._factorisation import Factorisation
from neural_brane.methods.base import require
from neural_brane.methods.steps import Steps
from neural_brane.progress import Reporter


class TADW(Factorisation):
    """Network representation learning with rich text information (Yang, Liu, Zhao, Sun, Chang; 2015).

    Minimises ‖M − WᵀHT‖² + λ/2 (‖W‖² + ‖H‖²), where M = (P + P²)/2 holds the chances of a random walk's first two
    steps and T the text: tf-idf attributes reduced by SVD. W and H are solved for in turn, each exactly. M is only
    ever multiplied with. A vector is the node's column of W beside that of HT, each of length one as in the authors'
    program; an odd dim leaves out the last number of HT.

    Parameters
    ----------
    dim : width of a vector.
    text_dim : directions of the attributes that are kept.
    l2 : weight of the regularisation, the paper's λ.
    epochs : how many times W and H are solved for.
    seed : of the first values; the same seed gives the same vectors, bit for bit. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

    Examples
    --------
    >>> from neural_brane import load
    >>> TADW(dim=16, epochs=3, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "tadw"
    uses = ("links", "attributes")
    inductive = False
    growth = "time: epochs × (edges × dim + nodes × dim × text_dim); memory: entries + nodes × (dim + text_dim)"
    paper = "Yang, Liu, Zhao, Sun, Chang: Network representation learning with rich text information, 2015"

    def __init__(
        self,
        *,
        dim: int = 150,
        text_dim: int = 200,
        l2: float = 0.2,
        epochs: int = 20,
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.text_dim = text_dim
        self.l2 = l2
        self.epochs = epochs
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _check(self) -> None:
        for name in ("text_dim", "epochs"):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= 1, name, value, "a whole number from 1")
        require(0 < self.l2 < np.inf, "l2", self.l2, "a number above 0")

    def _factorise(self, graph: AttributedGraph) -> np.ndarray:
        report = Steps(self.progress, leading_steps(len(graph), self.text_dim) + self.epochs)
        self.text_ = self._text(graph, report)
        self._alternate(transition(graph.adjacency), report)
        return np.hstack([unit_rows(self.nodes_), unit_rows(self.text_ @ self.directions_)])[:, : self.dim]

    def _text(self, graph: AttributedGraph, report: Steps) -> np.ndarray:
        """Tᵀ (nodes, text_dim): the attributes in few directions."""
        words = weigh(graph.attributes, inverse_frequency(graph.attributes))
        values, vectors = leading(
            lambda table: words @ (words.T @ table),
            len(graph), self.text_dim, seed=self.seed_, threads=self.threads, report=report,
        )  # fmt: skip
        return vectors * np.sqrt(values)

    def _alternate(self, walk: sparse.csr_array, report: Steps) -> None:
        """Find Wᵀ (nodes, half) and Hᵀ (text_dim, half), kept as nodes_ and directions_."""
        text, ridge = self.text_, self.l2 / 2
        half = (self.dim + 1) // 2
        text_squares, text_axes = np.linalg.eigh(text.T @ text)
        self.directions_ = np.random.default_rng(self.seed_).standard_normal((self.text_dim, half))
        for _ in range(self.epochs):
            seen = text @ self.directions_
            targets = by_slabs(lambda table: _two_steps(walk, table), seen, threads=self.threads)
            self.nodes_ = np.linalg.solve(seen.T @ seen + ridge * np.eye(half), targets.T).T
            # WWᵀ H TTᵀ + λ/2 H = W M Tᵀ falls apart into single numbers along the axes of both squares.
            squares, axes = np.linalg.eigh(self.nodes_.T @ self.nodes_)
            targets = by_slabs(lambda table: _two_steps(walk.T, table), self.nodes_, threads=self.threads)
            along = text_axes.T @ (text.T @ targets) @ axes
            along /= np.maximum(np.outer(text_squares, squares), 0) + ridge
            self.directions_ = text_axes @ along @ axes.T
            report()


def _two_steps(walk: sparse.csr_array, table: np.ndarray) -> np.ndarray:
    """(P + P²)/2 times a table."""
    once = walk @ table
    return (once + walk @ once) / 2
