"""Linear algebra that several methods share: weighted attributes, averages over neighbours, leading eigenvectors.

On the CPU all of it gives the same bits on any number of threads: every number has one writer, every sum one order,
and BLAS runs on one thread (`neural_brane.blas`).
"""

from neural_brane.linalg.eigenvectors import REPORTS, Operator, leading_eigenvectors, whiten
from neural_brane.linalg.tables import OnCPU, OnTorch, Tables, tables_on
from neural_brane.linalg.threads import by_slabs, map_threads
from neural_brane.linalg.weights import (
    average_scales,
    inverse_frequency,
    link_scales,
    tell_apart,
    transition,
    unit_rows,
    weigh,
    without_self_loops,
)

__all__ = [
    "REPORTS",
    "OnCPU",
    "OnTorch",
    "Operator",
    "Tables",
    "average_scales",
    "by_slabs",
    "inverse_frequency",
    "leading_eigenvectors",
    "link_scales",
    "map_threads",
    "tables_on",
    "tell_apart",
    "transition",
    "unit_rows",
    "weigh",
    "whiten",
    "without_self_loops",
]
