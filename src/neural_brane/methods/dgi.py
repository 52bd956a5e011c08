"""Deep graph infomax: a convolution that tells nodes as they are from nodes with the attributes of others."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.methods import descent as backend
from neural_brane.methods.convolution import Convolutional, Piece, convolved, normalised
from neural_brane.methods.parameters import shared, whole

FIRST_SLOPE = 0.25  # the PReLU's first slope, as in PyTorch


class Infomax(NamedTuple):
    """The learned weights: the convolution, and the score of a node's vector beside the summary of all."""

    table: Any  # (attributes, dim)
    bias: Any  # (1, dim)
    slope: Any  # (1, 1), of the PReLU below zero
    score: Any  # (dim, dim)


class DGI(Convolutional):
    """Deep graph infomax (Veličković, Fedus, Hamilton, Liò, Bengio, Hjelm; 2019): unsupervised, inductive.

    A graph convolution with a PReLU makes a vector of the attributes of a node and its neighbours. The sigmoid of the
    mean vector is the summary of the graph. Training wants a bilinear score of vector and summary to be high for the
    nodes as they are, and low for nodes that the attributes of others were shuffled to. It ends `patience` epochs after
    the lowest loss, with the weights of that epoch.

    Attributes are divided by their sum in each node, as in the authors' program. Five things differ from it. The score
    has no bias. All vectors are multiplied by one number, so that the mean square of their entries is one. An edge's
    weight counts, and a node counts itself by the mean weight of an edge. A graph of more than `nodes_per_step` nodes
    is learned from in parts, each with a summary of its own, where the paper samples neighbourhoods. There are at most
    300 epochs in place of 10,000; with the paper's dim of 512, training on cora and citeseer ends before. In a graph
    without any attribute each node is its own attribute, and only its own nodes can be embedded. PyTorch works on one
    CPU thread, for the sake of the bits; the last bits of a GPU are not promised.
    """

    title = "dgi"
    growth = (
        "time: epochs × (edges + attribute entries + nodes × dim) × dim; memory: edges + (nodes + attributes) × dim"
    )
    paper = "Veličković, Fedus, Hamilton, Liò, Bengio, Hjelm: Deep graph infomax, 2019"
    grid = {"learning_rate": [1e-4, 5e-4, 1e-3], "patience": [20, 50]}  # its authors' program has 1e-3, others less
    holds = Convolutional.holds | {"dgi weights": Infomax}

    patience: int = whole("Epochs without a lower loss after which training ends.", default=20)
    epochs: int = shared(
        "epochs", default=300, about="Passes at most: each a step on the whole graph, or on its parts."
    )

    def _first_weights(self, rng: np.random.Generator, attributes: int) -> Infomax:
        table = backend.glorot(rng, (attributes, self.dim), self.device)
        score = backend.glorot(rng, (self.dim, self.dim), self.device)
        slope = backend.import_torch().full((1, 1), FIRST_SLOPE, device=self.device, requires_grad=True)
        return Infomax(table, backend.zeros(self.dim, self.device), slope, score)

    def _patience(self) -> int:
        return self.patience

    def _loss(self, weights: Infomax, piece: Piece, rng: np.random.Generator) -> Any:
        return infomax_loss(weights, piece, rng.permutation(len(piece)))

    def _encode(self, weights: Infomax, links: sparse.csr_array, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        for block in convolved(normalised(links), attributes @ weights.table, weights.bias):
            yield np.where(block > 0, block, weights.slope * block)


def infomax_loss(weights: Infomax, piece: Piece, shuffled: np.ndarray) -> Any:
    """The mean cross-entropy of telling nodes as they are from those that have the attributes of `shuffled` ones."""
    torch = backend.import_torch()
    own = piece.attributes @ weights.table
    other = own.index_select(0, torch.from_numpy(shuffled).to(own.device))  # shuffled attributes, convolved alike
    true, false = (_activated(weights, piece.averages @ rows) for rows in (own, other))
    direction = weights.score @ true.mean(0).sigmoid()
    softplus = torch.nn.functional.softplus
    return (softplus(-(true @ direction)).mean() + softplus(false @ direction).mean()) / 2


def _activated(weights: Infomax, averaged: Any) -> Any:
    return backend.import_torch().nn.functional.prelu(averaged + weights.bias, weights.slope.reshape(1))
