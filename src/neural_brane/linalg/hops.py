"""The matrix whose leading directions are the spectral vectors, in parts that are never multiplied out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse


class Hops(NamedTuple):
    """What the matrix M = [w₀X, w₁ÂX, w₂Â²X, …] is made of: X = [attributes ‖ links], Â averages over neighbours.

    Links are the adjacency A itself between two scalings, and so is Â: none of them is ever formed.
    """

    attributes: sparse.csr_array | None  # weighed; with neither these nor links, X is the identity
    weights: Sequence[float] = (1.0,)
    adjacency: sparse.csr_array | None = None  # A; None where it has no part in M
    links: tuple[np.ndarray, np.ndarray] | None = None  # scales of A's rows and columns
    averages: tuple[np.ndarray, np.ndarray] | None = None  # scale of A's rows, and what stands on Â's diagonal
