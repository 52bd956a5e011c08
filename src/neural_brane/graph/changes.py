"""What has become of a graph: its nodes matched by id, its attributes by name, and what changed around each node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.attributed import AttributedGraph
from neural_brane.graph.ids import locate


@dataclass(frozen=True)
class Changes:
    """A graph before and after nodes, links and attributes were added or removed.

    Parameters
    ----------
    before, after
        The two graphs.
    nodes
        Of every node after, its place among those before; −1 for a new one.
    attributes
        The same for attributes.
    """

    before: AttributedGraph
    after: AttributedGraph
    nodes: np.ndarray
    attributes: np.ndarray

    @cached_property
    def new(self) -> np.ndarray:
        """Whether each node after is new."""
        return self.nodes < 0

    @cached_property
    def touched(self) -> np.ndarray:
        """Whether each node after is new, or has other attributes or other links than before."""
        return (
            self.new
            | _differ(self.before.attributes, self.after.attributes, self.nodes, self.attributes)
            | _differ(self.before.adjacency, self.after.adjacency, self.nodes, self.nodes)
        )


def find_changes(before: AttributedGraph, after: AttributedGraph) -> Changes:
    """Match the nodes and attributes of two graphs; refuse two that have no node in common."""
    changes = Changes(
        before, after, locate(before.ids, after.ids), locate(before.attribute_names, after.attribute_names)
    )
    if changes.new.all():
        raise GraphError(
            f"no node of graph '{after.name}' (such as {after.ids[0].item()!r}) is among the {len(before):,} learned "
            f"from (such as {before.ids[0].item()!r}), so there is nothing to go on from; give the changed graph with "
            "the ids it had before, or learn anew with fit(graph)"
        )
    return changes


def carry(table: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The rows of a table at these places, as a copy; a row of zeros where there is none."""
    if len(table) == 0:
        return np.zeros((len(places), *table.shape[1:]), table.dtype)
    rows: np.ndarray = table[places]
    rows[places < 0] = 0
    return rows


def _differ(before: sparse.csr_array, after: sparse.csr_array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Whether each row after has other entries than the row before that it is matched with.

    Rows are compared by a sum over their entries, in which every column has a random weight: nothing is sorted.
    """
    weights = np.random.default_rng(0).random(before.shape[1])
    matched = np.full(len(columns), np.inf)  # a new column differs from all
    matched[columns >= 0] = weights[columns[columns >= 0]]
    sums_before, sums_after = _row_sums(before, weights), _row_sums(after, matched)
    known = rows >= 0
    differ = np.zeros(len(rows), bool)
    differ[known] = ~np.isclose(sums_after[known], sums_before[rows[known]], rtol=1e-9, atol=0)
    return differ


def _row_sums(matrix: sparse.csr_array, weights: np.ndarray) -> np.ndarray:
    """The sum of each row's entries times the weights of their columns."""
    sums: np.ndarray = matrix.astype(np.float64) @ weights
    return sums
