"""CCA-SSG: a convolution whose two views of a graph agree, column by column, and whose columns do not repeat."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.kernels.threads import one_blas_thread
from neural_brane.methods import descent as backend
from neural_brane.methods.base import stack
from neural_brane.methods.convolution import Convolutional, Piece, convolved, normalised
from neural_brane.methods.parameters import choice, number, shared

SMALLEST_VARIANCE = 1e-12  # added to the variance of a column, so that a constant one does not divide by zero


class Correlation(NamedTuple):
    """The learned weights: one or two convolutions; the second is empty where there is one."""

    table: Any  # (attributes, dim)
    bias: Any  # (1, dim)
    second: Any  # (dim, dim) or (0, dim)
    second_bias: Any  # (1, dim)


class View(NamedTuple):
    """A graph some edges and attributes were taken out of."""

    averages: backend.BothWays
    kept: Any  # (attributes, 1): 1 for those that are there, 0 for the others


class CCASSG(Convolutional):
    """From canonical correlation analysis to self-supervised graph neural networks (Zhang, Wu, Yan, Wipf, Yu; 2021).

    In every step two views of the graph are drawn, each without some edges and some attributes. Two graph convolutions,
    with a ReLU between them, make vectors of both. Their columns are standardised; training wants the same column to
    agree in both views, and different columns of one view not to: −tr(C₁₂) + λ (‖C₁₁ − I‖² + ‖C₂₂ − I‖²), with C the
    correlations of columns. The vectors that come out are made of the whole graph. No pairs of nodes are drawn, and
    nothing has a row and a column for each node.

    Attributes are divided by their sum in each node, and the loss is that of the authors' program, as are the defaults,
    those for cora; dim is theirs with 512. Four things differ. All vectors are multiplied by one number, so that the
    mean square of their entries is one. An edge is taken out in both directions at once, where they drop each on its
    own. An edge's weight counts, and a node counts itself by the mean weight of an edge. A graph of more than
    `nodes_per_step` nodes is learned from in parts, with the correlations of each part. In a graph without any
    attribute each node is its own attribute, and only its own nodes can be embedded. PyTorch works on one CPU thread,
    for the sake of the bits; the last bits of a GPU are not promised.
    """

    title = "cca-ssg"
    growth = (
        "time: epochs × (edges + attribute entries + nodes × dim) × dim; memory: edges + (nodes + attributes) × dim"
    )
    paper = (
        "Zhang, Wu, Yan, Wipf, Yu: From canonical correlation analysis to self-supervised graph neural networks, 2021"
    )
    grid = {  # its authors search both shares, and the weight, by the graph; 12 settings of those they arrive at
        "learning_rate": [], "layers": [1, 2], "attribute_dropout": [0.0, 0.1, 0.3], "decorrelation": [5e-4, 1e-3],
    }  # fmt: skip
    holds = Convolutional.holds | {"cca-ssg weights": Correlation}

    layers: int = choice("Convolutions: its authors take one on citeseer.", default=2, options=(1, 2))
    edge_dropout: float = number("The share of edges that a view lacks.", default=0.4, least=0, below=1)
    attribute_dropout: float = number("The share of attributes that a view lacks.", default=0.1, least=0, below=1)
    decorrelation: float = number("The weight λ of columns that differ.", default=1e-3, least=0)
    epochs: int = shared("epochs", default=50, about="Passes, each a step on the whole graph, or on its parts.")

    def _first_weights(self, rng: np.random.Generator, attributes: int) -> Correlation:
        table = backend.glorot(rng, (attributes, self.dim), self.device)
        second = backend.glorot(rng, (self.dim if self.layers == 2 else 0, self.dim), self.device)
        biases = (backend.zeros(self.dim, self.device) for _ in range(2))
        return Correlation(table, next(biases), second, next(biases))

    def _loss(self, weights: Correlation, piece: Piece, rng: np.random.Generator) -> Any:
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


def draw_view(piece: Piece, edges: float, attributes: float, rng: np.random.Generator) -> View:
    """A view that lacks these shares of edges and attributes, drawn one by one."""
    upper = sparse.triu(piece.links, format="coo")
    there = rng.random(upper.nnz) >= edges
    kept = (upper.data[there], (upper.row[there], upper.col[there]))
    half = sparse.csr_array(kept, shape=upper.shape)
    averages = backend.BothWays(normalised((half + half.T).tocsr()), piece.device, symmetric=True)
    mask = (rng.random((piece.entries.shape[1], 1), np.float32) >= attributes).astype(np.float32)
    return View(averages, backend.import_torch().from_numpy(mask).to(piece.device))


def forward(weights: Correlation, piece: Piece, view: View) -> Any:
    """The vectors of one view, (nodes, dim)."""
    table = weights.table * view.kept  # without a row for an attribute, its column says nothing
    hidden = view.averages @ (piece.attributes @ table) + weights.bias
    if len(weights.second) == 0:
        return hidden
    return view.averages @ (hidden.relu() @ weights.second) + weights.second_bias


def correlation_loss(first: Any, second: Any, decorrelation: float) -> Any:
    """Add how much a column differs between two views and how much columns of one view share."""
    first, second = standardised(first), standardised(second)
    nodes, one = len(first), backend.import_torch().eye(first.shape[1], device=first.device)
    shared_by = [((view.T @ view) / nodes - one).square().sum() for view in (first, second)]
    return -(first * second).sum() / nodes + decorrelation * (shared_by[0] + shared_by[1])


def standardised(table: Any) -> Any:
    """A table with columns of mean zero and variance one."""
    centred = table - table.mean(0)
    variance = centred.square().sum(0) / max(len(table) - 1, 1)
    return centred * (variance + SMALLEST_VARIANCE).rsqrt()
