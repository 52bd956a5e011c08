"""Solve for all vectors at once, by linear algebra: what factorisations share, TADW, AANE and LANE."""

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import by_slabs, map_threads, one_blas_thread
from neural_brane.linalg.eigenvectors import REPORTS, Hops, Operator, leading_eigenvectors
from neural_brane.linalg.tables import Table, Tables, tables_on
from neural_brane.linalg.weights import inverse_frequency, transition, unit_rows, weigh, without_self_loops
from neural_brane.methods.base import Embedder, Vectors
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


class Factorisation(Embedder):
    """A method whose vectors are factors of matrices, solved for in double precision."""

    prolongs: ClassVar[tuple[str, ...]] = ("epochs",)
    why_not = "its factors are solved for all nodes at once"
    small = {"epochs": 2}

    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def _learn(self, graph: AttributedGraph, seed: int) -> Any:
        with one_blas_thread():
            factors = self._factorise(graph, seed)
        return factors._replace(vectors=factors.vectors.astype(np.float32, copy=False))

    @abstractmethod
    def _factorise(self, graph: AttributedGraph, seed: int) -> Any:
        """A named tuple that has the vectors (nodes, dim) and whatever else was solved for."""


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


SELF = 1e-6  # added to the likeness of a node with itself, as the authors' program does


class Affinity(NamedTuple):
    """D⁻½(XXᵀ + diag)D⁻½: cosines between rows of X, normalised by their sums; never formed."""

    profiles: sparse.csr_array  # D⁻½X, where rows of X have length one
    diagonal: np.ndarray  # (cosine of a node with itself, which is 1 + SELF, less that of XXᵀ) over D

    @classmethod
    def of(cls, matrix: sparse.csr_array, what: str) -> "Affinity":
        """The affinity of nodes by a matrix with a row for each."""
        profiles = weigh(matrix, np.ones(matrix.shape[1]))
        own = 1 + SELF - (np.diff(profiles.indptr) > 0)
        degrees = profiles @ (profiles.T @ np.ones(matrix.shape[0])) + own
        if not (degrees > 0).all():
            raise GraphError(
                f"lane divides by each node's likeness to all others by {what}, and negative values make that "
                f"{degrees.min():.3g} for some; shift or drop the negative ones"
            )
        roots = np.sqrt(degrees)
        profiles.data /= np.repeat(roots, np.diff(profiles.indptr))
        return cls(profiles, own / degrees)


class Sum:
    """A weighted sum of an affinity and of projections UUᵀ, as `leading_eigenvectors` multiplies with it."""

    def __init__(
        self, tables: Tables, affinity: Affinity | None, weight: float, others: Sequence[tuple[float, np.ndarray]]
    ):
        self.weight, self.others, self.affinity = weight, [one for one in others if one[0]], affinity
        self.size = len(others[0][1])
        if affinity is not None:
            self.profiles = tables.matrix(affinity.profiles)
            self.transposed = tables.matrix(affinity.profiles.T.tocsr())
            self.diagonal = affinity.diagonal.astype(np.float32)[:, None]

    def image(self, table: Table) -> Table:
        """The sum times a table."""
        total = np.zeros_like(table)
        if self.affinity is not None:
            product = self.profiles @ (self.transposed @ table) + self.diagonal * table
            total += np.float32(self.weight) * product
        for weight, axes in self.others:
            total += np.float32(weight) * (axes @ (axes.T @ table))
        return total

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of the table's columns by the sum, float64."""
        total = np.zeros((table.shape[1],) * 2)
        if self.affinity is not None:
            wide = table.astype(np.float64)
            total += self.weight * (self.transposed.gram(table) + wide.T @ (self.diagonal * wide))
        for weight, axes in self.others:
            along = (axes.T @ table).astype(np.float64)
            total += weight * along.T @ along
        return total


