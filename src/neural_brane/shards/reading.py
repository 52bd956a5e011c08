"""The first pass: edges and attributes are read once, their names noted, and what is left of them lies in chunks."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.graph.numbering import names_of
from neural_brane.io.attributes import MEND_UNKNOWN
from neural_brane.io.claims import check_count
from neural_brane.io.edges import CLAIM
from neural_brane.io.lines import fail
from neural_brane.progress import Meter
from neural_brane.shards.bags import Bags
from neural_brane.shards.ids import Ids
from neural_brane.shards.lines import Candidate, EdgeLines
from neural_brane.shards.pairs import Pairs

Facts = dict[str, Any]


class PairChunks:
    """The weights of edges and which pairs are none, in chunks beside those of their names."""

    def __init__(self, home: Path, nodes: Ids) -> None:
        self.home, self.nodes, self.pairs = home, nodes, 0
        self.weighted = False
        self._weights: list[np.ndarray] = []
        self._alone: list[np.ndarray] = []

    def add(self, block: Pairs) -> None:
        """Add a block of pairs, and cut a chunk where it is time."""
        self.nodes.add(block.names)
        self.weighted = block.weights is not None
        if block.weights is not None:
            self._weights.append(block.weights)
        self._alone.append(np.zeros(block.number, bool) if block.alone is None else block.alone)
        self.pairs += block.number
        if self.nodes.full:
            self.cut()

    def cut(self) -> None:
        """Write the chunk."""
        if not self._alone:
            return
        number = self.nodes.chunks
        self.nodes.cut()
        if self._weights:
            np.save(chunk_path(self.home, number, "weights"), np.concatenate(self._weights))
        alone = np.concatenate(self._alone)
        if alone.any():
            np.save(chunk_path(self.home, number, "alone"), alone)
        self._weights, self._alone = [], []


def chunk_path(home: Path, number: int, name: str) -> Path:
    """A file of a chunk of edges."""
    return home / f"edges-{number:05d}.{name}.npy"


def read_edges(blocks: Iterable[Pairs], lines: EdgeLines | None, nodes: Ids, meter: Meter, quiet: bool) -> Facts:
    """Read all edges; `lines` is the file of lines that they come from, whose header is judged at the end."""
    chunks = PairChunks(nodes.home, nodes)
    for block in blocks:
        chunks.add(block)
        meter.advance(block.size)
    announced = None
    if lines is not None:
        announced = _judge_header(lines, chunks, nodes, quiet)
        if lines.titles and nodes.added - nodes.spelled == 2 and nodes.added > 2:
            raise GraphError(
                f"{lines.titles} are names, while all other ids are numbers; put # before column titles, or, if the "
                "line is an edge, move it further down"
            )
    chunks.cut()
    return {"chunks": nodes.chunks, "pairs": chunks.pairs, "weighted": chunks.weighted, "announced": announced}


def _judge_header(lines: EdgeLines, chunks: PairChunks, nodes: Ids, quiet: bool) -> int | None:
    """Tell whether the first line was a header, by the rule that `graph_text` states, and how many nodes it counts."""
    candidate = lines.candidate
    if candidate is None:
        return None
    whole = nodes.spelled == nodes.added
    fits = nodes.integer and nodes.span[1] < candidate.nodes
    certain = bool(lines.weighted) or fits or (not whole and nodes.spelled == 0)
    if candidate.edges != lines.follow:
        if certain:
            fail(
                lines.path,
                candidate.line,
                f"the first line reads as a header 'nodes edges' that announces {candidate.edges} edges, but "
                f"{lines.follow} follow; mend the count, or, if the line is an edge, move it further down",
            )
    elif certain or candidate.edges <= candidate.nodes * (candidate.nodes + 1) // 2:
        _check_header(lines, candidate, nodes, whole)
        if whole and not quiet and not lines.weighted and nodes.span[1] != candidate.nodes - 1:
            warnings.warn(_doubt(lines.path, candidate), ReadingWarning, stacklevel=4)
        if whole:
            for at in range(0, candidate.nodes, 1 << 20):
                nodes.include(np.arange(at, min(at + (1 << 20), candidate.nodes)))
        return candidate.nodes
    import polars as pl

    chunks.cut()
    chunks.add(Pairs(names_of(pl.Series(candidate.words)), None, None, 0))
    nodes.lead = nodes.chunks
    chunks.cut()
    return None


def _check_header(lines: EdgeLines, header: Candidate, nodes: Ids, whole: bool) -> None:
    """Refuse nodes that a header does not allow for."""
    place = f"{lines.path}:{header.line}: a header that counts nodes"
    check_count(header.nodes, lines.follow, place, CLAIM, GraphError)
    last = header.nodes - 1
    if not whole and nodes.spelled:
        fail(
            lines.path,
            header.line,
            f"below this header some nodes have names and others numbers; under a header, nodes are all names or all "
            f"integers from 0 to {last}",
        )
    low, high = nodes.span if nodes.integer else (0, header.nodes if whole else 0)
    if low < 0 or high > last:
        fail(
            lines.path,
            header.line,
            f"node {low if low < 0 else high} is not one of the {header.nodes} nodes, 0 to {last}, that the header "
            "announces; mend the line or the header, or remove the header to use any ids",
        )


def _doubt(path: Path, header: Candidate) -> str:
    return (
        f"{path}: the first line, '{header.nodes} {header.edges}', is read as a header: {header.nodes} nodes, 0 to "
        f"{header.nodes - 1}, and {header.edges} edges; if it is an edge, move it further down"
    )


def read_attributes(blocks: Iterable[Bags], path: Path, nodes: Ids, names: Ids, meter: Meter) -> Facts:
    """Read the attributes of nodes into chunks. Nodes with integers for ids must be known already."""
    chunks = BagChunks(path, nodes, names)
    for block in blocks:
        chunks.add(block)
        meter.advance(block.size)
    chunks.cut()
    return {"chunks": names.chunks, "first": chunks.first, "entries": chunks.entries}


class BagChunks:
    """Entries in chunks: the rows they stand in, amounts, and the nodes of the rows."""

    def __init__(self, path: Path, nodes: Ids, names: Ids) -> None:
        self.path, self.nodes, self.names = path, nodes, names
        self.first, self.entries = nodes.chunks, 0
        self._rows = 0
        self._kept: dict[str, list[np.ndarray]] = {}

    def add(self, block: Bags) -> None:
        """Add a block, and cut a chunk where it is time."""
        self.names.add(block.names)
        kept = {"row": (block.row + self._rows).astype(np.int32), "amounts": block.amounts}
        if block.lines is not None:
            kept["lines"] = block.lines
        if self.nodes.integer:
            kept["nodes"] = self._known(block)
        else:
            self.nodes.add(block.nodes)
        for name, array in kept.items():
            self._kept.setdefault(name, []).append(array)
        self._rows += len(block.nodes.starts)
        self.entries += len(block.row)
        if self.names.full or self.nodes.full:
            self.cut()

    def _known(self, block: Bags) -> np.ndarray:
        numbers = self.nodes.known(block.nodes)
        if (numbers < 0).any():
            at = int(np.argmax(numbers < 0))
            name = bytes(block.nodes.data[block.nodes.starts[at] : block.nodes.ends[at]]).decode()
            where = f":{block.lines[at]}" if block.lines is not None else ""
            raise GraphError(f"{self.path}{where}: node '{name}' is not in the graph; {MEND_UNKNOWN}")
        return numbers

    def cut(self) -> None:
        """Write the chunk."""
        if not self._kept:
            return
        number = self.names.chunks
        self.names.cut()
        if not self.nodes.integer:
            self.nodes.cut()
        for name, arrays in self._kept.items():
            np.save(bag_path(self.nodes.home, number, name), np.concatenate(arrays))
        self._kept, self._rows = {}, 0


def bag_path(home: Path, number: int, name: str) -> Path:
    """A file of a chunk of attribute entries."""
    return home / f"entries-{number:05d}.{name}.npy"
