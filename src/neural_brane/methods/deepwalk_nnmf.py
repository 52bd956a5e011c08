"""DeepWalk beside NNMF: links learned by walks, and links and attributes by parts."""

from typing import Any

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.methods._factorisation import Factorisation
from neural_brane.methods.base import require
from neural_brane.methods.deepwalk import DeepWalk
from neural_brane.methods.nnmf import NNMF
from neural_brane.progress import Progress, Reporter


class DeepWalkNNMF(Factorisation):
    """DeepWalk (Perozzi, Al-Rfou, Skiena; 2014) beside NNMF (Lee, Seung; 2001), concatenated as they are.

    Each has half the width; an odd dim gives NNMF one number more.

    Parameters
    ----------
    dim : width of a vector.
    walks_per_node, walk_length, window, negatives, learning_rate, epochs : of `DeepWalk`.
    nnmf_epochs : how many times NNMF's factors are updated.
    seed : the same seed gives the same vectors, bit for bit, on any number of threads. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

    Examples
    --------
    >>> from neural_brane import load
    >>> method = DeepWalkNNMF(dim=16, walks_per_node=1, nnmf_epochs=20, seed=0)
    >>> method.fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "deepwalk+nnmf"
    uses = ("links", "attributes")
    inductive = False
    growth = "time: that of deepwalk and that of nnmf; memory: edges + attribute entries + nodes × dim"
    paper = "Perozzi, Al-Rfou, Skiena: DeepWalk, 2014; Lee, Seung: Non-negative matrix factorization, 2001"

    def __init__(
        self,
        *,
        dim: int = 150,
        walks_per_node: int = 10,
        walk_length: int = 80,
        window: int = 10,
        negatives: int = 5,
        learning_rate: float = 0.025,
        epochs: int = 1,
        nnmf_epochs: int = 200,
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.walks_per_node = walks_per_node
        self.walk_length = walk_length
        self.window = window
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.nnmf_epochs = nnmf_epochs
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _check(self) -> None:
        require(self.dim >= 2, "dim", self.dim, "2 or more, a number for each of the two methods")
        expected = "a whole number from 1"
        require(isinstance(self.nnmf_epochs, int) and self.nnmf_epochs >= 1, "nnmf_epochs", self.nnmf_epochs, expected)

    def _factorise(self, graph: AttributedGraph) -> np.ndarray:
        half = self.dim // 2
        run: dict[str, Any] = {"seed": self.seed_, "threads": self.threads}
        names = ("walks_per_node", "walk_length", "window", "negatives", "learning_rate", "epochs")
        walks = {name: getattr(self, name) for name in names}
        parts = (
            DeepWalk(dim=half, progress=self._part(1), **walks, **run),
            NNMF(dim=self.dim - half, epochs=self.nnmf_epochs, progress=self._part(2), **run),
        )
        return np.hstack([part.fit_transform(graph).vectors for part in parts])

    def _part(self, part: int) -> Reporter | None:
        """Progress of one of the two methods as that of the whole, in percent."""
        if self.progress is None:
            return None
        report = self.progress

        def pass_on(own: Progress) -> None:
            share = 50 / own.total
            done = 50 * (part - 1) + int(share * own.done)
            report(Progress(part, 2, done, 100, own.loss, share * own.rate, "percent"))

        return pass_on
