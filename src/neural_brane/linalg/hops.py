"""The matrix whose leading directions are the spectral vectors, in parts that are never multiplied out."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError


class Hops(NamedTuple):
    """What the matrix M = [w₀X, w₁ÂX, w₂Â²X, …] is made of: X = [attributes ‖ links], Â averages over neighbours.

    Links are the adjacency A itself between two scalings, and so is Â: none of them is ever formed.
    """

    attributes: sparse.csr_array | None  # weighed; with neither these nor links, X is the identity
    weights: Sequence[float] = (1.0,)
    adjacency: sparse.csr_array | None = None  # A; None where it has no part in M
    links: tuple[np.ndarray, np.ndarray] | None = None  # scales of A's rows and columns
    averages: tuple[np.ndarray, np.ndarray] | None = None  # scale of A's rows, and what stands on Â's diagonal


class HopSource(Protocol):
    """A graph, or the rows of it that are at hand, as what the matrix M is made of."""

    name: str

    @property
    def adjacency(self) -> Any:
        """A as the tables take it."""

    @property
    def linked(self) -> bool:
        """Whether any edge joins two nodes."""

    def bags(self) -> Any:
        """The attributes, weighed by their rarity; None where none of them tells nodes apart."""

    def averages(self) -> tuple[np.ndarray, np.ndarray]:
        """The scale of A's rows, and the diagonal, that make A an average over neighbours."""

    def links(self) -> tuple[np.ndarray, np.ndarray]:
        """The scales of A's rows and columns that make links what `bags` makes of attributes."""


def arrange_hops(source: HopSource, weights: Sequence[float], *, link_weight: float = 0.0) -> Hops:
    """The matrix of a graph; an attribute's weight is its rarity.

    With a `link_weight` the node's links are attributes as well: X has a column for every node, with that weight.
    Where neither these nor a known attribute tells nodes apart, links take their place: X is the identity, and w₀
    counts no longer.
    """
    weights = np.trim_zeros(weights, "b")
    bags = source.bags()
    averages = source.averages() if len(weights) > 1 else None
    links = None
    if link_weight and source.linked:
        rows, columns = source.links()
        links = link_weight * rows, columns
    if bags is None and links is None:
        if averages is None or not source.linked:
            raise GraphError(
                f"graph '{source.name}' has no attribute that tells its nodes apart, and "
                f"{'links are not used' if source.linked else 'no links either'}; give nodes attributes, or choose a "
                "method that uses the links there are"
            )
        weights = (0.0, *weights[1:])
    return Hops(bags, weights, source.adjacency if links or averages else None, links, averages)
