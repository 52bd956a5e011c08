"""Attributes averaged over some hops, reduced by SVD."""

from collections.abc import Sequence

from neural_brane.methods.parameters import whole
from neural_brane.methods.spectral import Spectral


class SmoothedAttributes(Spectral):
    """Simplifying graph convolutional networks (Wu, Zhang, de Souza, Fifty, Yu, Weinberger; 2019), without labels.

    tf-idf rows of length one are averaged over a node and its neighbours, `hops` times, and reduced by truncated SVD.
    Good where neighbours are alike; where they are not, averaging washes the attributes out. Where no attribute tells
    nodes apart, each node is its own. The mean squared length of the vectors is dim.

    Examples
    --------
    >>> from neural_brane import load
    >>> SmoothedAttributes(dim=16, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "smoothed-attributes"
    uses = ("links", "attributes")
    growth = "time: (hops × edges + attribute entries) × dim + nodes × dim²; memory: entries + nodes × dim"
    paper = "Wu, Zhang, de Souza, Fifty, Yu, Weinberger: Simplifying graph convolutional networks, 2019"

    hops: int = whole("How many times to average.", default=2, least=0)

    def _weights(self) -> Sequence[float]:
        return (0.0,) * self.hops + (1.0,)
