"""CCA-SSG: train a graph convolution so that two views of a graph agree and its columns do not repeat each other."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.kernels.threads import one_blas_thread
from neural_brane.methods import descent as backend
from neural_brane.methods.base import stack
from neural_brane.methods.convolution import Convolutional, Subgraph, convolved, normalised
from neural_brane.methods.parameters import choice, number, shared

SMALLEST_VARIANCE = 1e-12  # added to the variance of a column, to avoid dividing by zero


class Correlation(NamedTuple):
    """The learned weights of one or two convolutions; with one, `second` has no rows."""

    table: Any  # (attributes, dim)
    bias: Any  # (1, dim)
    second: Any  # (dim, dim) or (0, dim)
    second_bias: Any  # (1, dim)


class GraphView(NamedTuple):
    """A graph from which some edges and attributes were removed."""

    averages: backend.BothWays
    kept: Any  # (attributes, 1): 1 for the attributes that remain, 0 for the others


class CCASSG(Convolutional):
    """Train a graph convolution on two random views of the graph, whose vectors must agree.

    From canonical correlation analysis to self-supervised graph neural networks (Zhang, Wu, Yan, Wipf, Yu; 2021). It is
    good if neighbours share a class, and takes few steps. Each step draws two views of the graph, which lack some edges
    and some attributes. Two graph convolutions, with a ReLU between them, turn each view into vectors with standardised
    columns. C are the correlations of columns. The loss −tr(C₁₂) + λ (‖C₁₁ − I‖² + ‖C₂₂ − I‖²) makes each column agree
    in both views and differ from other columns. The final vectors come from the whole graph. The method draws no pairs
    of nodes and never forms a matrix nodes × nodes.

    The attributes of each node are divided by their sum. The loss is that of the authors' program, as are the defaults
    for cora (their dim is 512). Four things differ. One factor scales all vectors, so that the mean square of their
    entries is one. An edge is removed in both directions at once; the authors drop each direction on its own. An edge's
    weight counts, and a node counts itself with the mean weight of an edge. A graph of more than `nodes_per_step` nodes
    is trained in pieces, each with its own correlations. If a graph has no attributes, each node is its own attribute,
    and new nodes cannot be embedded.
    """

    title = "cca-ssg"
    growth = (
        "time: epochs × (edges + attribute entries + nodes × dim) × dim; memory: edges + (nodes + attributes) × dim"
    )
    paper = (
        "Zhang, Wu, Yan, Wipf, Yu: From canonical correlation analysis to self-supervised graph neural networks, 2021"
    )
    grid = {  # The authors tune both shares and the weight for each graph; these 12 settings cover their results.
        "learning_rate": [], "layers": [1, 2], "attribute_dropout": [0.0, 0.1, 0.3], "decorrelation": [5e-4, 1e-3],
    }  # fmt: skip
    holds = Convolutional.holds | {"cca-ssg weights": Correlation}
    learns = {"weights_": "Correlation: The weights of the convolutions."}

    layers: int = choice("Number of convolutions; the authors use one on citeseer.", default=2, options=(1, 2))
    edge_dropout: float = number("Share of the edges that a view lacks.", default=0.4, least=0, below=1)
    attribute_dropout: float = number("Share of the attributes that a view lacks.", default=0.1, least=0, below=1)
    decorrelation: float = number("Weight λ of the term that makes columns differ.", default=1e-3, least=0)
    epochs: int = shared(
        "epochs", default=50, about="Passes; each is a step on the whole graph, or on each of its pieces."
    )

    def _first_weights(self, rng: np.random.Generator, attributes: int) -> Correlation:
        table = backend.glorot(rng, (attributes, self.dim), self.device)
        second = backend.glorot(rng, (self.dim if self.layers == 2 else 0, self.dim), self.device)
        biases = (backend.zeros(self.dim, self.device) for _ in range(2))
        return Correlation(table, next(biases), second, next(biases))

    def _loss(self, weights: Correlation, piece: Subgraph, rng: np.random.Generator) -> Any:
        shares = (self.edge_dropout, self.attribute_dropout)
        first, second = (forward(weights, piece, draw_view(piece, *shares, rng)) for _ in range(2))
        return correlation_loss(first, second, self.decorrelation)

    def _encode(
        self, weights: Correlation, links: sparse.csr_array, attributes: sparse.csr_array
    ) -> Iterator[np.ndarray]:
        averages = normalised(links)
        first = convolved(averages, attributes @ weights.table, weights.bias)
        if len(weights.second) == 0:
            return first
        hidden = stack(first, links.shape[0], self.dim)
        np.maximum(hidden, 0, out=hidden)
        with one_blas_thread():
            return convolved(averages, hidden @ weights.second, weights.second_bias)


def draw_view(piece: Subgraph, edges: float, attributes: float, rng: np.random.Generator) -> GraphView:
    """Return a random view that lacks these shares of the edges and attributes, each drawn independently."""
    upper = sparse.triu(piece.links, format="coo")
    keep = rng.random(upper.nnz) >= edges
    half = sparse.csr_array((upper.data[keep], (upper.row[keep], upper.col[keep])), shape=upper.shape)
    averages = backend.BothWays(normalised((half + half.T).tocsr()), piece.device, symmetric=True)
    mask = (rng.random((piece.entries.shape[1], 1), np.float32) >= attributes).astype(np.float32)
    return GraphView(averages, backend.import_torch().from_numpy(mask).to(piece.device))


def forward(weights: Correlation, piece: Subgraph, view: GraphView) -> Any:
    """Return the vectors of one view, (nodes, dim)."""
    table = weights.table * view.kept  # A removed attribute has a row of zeros and adds nothing.
    hidden = view.averages @ (piece.attributes @ table) + weights.bias
    if len(weights.second) == 0:
        return hidden
    return view.averages @ (hidden.relu() @ weights.second) + weights.second_bias


def correlation_loss(first: Any, second: Any, decorrelation: float) -> Any:
    """Return how much columns differ between the views, plus λ times how much columns of one view correlate."""
    first, second = standardised(first), standardised(second)
    nodes, one = len(first), backend.import_torch().eye(first.shape[1], device=first.device)
    repeated = [((view.T @ view) / nodes - one).square().sum() for view in (first, second)]
    return -(first * second).sum() / nodes + decorrelation * (repeated[0] + repeated[1])


def standardised(table: Any) -> Any:
    """Return a table with columns scaled to mean zero and variance one."""
    centred = table - table.mean(0)
    variance = centred.square().sum(0) / max(len(table) - 1, 1)
    return centred * (variance + SMALLEST_VARIANCE).rsqrt()
