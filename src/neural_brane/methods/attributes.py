"""Reduce the attributes of nodes and of their neighbours by one SVD: three baselines."""

from collections.abc import Sequence

from neural_brane.methods.parameters import numbers, whole
from neural_brane.methods.spectral import Spectral


class Attributes(Spectral):
    """Reduce the attributes alone by truncated SVD: the baseline to beat.

    Attributes are weighted by tf-idf, and each row is scaled to length one. It is good if attributes say enough; links
    are ignored. If the data has fewer than dim directions, the last columns are zero, and a warning says so. A graph
    whose attributes distinguish no nodes raises an error. The mean squared length of the vectors is dim. The SVD is
    randomised (Halko, Martinsson, Tropp: Finding structure with randomness; 2011).
    """

    title = "attributes"
    uses = ("attributes",)
    growth = "time: attribute entries × dim + nodes × dim²; memory: attribute entries + nodes × dim"
    paper = "Halko, Martinsson, Tropp: Finding structure with randomness, 2011"

    def _weights(self) -> Sequence[float]:
        return (1.0,)


class SmoothedAttributes(Spectral):
    """Average attributes over neighbours, then reduce them by truncated SVD.

    Simplifying graph convolutional networks (Wu, Zhang, de Souza, Fifty, Yu, Weinberger; 2019), without labels.
    Attributes are weighted by tf-idf, and each row is scaled to length one. The rows are averaged over a node and its
    neighbours, `hops` times. It is good if neighbours are similar; if they are not, averaging blurs the attributes. If
    no attribute distinguishes nodes, each node is its own attribute. The mean squared length of the vectors is dim.
    """

    title = "smoothed-attributes"
    growth = "time: (hops × edges + attribute entries) × dim + nodes × dim²; memory: entries + nodes × dim"
    paper = "Wu, Zhang, de Souza, Fifty, Yu, Weinberger: Simplifying graph convolutional networks, 2019"

    hops: int = whole("Number of times to average.", default=2, least=0)

    def _weights(self) -> Sequence[float]:
        return (0.0,) * self.hops + (1.0,)


class PropagatedAttributes(Spectral):
    """Reduce a node's own attributes and their averages over neighbours together, by one truncated SVD.

    SIGN: scalable inception graph neural networks (Frasca, Rossi, Eynard, Chamberlain, Bronstein, Monti; 2020), without
    labels or layers. The SVD is that of [w₀X, w₁ÂX, w₂Â²X]: tf-idf attributes X, and their averages over one and two
    hops. It is good even if some nodes differ from their neighbours, because X itself is included. If no attribute
    distinguishes nodes, each node is its own attribute, and w₀ has no effect. The mean squared length of the vectors is
    dim.
    """

    title = "propagated-attributes"
    growth = "time: hops × (edges + attribute entries) × dim + nodes × dim²; memory: entries + nodes × dim"
    paper = "Frasca, Rossi, Eynard, Chamberlain, Bronstein, Monti: SIGN, 2020"

    weights: Sequence[float] = numbers(
        "Weights of the attributes 0, 1, 2, … hops away, one per hop.", default=(1.0, 1.0, 1.0)
    )

    def _weights(self) -> Sequence[float]:
        return self.weights
