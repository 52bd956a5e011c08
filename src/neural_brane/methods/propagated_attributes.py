"""Attributes of a node, of its neighbours and of theirs, reduced together by one SVD."""

from collections.abc import Sequence

from neural_brane.methods.parameters import numbers
from neural_brane.methods.spectral import Spectral


class PropagatedAttributes(Spectral):
    """SIGN: scalable inception graph neural networks (Frasca et al., 2020), without labels or layers.

    One truncated SVD of [w₀X, w₁ÂX, w₂Â²X]: a node's own tf-idf attributes beside their averages over one hop and
    over two. A node that is unlike its neighbours keeps what is its own. Where no attribute tells nodes apart, each
    node is its own, and w₀ does not count. The mean squared length of the vectors is dim.

    Examples
    --------
    >>> from neural_brane import load
    >>> PropagatedAttributes(dim=16, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "propagated-attributes"
    uses = ("links", "attributes")
    growth = "time: hops × (edges + attribute entries) × dim + nodes × dim²; memory: entries + nodes × dim"
    paper = "Frasca, Rossi, Eynard, Chamberlain, Bronstein, Monti: SIGN, 2020"

    weights: Sequence[float] = numbers(
        "Weights of the attributes 0, 1, 2, … hops away, one per hop.", default=(1.0, 1.0, 1.0)
    )

    def _weights(self) -> Sequence[float]:
        return self.weights
