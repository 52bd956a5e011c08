"""Attributes alone, reduced by SVD: the baseline to beat."""

from collections.abc import Iterator

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from threadpoolctl import threadpool_limits

from neural_brane.graph import AttributedGraph
from neural_brane.methods.base import Embedder


class Attributes(Embedder):
    """Attributes alone (tf-idf, rows of length one, truncated SVD): the baseline to beat.

    Where the data has fewer than dim directions, the last columns are zero.

    Parameters
    ----------
    dim : width of a vector.
    seed : of the randomised solver; the same seed gives the same vectors.

    Examples
    --------
    >>> from neural_brane import load
    >>> Attributes(dim=16, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "attributes"
    uses = ("attributes",)
    inductive = False
    growth = "time: attribute entries × dim; memory: nodes + attribute entries"
    paper = "Halko, Martinsson, Tropp: Finding structure with randomness, 2011"

    def __init__(self, *, dim: int = 150, seed: int | None = None):
        self.dim = dim
        self.seed = seed

    def _fit(self, graph: AttributedGraph) -> None:
        self.vectors_ = np.zeros((len(graph), self.dim), np.float32)
        directions = min(self.dim, *graph.attributes.shape)
        if directions == 0:
            return
        weighted = TfidfTransformer().fit_transform(graph.attributes)
        svd = TruncatedSVD(directions, random_state=self.seed)
        with threadpool_limits(1, "blas"):  # the sums' order, and so their last bits, would follow the threads
            self.vectors_[:, :directions] = svd.fit_transform(weighted)

    def _blocks(self) -> Iterator[np.ndarray]:
        yield self.vectors_
