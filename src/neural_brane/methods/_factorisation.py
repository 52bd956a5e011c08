"""What the methods share that solve for all vectors at once, by linear algebra."""

import secrets
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.linalg import one_order
from neural_brane.methods.base import Embedder, require
from neural_brane.progress import Reporter


class Factorisation(Embedder):
    """A method whose vectors are factors of matrices: written down whole, in `vectors_`."""

    seed: int | None
    threads: int | None
    progress: Reporter | None

    def _fit(self, graph: AttributedGraph) -> None:
        whole = isinstance(self.seed, int | np.integer) and 0 <= self.seed < 2**63
        require(self.seed is None or whole, "seed", self.seed, "a whole number from 0, or None")
        whole = isinstance(self.threads, int) and self.threads >= 1
        require(self.threads is None or whole, "threads", self.threads, "a whole number from 1, or None for all")
        self._check()
        self.seed_ = secrets.randbits(63) if self.seed is None else int(self.seed)
        with one_order():
            self.vectors_ = self._factorise(graph).astype(np.float32)

    def _check(self) -> None:
        """Refuse parameters that make no sense; those that all these methods have are checked already."""

    @abstractmethod
    def _factorise(self, graph: AttributedGraph) -> np.ndarray:
        """The vectors (nodes, dim)."""

    def _blocks(self) -> Iterator[np.ndarray]:
        yield self.vectors_
