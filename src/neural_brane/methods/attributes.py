"""Attributes of a node, and of those around it, reduced by one SVD: three baselines."""

from collections.abc import Sequence

from neural_brane.methods.parameters import numbers, whole
from neural_brane.methods.spectral import Spectral


class Attributes(Spectral):
    """Attributes alone (tf-idf, rows of length one, truncated SVD): the baseline to beat.

    Where the data has fewer than dim directions, the last columns are zero, with a warning; a graph whose attributes
    tell no nodes apart is refused. The mean squared length of the vectors is dim.
    """

    title = "attributes"
    uses = ("attributes",)
    growth = "time: attribute entries × dim + nodes × dim²; memory: attribute entries + nodes × dim"
    paper = "Halko, Martinsson, Tropp: Finding structure with randomness, 2011"

    def _weights(self) -> Sequence[float]:
        return (1.0,)


class SmoothedAttributes(Spectral):
    """Simplifying graph convolutional networks (Wu, Zhang, de Souza, Fifty, Yu, Weinberger; 2019), without labels.

    tf-idf rows of length one are averaged over a node and its neighbours, `hops` times, and reduced by truncated SVD.
    Good where neighbours are alike; where they are not, averaging washes the attributes out. Where no attribute tells
    nodes apart, each node is its own. The mean squared length of the vectors is dim.
    """

    title = "smoothed-attributes"
    growth = "time: (hops × edges + attribute entries) × dim + nodes × dim²; memory: entries + nodes × dim"
    paper = "Wu, Zhang, de Souza, Fifty, Yu, Weinberger: Simplifying graph convolutional networks, 2019"

    hops: int = whole("How many times to average.", default=2, least=0)

    def _weights(self) -> Sequence[float]:
        return (0.0,) * self.hops + (1.0,)


class PropagatedAttributes(Spectral):
    """SIGN: scalable inception graph neural networks (Frasca et al., 2020), without labels or layers.

    One truncated SVD of [w₀X, w₁ÂX, w₂Â²X]: a node's own tf-idf attributes beside their averages over one hop and
    over two. A node that is unlike its neighbours keeps what is its own. Where no attribute tells nodes apart, each
    node is its own, and w₀ does not count. The mean squared length of the vectors is dim.
    """

    title = "propagated-attributes"
    growth = "time: hops × (edges + attribute entries) × dim + nodes × dim²; memory: entries + nodes × dim"
    paper = "Frasca, Rossi, Eynard, Chamberlain, Bronstein, Monti: SIGN, 2020"

    weights: Sequence[float] = numbers(
        "Weights of the attributes 0, 1, 2, … hops away, one per hop.", default=(1.0, 1.0, 1.0)
    )

    def _weights(self) -> Sequence[float]:
        return self.weights
