"""AANE: factorise the similarity of attributes, with linked nodes drawn together."""

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
from neural_brane.methods.training import DOUBLE, WEIGHED, Loop, Moments, spectral_moments
from neural_brane.progress import Meter

BLOCK_EDGES = 16_384  # edges handled at a time: 20 MB of differences at dim 150


class AANE(Factorisation):
    """Factorise the similarity of attributes so that linked nodes get similar vectors.

    Accelerated attributed network embedding (Huang, Li, Hu; 2017) minimises ‖S − HHᵀ‖² + λ Σ w_uv ‖h_u − h_v‖. S holds
    the cosines between the attributes of nodes; the sum runs over the edges in both directions. The method solves in
    turn for H and for a copy Z, and draws the two together (ADMM). It starts from the SVD of the attributes. All nodes
    of a turn share the matrix ZᵀZ, so one eigendecomposition solves for all of them. Try it if linked nodes have
    similar attributes.
    """

    title = "aane"
    growth = "time: epochs × ((edges + attribute entries) × dim + nodes × dim²); memory: entries + nodes × dim"
    paper = "Huang, Li, Hu: Accelerated attributed network embedding, 2017"
    shortlisted = True

    l2: float = number("Weight of the links, the paper's λ.", default=0.05, least=0)
    rho: float = number("Strength that draws H and Z together.", default=5.0, above=0)
    epochs: int = shared("epochs", default=10, about="Number of turns; each solves for H and for Z.")

    def memory(self, sizes: Sizes) -> Moments:
        table = DOUBLE * sizes.nodes * self.dim
        matrices = {"matrices": WEIGHED * (sizes.attribute_entries + sizes.links)}
        decomposition = {
            name: {part: size + (matrices["matrices"] if part == "spectral part" else 0) for part, size in one.items()}
            for name, one in spectral_moments(sizes, self.dim, hops=1).items()
        }
        turn = matrices | {"tables": 8 * table, "pulls of the links": 28 * sizes.links}
        return {**decomposition, "training": turn}

    def _factorise(self, graph: AttributedGraph, seed: int) -> Vectors:
        profiles = weigh(graph.attributes, np.ones(graph.attributes.shape[1]))  # rows of length one, so S = XXᵀ
        links = graph.adjacency.astype(np.float64)
        meter = Meter(self.progress, REPORTS + self.epochs, "steps", epochs=self.epochs)
        stage, shape = self._stages.stage("factors"), (len(graph), self.dim)
        vectors = np.zeros(shape)
        if not stage.kept:  # Start from the best HHᵀ without links, so that a few turns are enough.
            found = decompose(Hops(profiles), self.dim, seed=seed, threads=self.threads, report=meter.advance)
            vectors = found.vectors.astype(np.float64)
        copy, gap = vectors.copy(), np.zeros_like(vectors)
        loop = Loop(stage, meter, self.epochs, advice=f"lower l2={self.l2:g} or raise rho={self.rho:g}")

        def turn(moving: np.ndarray, fixed: np.ndarray, anchor: np.ndarray, epoch: int) -> None:
            products = 2 * fixed.T @ fixed
            loop.require_finite(epoch, **{"H or Z": products})
            pull = self._pull(links, moving, fixed)
            similar = by_slabs(lambda table: profiles @ (profiles.T @ table), fixed, threads=self.threads)
            targets = 2 * similar + self.rho * anchor
            targets += by_slabs(lambda table: pull @ table, fixed, threads=self.threads)
            squares, axes = np.linalg.eigh(products)
            along = targets @ axes
            along /= np.maximum(squares, 0) + (pull.sum(axis=1) + self.rho)[:, None]
            moving[:] = along @ axes.T

        def step(epoch: int) -> None:
            turn(vectors, copy, copy - gap, epoch)
            turn(copy, vectors, vectors + gap, epoch)
            gap[:] = gap + vectors - copy

        meter.resume(REPORTS)  # also if the checkpoint held the start
        loop.run({"H": vectors, "Z": copy, "U": gap}, step)
        return Vectors(vectors)

    def _pull(
        self, links: sparse.csr_array, moving: np.ndarray, fixed: np.ndarray, block_edges: int = BLOCK_EDGES
    ) -> sparse.csr_array:
        """Compute λ w_uv / ‖h_u − z_v‖ for every edge; 0 for self-loops and where the two vectors coincide."""
        entries = links.tocoo()
        blocks = [slice(at, at + block_edges) for at in range(0, entries.nnz, block_edges)]
        distances = np.zeros(entries.nnz)

        def measure(block: slice) -> None:
            distances[block] = np.linalg.norm(moving[entries.row[block]] - fixed[entries.col[block]], axis=1)

        list(map_threads(measure, blocks, self.threads))
        pulls = (distances > 0) & (entries.row != entries.col)
        weights = np.divide(self.l2 * entries.data, distances, out=np.zeros_like(distances), where=pulls)
        return sparse.csr_array((weights, links.indices, links.indptr), links.shape)