class LANE(Factorisation):
    """Label informed attributed network embedding (Huang, Li, Hu; 2017).

    Links, attributes and labels each give an affinity of nodes: cosines, normalised as a Laplacian is. Each has axes
    U of its own, and H are the axes that all of them share. In turn, each is solved for as the leading eigenvectors of
    its affinity beside the projections on the others, by products alone: no affinity is ever formed.

    Labels are learned from only where they are given, by `fit(graph, labels=known)`. Then, as in the authors' program,
    H is found for the labelled nodes, and every other node is placed by its links and attributes along the linear map
    from these to H. Without labels H is found for all nodes, by links and attributes. H is scaled by √nodes, so that a
    number is about one whatever the size of the graph.

    Examples
    --------
    >>> from neural_brane import load
    >>> graph = load("stdlib")
    >>> known = dict(zip(graph.ids[:300].tolist(), graph.labels[:300].tolist()))
    >>> LANE(dim=16, seed=0).fit_transform(graph, labels=known).vectors.shape
    (554, 16)
    """

    title = "lane"
    uses_labels = True
    growth = "time: epochs × ((edges + attribute entries) × dim + nodes × dim²); memory: entries + nodes × dim"
    paper = "Huang, Li, Hu: Label informed attributed network embedding, 2017"
    # Its paper has weights from 0.01 to 100, its authors' program those of the upper half.
    grid = {"attribute_weight": [1.0, 10.0, 43.0], "label_weight": [1.0, 30.0, 100.0]}

    attribute_weight: float = number("Weight of the attributes, the paper's α₁.", default=10.0, above=0)
    label_weight: float = number("Weight of the labels, the paper's α₂.", default=30.0, least=0)
    correlation: float = number(
        "Without labels: how strongly the axes of links and of attributes are drawn together.", default=0.1, least=0
    )
    link_share: float = number("With labels: weight of links where other nodes are placed.", default=1.0, least=0)
    attribute_share: float = number("The same for attributes.", default=1.6, least=0)
    epochs: int = shared("epochs", default=5, about="How many times all axes are solved for.")

    def memory(self, sizes: Sizes) -> Moments:
        n, entries = sizes.nodes, sizes.links + sizes.nodes + sizes.attribute_entries
        width = spectral_width(n, self.dim)
        held = {"matrices": 2 * WEIGHED * entries + 16 * entries, "axes": 4 * SINGLE * n * self.dim}
        return {
            "training": held | {"tables": 5 * SINGLE * n * width},
            "vectors": held | {"vectors": 6 * SINGLE * n * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: every turn of the three affinities and of H."""
        width = spectral_width(sizes.nodes, self.dim)
        entries = sizes.links + sizes.nodes + sizes.attribute_entries
        return float(self.epochs * width * (14 * entries + 14 * sizes.nodes * (10 * self.dim + 4 * width)))

    def _factorise(self, graph: AttributedGraph, seed: int) -> Vectors:
        links = (without_self_loops(graph.adjacency) + sparse.eye_array(len(graph))).tocsr()
        if self._known is None:
            return Vectors(self._solve(links, graph.attributes, None, seed) * np.sqrt(len(graph)))
        known = np.flatnonzero(self._known != "")
        classes, numbers = np.unique(self._known[known], return_inverse=True)
        ones = (np.ones(len(known)), (np.arange(len(known)), numbers))
        labels = sparse.csr_array(ones, shape=(len(known), len(classes)))
        axes = self._solve(links[known][:, known], graph.attributes[known], labels, seed)
        vectors = np.zeros((len(graph), self.dim))  # placed along linear maps to H, found from the labelled nodes
        for share, matrix in ((self.link_share, links), (self.attribute_share, graph.attributes)):
            matrix = matrix.astype(np.float64)
            seen = matrix[known].T @ axes  # (HᵀX)ᵀ, whose pseudo-inverse maps a row of X to H
            vectors += share * (matrix @ (seen @ np.linalg.pinv(seen.T @ seen, hermitian=True)))
        vectors[known] = axes
        return Vectors(vectors * np.sqrt(len(known)))

    def _solve(
        self, links: sparse.csr_array, attributes: sparse.csr_array, labels: sparse.csr_array | None, seed: int
    ) -> np.ndarray:
        """H (nodes, dim), with columns of length one at right angles."""
        tables, nodes = tables_on("cpu", self.threads), links.shape[0]
        by_links, by_attributes = Affinity.of(links, "links"), Affinity.of(attributes, "attributes")
        by_labels = None if labels is None else Affinity.of(labels, "labels")
        first, second = self.attribute_weight, self.label_weight if labels is not None else 0.0
        together = first if labels is not None else self.correlation
        axes = {name: np.zeros((nodes, self.dim), np.float32) for name in ("G", "A", "Y", "H")}

        def turn(name: str, affinity: Affinity | None, weight: float, others: Sequence[tuple[float, str]]) -> None:
            operator: Operator = Sum(tables, affinity, weight, [(share, axes[other]) for share, other in others])
            values, vectors = leading_eigenvectors(operator, self.dim, tables=tables, seed=seed)
            roots = np.sqrt(values)
            axes[name][:] = vectors * np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)

        def step(_: int) -> None:
            turn("G", by_links, 1.0, [(together, "A"), (second, "Y"), (1.0, "H")])
            turn("A", by_attributes, first, [(together, "G"), (1.0, "H")])
            if by_labels is not None:
                turn("Y", by_labels, second, [(second, "G"), (1.0, "H")])
            turn("H", None, 0.0, [(1.0, "G"), (1.0, "A"), (1.0 if labels is not None else 0.0, "Y")])

        Loop.of(self, "axes", advice="give a smaller dim").run(axes, step)
        return axes["H"].astype(np.float64)
