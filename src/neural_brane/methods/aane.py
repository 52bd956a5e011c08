"""AANE: attribute similarity and links, by alternating directions."""

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.linalg import by_slabs, leading, leading_steps, spread, weigh
from neural_brane.methods._factorisation import Factorisation
from neural_brane.methods.base import require
from neural_brane.methods.steps import Steps
from neural_brane.progress import Reporter

BLOCK_EDGES = 16_384  # whose differences are held at a time: 20 MB at dim 150


class AANE(Factorisation):
    """Accelerated attributed network embedding (Huang, Li, Hu; 2017).

    Minimises ‖S − HHᵀ‖² + λ Σ w_uv ‖h_u − h_v‖ over the edges, each in both directions; S holds the cosines between
    nodes' attributes. H and a copy Z of it are solved for in turn and drawn together (ADMM), from the SVD on. All
    nodes of a turn share the matrix ZᵀZ, so one eigendecomposition solves them all. S is never formed, only
    multiplied with: SZ = X(XᵀZ) for attributes X in rows of length one.

    Parameters
    ----------
    dim : width of a vector.
    l2 : weight of the links, the paper's λ.
    rho : how strongly H and Z are drawn together.
    epochs : how many times H and Z are solved for.
    seed : of the first values; the same seed gives the same vectors, bit for bit. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

    Examples
    --------
    >>> from neural_brane import load
    >>> AANE(dim=16, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "aane"
    uses = ("links", "attributes")
    inductive = False
    growth = "time: epochs × ((edges + attribute entries) × dim + nodes × dim²); memory: entries + nodes × dim"
    paper = "Huang, Li, Hu: Accelerated attributed network embedding, 2017"

    def __init__(
        self,
        *,
        dim: int = 150,
        l2: float = 0.05,
        rho: float = 5.0,
        epochs: int = 10,
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.l2 = l2
        self.rho = rho
        self.epochs = epochs
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _check(self) -> None:
        require(isinstance(self.epochs, int) and self.epochs >= 1, "epochs", self.epochs, "a whole number from 1")
        require(0 <= self.l2 < np.inf, "l2", self.l2, "a number from 0")
        require(0 < self.rho < np.inf, "rho", self.rho, "a number above 0")

    def _factorise(self, graph: AttributedGraph) -> np.ndarray:
        nodes = len(graph)
        report = Steps(self.progress, leading_steps(nodes, self.dim) + 2 * self.epochs)
        self._profiles = weigh(graph.attributes, np.ones(graph.attributes.shape[1]))
        self._links = graph.adjacency.astype(np.float64)
        values, start = leading(self._affinity, nodes, self.dim, seed=self.seed_, threads=self.threads, report=report)
        start *= np.sqrt(values)  # the best HHᵀ without links: from here a few turns settle, from U alone hundreds
        vectors, copy, gap = start, start, np.zeros_like(start)
        for _ in range(self.epochs):
            vectors = self._solve(vectors, copy, copy - gap)
            report()
            copy = self._solve(copy, vectors, vectors + gap)
            gap = gap + vectors - copy
            report()
        return vectors

    def _affinity(self, table: np.ndarray) -> np.ndarray:
        """S times a table."""
        return self._profiles @ (self._profiles.T @ table)

    def _solve(self, moving: np.ndarray, fixed: np.ndarray, anchor: np.ndarray) -> np.ndarray:
        """The next H (moving) given Z (fixed), or the next Z given H; the anchor is where `rho` draws it."""
        pull = self._pull(moving, fixed)
        targets = 2 * by_slabs(self._affinity, fixed, threads=self.threads) + self.rho * anchor
        targets += by_slabs(lambda table: pull @ table, fixed, threads=self.threads)
        squares, axes = np.linalg.eigh(2 * fixed.T @ fixed)
        along = targets @ axes
        along /= np.maximum(squares, 0) + (pull.sum(axis=1) + self.rho)[:, None]
        return along @ axes.T

    def _pull(self, moving: np.ndarray, fixed: np.ndarray) -> sparse.csr_array:
        """λ w_uv / ‖h_u − z_v‖ for every edge; nothing where the two coincide, or are one node."""
        links = self._links.tocoo()
        blocks = [slice(at, at + BLOCK_EDGES) for at in range(0, links.nnz, BLOCK_EDGES)]
        apart = np.zeros(links.nnz)

        def measure(block: slice) -> None:
            apart[block] = np.linalg.norm(moving[links.row[block]] - fixed[links.col[block]], axis=1)

        list(spread(measure, blocks, self.threads))
        pulls = (apart > 0) & (links.row != links.col)
        weights = np.divide(self.l2 * links.data, apart, out=np.zeros_like(apart), where=pulls)
        return sparse.csr_array((weights, self._links.indices, self._links.indptr), self._links.shape)
