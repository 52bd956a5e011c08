"""An inner product of two vectors, taken apart into what one of them was made of."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol, Self

import numpy as np

# The parts of an inner product: they sum to it.
OWN_ATTRIBUTES = "own attributes"  # of the spectral part, that the node has itself
OWN_LINKS = "own links"  # of the spectral part: whom the node is linked to
THEIR_ATTRIBUTES = "neighbours' attributes"  # of the spectral part, that come through a neighbour
THEIR_LINKS = "neighbours' links"
LEARNED_ATTRIBUTES = "learned attributes"  # rows that the learned part pools
LEARNED_NEIGHBOURS = "learned neighbours"
REST = "rest"  # what no attribute and no neighbour brings: means that were subtracted, biases, rounding


class Terms(NamedTuple):
    """What some attributes, or some neighbours, add to inner products with t vectors."""

    rows: np.ndarray  # (k,) distinct, increasing
    values: np.ndarray  # (k, t) float64

    @classmethod
    def sum(cls, several: Iterable[Self], targets: int) -> Self:
        """All of them together; what the same row adds is added up."""
        listed = list(several)
        every = np.concatenate([np.empty(0, np.int64), *(terms.rows for terms in listed)])
        rows, places = np.unique(every, return_inverse=True)
        values = np.zeros((len(rows), targets))
        np.add.at(values, places, np.concatenate([np.empty((0, targets)), *(terms.values for terms in listed)]))
        return cls(rows, values)


class Contributions(NamedTuple):
    """What adds up to the inner products of one node's vector with t others.

    The parts sum to them. An attribute that comes through a neighbour counts to both: to the attribute, as what is
    told, and to the neighbour, as who tells it. So the attributes sum to the parts of attributes, and the neighbours
    to all parts but `own attributes`, `learned attributes` and `rest`.
    """

    attributes: Terms  # every attribute that the vector could have been made of, even if it adds nothing
    neighbours: Terms
    parts: dict[str, np.ndarray]  # (t,) by name

    @classmethod
    def sum(cls, several: Iterable[Self], targets: int) -> Self:
        """Those of several columns of the same vector."""
        listed = list(several)
        parts: dict[str, np.ndarray] = {}
        for one in listed:
            for name, values in one.parts.items():
                parts[name] = parts.get(name, 0) + values
        return cls(
            Terms.sum((one.attributes for one in listed), targets),
            Terms.sum((one.neighbours for one in listed), targets),
            parts,
        )


class Reasons(Protocol):
    """What a model was made of, as far as it takes to explain it."""

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """What adds up to the inner products of a node's vector with targets (t, dim)."""
