"""Attributes and links as weighted sparse matrices."""

import numpy as np
from scipy import sparse


def inverse_frequency(attributes: sparse.csr_array) -> np.ndarray:
    """The weight ln((1 + nodes) / (1 + nodes that have it)) + 1 of each attribute."""
    nodes, width = attributes.shape
    return rarity(np.bincount(attributes.indices, minlength=width), nodes)


def rarity(holders: np.ndarray, nodes: int) -> np.ndarray:
    """The weight of attributes that so many of the nodes have."""
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


def link_scales(adjacency: sparse.csr_array, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The scales of rows and columns that make A what `weigh` makes of it, with the neighbours as attributes.

    weights: of the columns, where the matrix has some rows of A only; else they follow from A.
    """
    weights = inverse_frequency(adjacency) if weights is None else weights
    parts = (np.square(adjacency.data, dtype=np.float64), adjacency.indices, adjacency.indptr)
    lengths = np.sqrt(sparse.csr_array(parts, shape=adjacency.shape) @ np.square(weights))
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0), weights


def average_scales(adjacency: sparse.csr_array, weight: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The scale of rows D⁻¹ and the diagonal wD⁻¹ of Â = D⁻¹(A + wI), w the mean weight of an edge.

    Â averages over a node and its neighbours: its rows sum to one. A node without neighbours is its own average.
    weight: w, where the matrix has some rows of A only; else it follows from A.
    """
    if weight is None:
        weight = adjacency.data.mean(dtype=np.float64) if adjacency.nnz else 1.0
    degrees = adjacency @ np.ones(adjacency.shape[1]) + weight
    return 1 / degrees, weight / degrees


def transition(adjacency: sparse.csr_array) -> sparse.csr_array:
    """The matrix D⁻¹A of a random walk's steps: rows sum to one, and that of a node without neighbours is empty."""
    matrix = adjacency.astype(np.float64)
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
