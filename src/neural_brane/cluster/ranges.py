"""Which rank owns which rows: equal cuts of all numbers, the same rule for nodes, attributes and tables."""

import numpy as np


def block_size(count: int, ranks: int) -> int:
    """How many numbers a rank owns, the last ones fewer or none: ⌈count / ranks⌉, as TorchRec cuts a table by rows."""
    return max(-(-count // ranks), 1)


def node_range(count: int, rank: int, ranks: int) -> range:
    """The numbers that a rank owns of 0 … count − 1: of nodes or, by the same rule, of attributes.

    >>> [node_range(7, rank, 4) for rank in range(4)]
    [range(0, 2), range(2, 4), range(4, 6), range(6, 7)]
    >>> len(node_range(3, 3, 4))
    0
    """
    block = block_size(count, ranks)
    return range(min(rank * block, count), min((rank + 1) * block, count))


def owners(numbers: np.ndarray, count: int, ranks: int) -> np.ndarray:
    """The rank that owns each number.

    >>> owners(np.array([0, 6, 3]), 7, 4)
    array([0, 3, 1])
    """
    return numbers // block_size(count, ranks)
