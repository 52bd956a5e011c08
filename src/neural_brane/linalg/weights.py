"""Attributes and links as weighted sparse matrices."""

import numpy as np
from scipy import sparse


def inverse_frequency(attributes: sparse.csr_array) -> np.ndarray:
    """The weight ln((1 + nodes) / (1 + nodes that have it)) + 1 of each attribute."""
    nodes, width = attributes.shape
    holders = np.bincount(attributes.indices, minlength=width)
    return np.log((1 + nodes) / (1 + holders)) + 1


def tell_apart(attributes: sparse.csr_array) -> bool:
    """Whether some attribute tells nodes apart: not all of them have it in the same amount."""
    nodes, width = attributes.shape
    holders = np.bincount(attributes.indices, minlength=width)
    everywhere = np.flatnonzero(holders == nodes)
    if np.count_nonzero(holders) > len(everywhere):
        return True
    amounts = attributes[:, everywhere].toarray()  # every entry is there, so this is no larger than what was given
    return bool((amounts != amounts[:1]).any())


def weigh(attributes: sparse.csr_array, weights: np.ndarray) -> sparse.csr_array:
    """Attributes times their weights, with each row then scaled to length one; an empty row stays empty."""
    matrix = attributes.astype(np.float64)
    matrix.data *= weights[matrix.indices]
    return _divide_rows(matrix, np.sqrt(matrix.power(2).sum(axis=1)))


def transition(adjacency: sparse.csr_array, *, self_loops: bool = False) -> sparse.csr_array:
    """The matrix of a random walk's steps: D⁻¹A or, with self-loops, D̃⁻¹(A + wI), w the mean weight of an edge.

    Rows sum to one. A node without neighbours has an empty row or, with self-loops, a step to itself.
    """
    matrix = adjacency.astype(np.float64)
    if self_loops:
        weight = matrix.data.mean() if matrix.nnz else 1.0
        matrix = (matrix + sparse.diags_array(np.full(matrix.shape[0], weight))).tocsr()
    return _divide_rows(matrix, matrix.sum(axis=1))


def without_self_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """The adjacency matrix without its diagonal."""
    entries = adjacency.tocoo()
    proper = entries.row != entries.col
    kept = (entries.data[proper], (entries.row[proper], entries.col[proper]))
    return sparse.csr_array(kept, shape=adjacency.shape)


def unit_rows(table: np.ndarray) -> np.ndarray:
    """The table with its rows scaled to length one; a row of zeros stays."""
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(lengths > 0, lengths, 1)


def _divide_rows(matrix: sparse.csr_array, by: np.ndarray) -> sparse.csr_array:
    matrix.data /= np.repeat(by, np.diff(matrix.indptr))  # an empty row repeats its zero no times
    return matrix
