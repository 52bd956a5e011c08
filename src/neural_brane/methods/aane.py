"""AANE: attribute similarity and links, by alternating directions."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import by_slabs, map_threads
from neural_brane.linalg.eigenvectors import REPORTS, Hops
from neural_brane.linalg.weights import weigh
from neural_brane.methods.base import Vectors
from neural_brane.methods.factorisation import Factorisation
from neural_brane.methods.parameters import number, shared
from neural_brane.methods.spectral import decompose
from neural_brane.methods.training import DOUBLE, WEIGHED, Loop, Moments, spectral_moments, spectral_width
from neural_brane.progress import Meter

BLOCK_EDGES = 16_384  # edges whose differences are held at a time: 20 MB at dim 150


class Data(NamedTuple):
    """The graph as AANE reads it."""

    profiles: sparse.csr_array  # X: attributes in rows of length one, so that the cosines are S = XXᵀ
    links: sparse.csr_array

    def affinity(self, table: np.ndarray) -> np.ndarray:
        """S times a table; S itself is never formed."""
        return self.profiles @ (self.profiles.T @ table)


class AANE(Factorisation):
    """Accelerated attributed network embedding (Huang, Li, Hu; 2017).

    Minimises ‖S − HHᵀ‖² + λ Σ w_uv ‖h_u − h_v‖ over the edges, each in both directions; S holds the cosines between
    nodes' attributes. H and a copy Z of it are solved for in turn and drawn together (ADMM), starting from the SVD.
    All nodes of a turn share the matrix ZᵀZ, so one eigendecomposition solves them all.
    """

    title = "aane"
    growth = "time: epochs × ((edges + attribute entries) × dim + nodes × dim²); memory: entries + nodes × dim"
    paper = "Huang, Li, Hu: Accelerated attributed network embedding, 2017"
    shortlisted = True

    l2: float = number("Weight of the links, the paper's λ.", default=0.05, least=0)
    rho: float = number("How strongly H and Z are drawn together.", default=5.0, above=0)
    epochs: int = shared("epochs", default=10, about="How many times H and Z are solved for.")

    def memory(self, sizes: Sizes) -> Moments:
        table = DOUBLE * sizes.nodes * self.dim
        matrices = {"matrices": WEIGHED * (sizes.attribute_entries + sizes.links)}
        decomposition = {
            name: {part: size + (matrices["matrices"] if part == "spectral part" else 0) for part, size in one.items()}
            for name, one in spectral_moments(sizes, self.dim, hops=1).items()
        }
        turn = matrices | {"tables": 8 * table, "pulls of the links": 28 * sizes.links}
        return {**decomposition, "training": turn}

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: the SVD of the attributes, and every turn of both copies."""
        n, width = sizes.nodes, spectral_width(sizes.nodes, self.dim)
        decomposition = width * (14 * sizes.attribute_entries + 14 * n * width)
        turn = self.dim * (4 * sizes.attribute_entries + 6 * sizes.links + 6 * n * self.dim)
        return float(decomposition + 2 * self.epochs * turn)

    def _factorise(self, graph: AttributedGraph, seed: int) -> Vectors:
        data = Data(weigh(graph.attributes, np.ones(graph.attributes.shape[1])), graph.adjacency.astype(np.float64))
        meter = Meter(self.progress, REPORTS + self.epochs, "steps", epochs=self.epochs)
        stage, shape = self._stages.stage("factors"), (len(graph), self.dim)
        vectors = np.zeros(shape)
        if not stage.kept:  # the best HHᵀ without links, from which a few turns settle
            found = decompose(Hops(data.profiles), self.dim, seed=seed, threads=self.threads, report=meter.advance)
            vectors = found.vectors.astype(np.float64)
        copy, gap = vectors.copy(), np.zeros_like(vectors)
        loop = Loop(stage, meter, self.epochs, advice=f"lower l2={self.l2:g} or raise rho={self.rho:g}")

        def turn(moving: np.ndarray, fixed: np.ndarray, anchor: np.ndarray, epoch: int) -> None:
            products = 2 * fixed.T @ fixed
            loop.require_finite(epoch, **{"H or Z": products})
            pull = self._pull(data.links, moving, fixed)
            targets = 2 * by_slabs(data.affinity, fixed, threads=self.threads) + self.rho * anchor
            targets += by_slabs(lambda table: pull @ table, fixed, threads=self.threads)
            squares, axes = np.linalg.eigh(products)
            along = targets @ axes
            along /= np.maximum(squares, 0) + (pull.sum(axis=1) + self.rho)[:, None]
            moving[:] = along @ axes.T

        def step(epoch: int) -> None:
            turn(vectors, copy, copy - gap, epoch)
            turn(copy, vectors, vectors + gap, epoch)
            gap[:] = gap + vectors - copy

        meter.resume(REPORTS)  # also where the start was kept
        loop.run({"H": vectors, "Z": copy, "U": gap}, step)
        return Vectors(vectors)

    def _pull(
        self, links: sparse.csr_array, moving: np.ndarray, fixed: np.ndarray, block_edges: int = BLOCK_EDGES
    ) -> sparse.csr_array:
        """λ w_uv / ‖h_u − z_v‖ for every edge; 0 where the two coincide, or are one node."""
        entries = links.tocoo()
        blocks = [slice(at, at + block_edges) for at in range(0, entries.nnz, block_edges)]
        apart = np.zeros(entries.nnz)

        def measure(block: slice) -> None:
            apart[block] = np.linalg.norm(moving[entries.row[block]] - fixed[entries.col[block]], axis=1)

        list(map_threads(measure, blocks, self.threads))
        pulls = (apart > 0) & (entries.row != entries.col)
        weights = np.divide(self.l2 * entries.data, apart, out=np.zeros_like(apart), where=pulls)
        return sparse.csr_array((weights, links.indices, links.indptr), links.shape)
