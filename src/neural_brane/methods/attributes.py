"""Attributes alone, reduced by SVD: the baseline to beat."""

from collections.abc import Sequence

from neural_brane.methods._spectral import Spectral
from neural_brane.progress import Reporter


class Attributes(Spectral):
    """Attributes alone (tf-idf, rows of length one, truncated SVD): the baseline to beat.

    Where the data has fewer than dim directions, the last columns are zero. One scale for all: the mean squared
    length of the vectors is dim.

    Parameters
    ----------
    dim : width of a vector.
    seed : of the randomised solver; the same seed gives the same vectors, bit for bit. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

    Examples
    --------
    >>> from neural_brane import load
    >>> Attributes(dim=16, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "attributes"
    uses = ("attributes",)
    growth = "time: attribute entries × dim + nodes × dim²; memory: attribute entries + nodes × dim"
    paper = "Halko, Martinsson, Tropp: Finding structure with randomness, 2011"

    def __init__(
        self,
        *,
        dim: int = 150,
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _weights(self) -> Sequence[float]:
        return (1.0,)
