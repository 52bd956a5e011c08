"""Attributes of a node, of its neighbours and of theirs, reduced together by one SVD."""

from collections.abc import Sequence

import numpy as np

from neural_brane.methods._spectral import Spectral
from neural_brane.methods.base import require
from neural_brane.progress import Reporter


class PropagatedAttributes(Spectral):
    """SIGN: scalable inception graph neural networks (Frasca et al., 2020), without labels or layers.

    One truncated SVD of [w₀X, w₁ÂX, w₂Â²X]: a node's own tf-idf attributes beside their averages over one hop and
    over two. A node that is unlike its neighbours keeps what is its own. The mean squared length of the vectors is
    dim.

    Parameters
    ----------
    dim : width of a vector.
    weights : of the attributes 0, 1, 2, … hops away; as many hops as there are numbers.
    seed : of the randomised solver; the same seed gives the same vectors, bit for bit. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

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

    def __init__(
        self,
        *,
        dim: int = 150,
        weights: Sequence[float] = (1.0, 1.0, 1.0),
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.weights = weights
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _check(self) -> None:
        sound = len(self.weights) > 0 and all(0 <= weight < np.inf for weight in self.weights)
        require(sound and any(self.weights), "weights", self.weights, "numbers from 0, one per hop, not all 0")

    def _weights(self) -> Sequence[float]:
        return tuple(self.weights)
