"""Attributes averaged over some hops, reduced by SVD."""

from collections.abc import Sequence

from neural_brane.methods._spectral import Spectral
from neural_brane.methods.base import require
from neural_brane.progress import Reporter


class SmoothedAttributes(Spectral):
    """Simplifying graph convolutional networks (Wu, Zhang, de Souza, Fifty, Yu, Weinberger; 2019), without labels.

    tf-idf rows of length one are averaged over a node and its neighbours, `hops` times, and reduced by truncated SVD.
    Good where neighbours are alike; where they are not, averaging washes the attributes out. The mean squared length
    of the vectors is dim.

    Parameters
    ----------
    dim : width of a vector.
    hops : how many times to average.
    seed : of the randomised solver; the same seed gives the same vectors, bit for bit. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

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

    def __init__(
        self,
        *,
        dim: int = 150,
        hops: int = 2,
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.hops = hops
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _check(self) -> None:
        require(isinstance(self.hops, int) and self.hops >= 0, "hops", self.hops, "a whole number from 0")

    def _weights(self) -> Sequence[float]:
        return (0.0,) * self.hops + (1.0,)
