"""Contributions to the learned part of a vector: the rows that pooling took its numbers from."""

from typing import NamedTuple

import numpy as np

from neural_brane.kernels.model import MAX, MEAN, Bags, Model, Settings
from neural_brane.kernels.reference import pool
from neural_brane.reasons.contributions import (
    LEARNED_ATTRIBUTES,
    LEARNED_NEIGHBOURS,
    REST,
    Contributions,
    Terms,
)


class PooledReasons(NamedTuple):
    """A learned part y = scale · (f − centre), f pooled from a node's attributes and from its neighbours.

    With max pooling a coordinate is its winner's: the one row it was taken from. With sum or mean pooling it is shared
    by all rows, each with what it adds, and the centre by all equally. A coordinate for which nothing was pooled, and
    what a layer's bias adds, is nobody's: the rest.
    """

    model: Model
    bags: tuple[Bags, Bags]  # of attributes and of neighbours
    settings: Settings
    output: str  # pooled, hidden or released
    centre: np.ndarray
    scale: float

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """What adds up to the inner products of a node's learned part with targets (t, width)."""
        asked, centre, rest = self._before_output(row, float(self.scale) * targets.astype(np.float64))
        d1 = self.settings.attribute_dim
        width = self.model.weight.shape[1]
        table, others = self.model.attribute_table[:, :d1], self.model.neighbour_table[:, : width - d1]
        attributes, left = self._terms(self.bags[0], table, row, asked[:, :d1], centre[:d1])
        neighbours, left_too = self._terms(self.bags[1], others, row, asked[:, d1:], centre[d1:])
        parts = {
            LEARNED_ATTRIBUTES: attributes.values.sum(axis=0),
            LEARNED_NEIGHBOURS: neighbours.values.sum(axis=0),
            REST: rest + left + left_too,
        }
        return Contributions(attributes, neighbours, parts)

    def _before_output(self, row: int, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What each pooled number counts for the targets (t, d1 + d2), what is subtracted from it, and the rest."""
        d1, weight = self.settings.attribute_dim, self.model.weight.astype(np.float64)
        if self.output == "pooled":
            return targets, self.centre.astype(np.float64), np.zeros(len(targets))
        if self.output == "hidden":
            active = weight @ self._pool(row) + self.model.bias > 0
            rest = targets @ (np.where(active, self.model.bias, 0) - self.centre)
            return targets[:, active] @ weight[active], np.zeros(weight.shape[1]), rest
        own = weight.shape[1] - d1  # released: a row of the node's own, which no neighbour gives, then attributes
        rest = targets[:, :own] @ (self.model.neighbour_table[row, :own] - self.centre[:own])
        cut = self._pool(row)[:d1] <= 0  # such numbers are zero in the vector, whatever was pooled
        rest -= targets[:, own:][:, cut] @ self.centre[own:][cut]
        asked = np.hstack([np.where(cut, 0, targets[:, own:]), np.zeros((len(targets), own))])
        return asked, np.append(self.centre[own:], np.zeros(own)), rest

    def _pool(self, row: int) -> np.ndarray:
        d1, width = self.settings.attribute_dim, self.model.weight.shape[1]
        tables = self.model.attribute_table[:, :d1], self.model.neighbour_table[:, : width - d1]
        node, how = np.array([row]), (self.settings.pooling, self.settings.zero_floor)
        return np.hstack(
            [pool(bags, table, node, *how)[0][0] for bags, table in zip(self.bags, tables, strict=True)]
        ).astype(np.float64)

    def _terms(
        self, bags: Bags, table: np.ndarray, row: int, asked: np.ndarray, centre: np.ndarray
    ) -> tuple[Terms, np.ndarray]:
        """What each row of a node's bag adds, asked (t, d) being what a number counts, and what nobody does."""
        rows = bags.indices[bags.indptr[row] : bags.indptr[row + 1]].astype(np.int64)
        if self.settings.pooling != MAX:
            share = 1 / len(rows) if len(rows) else 0.0
            entries = table[rows].astype(np.float64)
            if self.settings.pooling == MEAN:
                entries = entries * share
            left = np.zeros(len(asked)) if len(rows) else -asked @ centre
            return Terms(rows, (entries - share * centre) @ asked.T), left
        pooled, winner = (found[0] for found in pool(bags, table, np.array([row]), MAX, self.settings.zero_floor))
        values, won = np.zeros((len(rows), len(asked))), winner >= 0
        added = (asked * (pooled - centre)).T  # (d, t)
        np.add.at(values, np.searchsorted(rows, winner[won]), added[won])
        return Terms(rows, values), added[~won].sum(axis=0)
