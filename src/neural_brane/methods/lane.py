"""LANE: reduce links, attributes and known labels to axes that they share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.linalg.eigenvectors import Operator, leading_eigenvectors
from neural_brane.linalg.tables import Table, Tables, tables_on
from neural_brane.linalg.weights import weigh, without_self_loops
from neural_brane.methods.base import Vectors
from neural_brane.methods.factorisation import Factorisation
from neural_brane.methods.parameters import number, shared
from neural_brane.methods.training import SINGLE, WEIGHED, Loop, Moments, spectral_width

SELF = 1e-6  # added to the cosine of a node with itself, as in the authors' program


Affinity = tuple[Any, Any, np.ndarray]


def affinity_of(matrix: sparse.csr_array, what: str, tables: Tables) -> Affinity:
    """Return the factors D⁻½X, its transpose and diag / D of D⁻½(XXᵀ + diag)D⁻½, of cosines XXᵀ with sums D."""
    profiles = weigh(matrix, np.ones(matrix.shape[1]))
    own = 1 + SELF - (np.diff(profiles.indptr) > 0)
    degrees = profiles @ (profiles.T @ np.ones(matrix.shape[0])) + own
    if not (degrees > 0).all():
        rest = f"but negative values make a sum {degrees.min():.3g}; shift the values or drop the negative ones"
        raise GraphError(f"lane divides by the sum of each node's cosines by {what}, {rest}")
    profiles.data /= np.repeat(np.sqrt(degrees), np.diff(profiles.indptr))
    return *tables.with_transpose(profiles), (own / degrees).astype(np.float32)[:, None]


class Sum:
    """A weighted sum of an affinity and of projections UUᵀ, in the form that `leading_eigenvectors` needs."""

    def __init__(self, affinity: Affinity | None, weight: float, others: Sequence[tuple[float, np.ndarray]]):
        self.weight, self.others, self.affinity = weight, [one for one in others if one[0]], affinity
        self.size = len(others[0][1])

    def image(self, table: Table) -> Table:
        """Return the sum times a table."""
        total = np.zeros_like(table)
        if self.affinity is not None:
            profiles, transposed, diagonal = self.affinity
            product = profiles @ (transposed @ table) + diagonal * table
            total += np.float32(self.weight) * product
        for weight, axes in self.others:
            total += np.float32(weight) * (axes @ (axes.T @ table))
        return total

    def gram(self, table: Table) -> np.ndarray:
        """Return tableᵀ times the sum times table, float64."""
        total = np.zeros((table.shape[1],) * 2)
        if self.affinity is not None:
            (_, transposed, diagonal), wide = self.affinity, table.astype(np.float64)
            total += self.weight * (transposed.gram(table) + wide.T @ (diagonal * wide))
        for weight, axes in self.others:
            along = (axes.T @ table).astype(np.float64)
            total += weight * along.T @ along
        return total


class LANE(Factorisation):
    """Find axes that links, attributes and known labels share: good if some labels are known.

    Label informed attributed network embedding (Huang, Li, Hu; 2017). Links, attributes and labels each give an
    affinity of nodes, which contains cosines, normalised like a Laplacian. Each affinity has separate axes U, and all
    share the axes H. Each in turn is solved as the leading eigenvectors of its affinity plus the projections on the
    other axes. This takes only products; no affinity is formed.

    With labels, given by `fit(graph, labels=known)`, H is found for the labelled nodes, as in the authors' program. A
    linear map from their links and attributes to H then embeds the other nodes. Without labels, H is found for all
    nodes from links and attributes. H is multiplied by √nodes, so that its numbers do not depend on the size of the
    graph.

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
    # The paper tries weights from 0.01 to 100; the authors' program uses values of the upper half.
    grid = {"attribute_weight": [1.0, 10.0, 43.0], "label_weight": [1.0, 30.0, 100.0]}

    attribute_weight: float = number("Weight of the attributes, the paper's α₁.", default=10.0, above=0)
    label_weight: float = number("Weight of the labels, the paper's α₂.", default=30.0, least=0)
    correlation: float = number(
        "Without labels: weight that makes the axes of links and of attributes agree.", default=0.1, least=0
    )
    link_share: float = number("With labels: weight of links in the vectors of unlabelled nodes.", default=1.0, least=0)
    attribute_share: float = number("With labels: weight of attributes for unlabelled nodes.", default=1.6, least=0)
    epochs: int = shared("epochs", default=5, about="Number of times that all axes are solved.")

    def memory(self, sizes: Sizes) -> Moments:
        n, entries = sizes.nodes, sizes.links + sizes.nodes + sizes.attribute_entries
        width = spectral_width(n, self.dim)
        held = {"matrices": 2 * WEIGHED * entries + 16 * entries, "axes": 4 * SINGLE * n * self.dim}
        return {
            "training": held | {"tables": 5 * SINGLE * n * width},
            "vectors": held | {"vectors": 6 * SINGLE * n * self.dim},
        }

    def _factorise(self, graph: AttributedGraph, seed: int) -> Vectors:
        links = (without_self_loops(graph.adjacency) + sparse.eye_array(len(graph))).tocsr()
        if self._known is None:
            return Vectors(self._solve(links, graph.attributes, None, seed) * np.sqrt(len(graph)))
        known = np.flatnonzero(self._known != "")
        classes, numbers = np.unique(self._known[known], return_inverse=True)
        ones = (np.ones(len(known)), (np.arange(len(known)), numbers))
        labels = sparse.csr_array(ones, shape=(len(known), len(classes)))
        axes = self._solve(links[known][:, known], graph.attributes[known], labels, seed)
        vectors = np.zeros((len(graph), self.dim))
        for share, matrix in ((self.link_share, links), (self.attribute_share, graph.attributes)):
            matrix = matrix.astype(np.float64)
            products = matrix[known].T @ axes  # (HᵀX)ᵀ; its pseudo-inverse maps a row of X to H
            vectors += share * (matrix @ (products @ np.linalg.pinv(products.T @ products, hermitian=True)))
        vectors[known] = axes
        return Vectors(vectors * np.sqrt(len(known)))

    def _solve(
        self, links: sparse.csr_array, attributes: sparse.csr_array, labels: sparse.csr_array | None, seed: int
    ) -> np.ndarray:
        """Return H (nodes, dim), with orthonormal columns."""
        tables, nodes = tables_on("cpu", self.threads), links.shape[0]
        by_links, by_attributes = affinity_of(links, "links", tables), affinity_of(attributes, "attributes", tables)
        by_labels = None if labels is None else affinity_of(labels, "labels", tables)
        first, second = self.attribute_weight, self.label_weight if labels is not None else 0.0
        together = first if labels is not None else self.correlation
        axes = {name: np.zeros((nodes, self.dim), np.float32) for name in ("G", "A", "Y", "H")}

        def turn(name: str, affinity: Affinity | None, weight: float, others: Sequence[tuple[float, str]]) -> None:
            operator: Operator = Sum(affinity, weight, [(share, axes[other]) for share, other in others])
            values, vectors = leading_eigenvectors(operator, self.dim, tables=tables, seed=seed)
            roots = np.sqrt(values)
            axes[name][:] = vectors * np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0)

        def step(_: int) -> None:
            turn("G", by_links, 1.0, [(together, "A"), (second, "Y"), (1.0, "H")])
            turn("A", by_attributes, first, [(together, "G"), (1.0, "H")])
            if by_labels is not None:
                turn("Y", by_labels, second, [(second, "G"), (1.0, "H")])
            turn("H", None, 0.0, [(1.0, "G"), (1.0, "A"), (1.0 if labels is not None else 0.0, "Y")])

        Loop.over_epochs(self, "axes", advice="give a smaller dim").run(axes, step)
        return axes["H"].astype(np.float64)
