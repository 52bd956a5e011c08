"""Share the base class of methods that solve for all vectors at once."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.methods.base import VECTORS, Embedder
from neural_brane.methods.parameters import shared


class Factorisation(Embedder):
    """A method that factorises matrices, usually in double precision; its vectors are factors."""

    learns = VECTORS
    prolongs: ClassVar[tuple[str, ...]] = ("epochs",)
    why_not = "it solves for the vectors of all nodes at once"
    small = {"epochs": 2}

    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def _learn(self, graph: AttributedGraph, seed: int) -> Any:
        with one_blas_thread():
            factors = self._factorise(graph, seed)
        return factors._replace(vectors=factors.vectors.astype(np.float32, copy=False))

    @abstractmethod
    def _factorise(self, graph: AttributedGraph, seed: int) -> Any:
        """Return a named tuple with the vectors (nodes, dim) and the other factors."""
