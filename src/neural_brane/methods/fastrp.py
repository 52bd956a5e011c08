"""FastRP: project powers of a random walk's matrix with a very sparse random matrix."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.linalg.tables import BLOCK_ROWS, tables_on
from neural_brane.methods.base import VECTORS, Embedder, Vectors
from neural_brane.methods.parameters import number, numbers, shared
from neural_brane.methods.training import SINGLE, Moments
from neural_brane.progress import Meter


class FastRP(Embedder):
    """Multiply a very sparse random matrix with powers of a random walk's matrix.

    Fast and accurate network embeddings via very sparse random projection (Chen, Sultan, Tian, Chen, Skiena; 2019). The
    vectors are the rows of Σ αₖ PᵏLR. P = D⁻¹A holds the probabilities of a random walk's steps. L = diag((d/2m)^β)
    lowers the weight of hubs, where d are degrees and 2m is their sum. R (nodes, dim) is random: an entry is +⁴√nodes
    or −⁴√nodes with probability 1/(2√nodes) each, and otherwise 0. No power is ever formed: PᵏLR is P times Pᵏ⁻¹LR. As
    in the authors' search on BlogCatalog, the rows of each PᵏLR have length one before the sum, and the columns of the
    sum have mean 0 and variance 1. Nodes without neighbours share one vector. It is good for large graphs without
    attributes, because it takes seconds.

    The authors search β from −1 to 0, and the fourth weight from 1 to 64 after (0, 0, 1). The defaults lie in that
    range and gave good classes on citeseer, cora, reed98 and wiki.
    """

    title = "fastrp"
    uses = ("links",)
    growth = "time: powers × edges × dim; memory: edges + nodes × dim"
    paper = (
        "Chen, Sultan, Tian, Chen, Skiena: Fast and accurate network embeddings via very sparse random projection, 2019"
    )
    grid = {"hub_discount": [0.0, 0.25, 0.5, 0.75, 1.0]}  # range of the authors
    learns = VECTORS
    why_not = "fitting it again takes moments"

    weights: Sequence[float] = numbers("Weights αₖ of the first, second, … power of P.", default=(0.0, 0.0, 1.0, 1.0))
    hub_discount: float = number("Discount of hubs, the paper's −β; 0 is none.", default=0.2, least=0)
    device: str = shared("device", default="cpu")

    def memory(self, sizes: Sizes) -> Moments:
        n = sizes.nodes
        table = SINGLE * n * self.dim
        matrices = {"matrices": 8 * sizes.links + 40 * n}
        return {"powers": matrices | {"tables": 2 * table, "slabs": 3 * SINGLE * n * SLAB_COLUMNS}}

    def _learn(self, graph: AttributedGraph, seed: int) -> Vectors:
        tables = tables_on(self.device, self.threads)
        degrees = graph.adjacency @ np.ones(len(graph))
        walk = tables.matrix(graph.adjacency).scaled(rows=_power(degrees, -1.0))
        scales = _power(degrees / degrees.sum(), -self.hub_discount)
        projection = random_projection(len(graph), self.dim, seed).multiply(scales[:, None]).astype(np.float32)
        table = tables.table(projection.toarray())
        total = tables.zeros(len(graph), self.dim)
        meter = Meter(self.progress, len(self.weights), "powers")
        for weight in self.weights:
            table = tables.by_slabs(lambda slab: walk @ slab, table, reuse=True)
            for at in range(0, len(graph) if weight else 0, BLOCK_ROWS):
                rows = table[at : at + BLOCK_ROWS]
                lengths = ((rows * rows).sum(1) ** 0.5)[:, None]
                total[at : at + BLOCK_ROWS] += weight * rows / (lengths + (lengths == 0))
            meter.advance()
        vectors = tables.array(total)
        for column in vectors.T:
            values = column.astype(np.float64)
            values -= values.mean()
            deviation = np.sqrt(np.mean(values**2))
            column[:] = values / deviation if deviation > 0 else 0
        return Vectors(vectors)


def random_projection(nodes: int, dim: int, seed: int) -> sparse.csr_array:
    """Return R (nodes, dim) float64: with s = √nodes, entries are +√s or −√s with probability 1/(2s) each, else 0.

    >>> sorted(set(random_projection(16, 50, seed=0).toarray().ravel().tolist()))
    [-2.0, 0.0, 2.0]
    """
    rng, spread = np.random.default_rng(seed), np.sqrt(nodes)
    counts = rng.binomial(nodes, 1 / spread, size=dim)
    rows = [rng.choice(nodes, count, replace=False, shuffle=False) for count in counts]
    signs = rng.choice([-1.0, 1.0], counts.sum())
    columns = np.repeat(np.arange(dim), counts)
    return sparse.csr_array((np.sqrt(spread) * signs, (np.concatenate(rows), columns)), shape=(nodes, dim))


def _power(degrees: np.ndarray, exponent: float) -> np.ndarray:
    """Raise degrees to a power; the result is 0 for a node without neighbours."""
    return np.power(degrees, exponent, out=np.zeros_like(degrees), where=degrees > 0)
