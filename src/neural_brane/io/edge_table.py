"""Edges from a table file: which columns, and their ids as positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np

from neural_brane.graph.edge_columns import edge_columns
from neural_brane.io.compressed import Unpacked
from neural_brane.io.frames import TableReader, read_frame

WHAT = "table of edges"
LARGE = 1 << 25  # bytes from which compiled code is faster than it takes to load
PACKED = 4  # a compressed file counts as this many times its size


class EdgeOptions(TypedDict, total=False):
    """How a table of edges is read.

    `source`, `target` and `weight` are its columns, by name or by position from 0; `header` says whether its first line
    holds titles. What is not given is recognised.
    """

    source: str | int | None
    target: str | int | None
    weight: str | int | None
    header: bool | None


@dataclass(frozen=True, slots=True)
class Edges:
    """What a graph file says: the ends (edges, 2) of its edges as positions in ids, and their weights, None for all 1.

    `unnamed` is how many nodes a header counts that the file does not name. `told` says in words how the file was
    read, and `doubt` how else it could be, if it could.
    """

    ids: np.ndarray
    ends: np.ndarray
    weights: np.ndarray | None
    unnamed: int
    told: str
    doubt: str = ""


def read_edge_table(file: Unpacked, *, large: int = LARGE, **options: Unpack[EdgeOptions]) -> Edges:
    """Read the edges of a table; one of text with `large` bytes or more is read block by block."""
    columns = {"source": options.get("source"), "target": options.get("target"), "weight": options.get("weight")}
    header = options.get("header")
    if file.size >= (large // PACKED if file.packing else large):
        reader = TableReader(file, what=WHAT, header=header)
        if reader.dialect is not None:
            from neural_brane.io.edge_blocks import read_edge_blocks

            return read_edge_blocks(reader, columns)
    table = read_frame(file, what=WHAT, header=header)
    place = {"where": str(file.path), "first_line": table.first_line, "lines": table.lines}
    found = edge_columns(table.frame, **columns, **place)  # type: ignore[arg-type]
    ends, ids = found.number()
    return Edges(ids, ends, found.weights, 0, f"{table.told}; {found.told}")
