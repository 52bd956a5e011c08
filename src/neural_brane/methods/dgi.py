"""Deep graph infomax: train a graph convolution to distinguish the graph from one with shuffled attributes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.methods import descent as backend
from neural_brane.methods.convolution import Convolutional, Subgraph, convolved, normalised
from neural_brane.methods.parameters import shared, whole

FIRST_SLOPE = 0.25  # initial slope of the PReLU, as in PyTorch


class Infomax(NamedTuple):
    """The learned weights of the convolution, and of the score of a vector and the summary of the graph."""

    table: Any  # (attributes, dim)
    bias: Any  # (1, dim)
    slope: Any  # (1, 1): slope of the PReLU below zero
    score: Any  # (dim, dim)


class DGI(Convolutional):
    """Train a graph convolution to distinguish the nodes from nodes with shuffled attributes.

    Deep graph infomax (Veličković, Fedus, Hamilton, Liò, Bengio, Hjelm; 2019) is good if neighbours share a class, and
    it embeds new nodes. A graph convolution with a PReLU turns the attributes of a node and its neighbours into a
    vector. The sigmoid of the mean vector is the summary of the graph. Training raises a bilinear score of vector and
    summary for the real nodes, and lowers it for nodes with shuffled attributes. It stops `patience` epochs after the
    lowest loss and keeps the weights of that epoch.

    The attributes of each node are divided by their sum, as in the authors' program. Five things differ from it. The
    score has no bias. One factor scales all vectors, so that the mean square of their entries is one. An edge's weight
    counts, and a node counts itself with the mean weight of an edge. A graph of more than `nodes_per_step` nodes is
    trained in pieces, each with its own summary; the paper samples neighbourhoods. There are at most 300 epochs, not
    10,000; with the paper's dim of 512, training on cora and citeseer stops earlier. If a graph has no attributes, each
    node is its own attribute, and new nodes cannot be embedded.
    """

    title = "dgi"
    growth = (
        "time: epochs × (edges + attribute entries + nodes × dim) × dim; memory: edges + (nodes + attributes) × dim"
    )
    paper = "Veličković, Fedus, Hamilton, Liò, Bengio, Hjelm: Deep graph infomax, 2019"
    grid = {"learning_rate": [1e-4, 5e-4, 1e-3], "patience": [20, 50]}  # the authors use 1e-3, others less
    holds = Convolutional.holds | {"dgi weights": Infomax}
    learns = {"weights_": "Infomax: The weights of the convolution and of the score."}

    patience: int = whole("Training stops after this many epochs without a lower loss.", default=20)
    epochs: int = shared(
        "epochs", default=300, about="Most passes; each is a step on the whole graph, or on each of its pieces."
    )

    def _first_weights(self, rng: np.random.Generator, attributes: int) -> Infomax:
        table = backend.glorot(rng, (attributes, self.dim), self.device)
        score = backend.glorot(rng, (self.dim, self.dim), self.device)
        slope = backend.import_torch().full((1, 1), FIRST_SLOPE, device=self.device, requires_grad=True)
        return Infomax(table, backend.zeros(self.dim, self.device), slope, score)

    def _patience(self) -> int:
        return self.patience

    def _loss(self, weights: Infomax, piece: Subgraph, rng: np.random.Generator) -> Any:
        return infomax_loss(weights, piece, rng.permutation(len(piece)))

    def _encode(self, weights: Infomax, links: sparse.csr_array, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        for block in convolved(normalised(links), attributes @ weights.table, weights.bias):
            yield np.where(block > 0, block, weights.slope * block)


def infomax_loss(weights: Infomax, piece: Subgraph, shuffled: np.ndarray) -> Any:
    """Return the mean cross-entropy of distinguishing nodes from nodes with the attributes of `shuffled` nodes."""
    torch = backend.import_torch()
    own = piece.attributes @ weights.table
    other = own.index_select(0, torch.from_numpy(shuffled).to(own.device))  # shuffled attributes
    prelu, softplus = torch.nn.functional.prelu, torch.nn.functional.softplus
    true, false = (prelu(piece.averages @ rows + weights.bias, weights.slope.reshape(1)) for rows in (own, other))
    direction = weights.score @ true.mean(0).sigmoid()
    return (softplus(-(true @ direction)).mean() + softplus(false @ direction).mean()) / 2
