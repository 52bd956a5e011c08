"""Attributes alone, reduced by SVD: the baseline to beat."""

from collections.abc import Sequence

from neural_brane.methods.spectral import Spectral


class Attributes(Spectral):
    """Attributes alone (tf-idf, rows of length one, truncated SVD): the baseline to beat.

    Where the data has fewer than dim directions, the last columns are zero, with a warning; a graph whose attributes
    tell no nodes apart is refused. The mean squared length of the vectors is dim.

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

    def _weights(self) -> Sequence[float]:
        return (1.0,)
