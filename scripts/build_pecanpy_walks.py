"""Draw walks with PecanPy, which the tests compare with our walks.

    python scripts/build_pecanpy_walks.py [--output FILE]

PecanPy 2 needs NumPy below 2, so the tests cannot install it and read its walks from a file instead. The file
contains walks on the packaged graph `stdlib`, of first order (p = q = 1) and of second order (p = 0.25, q = 4). Each
walk is a row of node numbers; -1 fills the row if the walk ends early.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from pecanpy.pecanpy import SparseOTF

from neural_brane import AttributedGraph, load
from neural_brane.files.storage import atomic

OUTPUT = Path(__file__).parent.parent / "tests" / "methods" / "data" / "pecanpy_walks.npz"
ORDERS = {"first": (1.0, 1.0), "second": (0.25, 4.0)}
WALKS_PER_NODE, LENGTH = 4, 40


def draw(graph: AttributedGraph, p: float, q: float) -> np.ndarray:
    """Return PecanPy's walks, (nodes × WALKS_PER_NODE, LENGTH) int16."""
    matrix = graph.adjacency
    model = SparseOTF(p=p, q=q, workers=1, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.npz")
        ids = np.arange(len(graph)).astype(str)
        np.savez(path, IDs=ids, data=matrix.data, indptr=matrix.indptr, indices=matrix.indices)
        model.read_npz(str(path), weighted=True)
    walks = np.full((len(graph) * WALKS_PER_NODE, LENGTH), -1, np.int16)
    for row, walk in zip(walks, model.simulate_walks(WALKS_PER_NODE, LENGTH - 1), strict=True):
        row[: len(walk)] = [int(node) for node in walk]
    return walks


def main() -> None:
    """Draw walks of both orders and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    graph = load("stdlib")
    walks: Any = {order: draw(graph, p, q) for order, (p, q) in ORDERS.items()}
    with atomic(options.output) as draft:
        np.savez_compressed(draft, **walks)


if __name__ == "__main__":
    main()
