"""The chunks of edges and of attributes as entries of a matrix, and the ranges of rows that they are dealt to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.shards.dealing import SHIFT, Dealt, Rule, choose_cuts, pair_keys, sampled_pairs
from neural_brane.shards.ids import Ids
from neural_brane.shards.integers import IntegerSet
from neural_brane.shards.reading import bag_path, chunk_path


class Entries:
    """The entries of one matrix, chunk by chunk; `cuts` are where the ranges of keys begin."""

    drop_zeros = False

    def __init__(self, home: Path, dealt: Dealt, rule: Rule, total: int) -> None:
        self.home, self.dealt, self.rule, self.total = home, dealt, rule, total
        path = home / f"{dealt.what}.cuts.npy"
        self.cuts = np.load(path) if path.exists() else np.zeros(0, np.uint64)

    def pairs(self, chunk: int, sample: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The rows and columns of a chunk's pairs, or of a sample of them, and their weights."""
        raise NotImplementedError

    def choose_cuts(self, bounds: np.ndarray, memory: int) -> None:
        """Choose the ranges by a sample of all chunks."""
        keys = [pair_keys(*self.pairs(chunk, True)[:2], self.rule)[0] for chunk in range(self.dealt.chunks)]
        sample = np.concatenate(keys) if keys else np.zeros(0, np.uint64)
        self.cuts = choose_cuts(sample, self.total * (1 + self.rule.mirrored), bounds, memory)
        np.save(self.home / f"{self.dealt.what}.cuts.npy", self.cuts)

    def deal(self, chunk: int) -> None:
        """Deal the entries of a chunk to the ranges."""
        rows, columns, weights = self.pairs(chunk, False)
        keys, source = pair_keys(rows, columns, self.rule)
        self.dealt.write(chunk, keys, None if weights is None else weights[source], self.cuts)

    def ranges(self, first: int, last: int) -> range:
        """The ranges that hold the rows from first to last - 1."""
        begin, end = np.searchsorted(self.cuts, np.array([first, last], np.uint64) << SHIFT)
        return range(int(begin), int(end))

    def check_rows(self) -> None:
        """Refuse what shows in all chunks together."""


class EdgeEntries(Entries):
    """Both directions of every edge."""

    def __init__(self, home: Path, nodes: Ids, facts: dict[str, Any], *, loops: bool) -> None:
        self.nodes = nodes
        super().__init__(
            home, Dealt(home, "edges", facts["chunks"], facts["weighted"]), Rule(True, loops), facts["pairs"]
        )

    def pairs(self, chunk: int, sample: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The ends of a chunk's edges, without nodes that stand alone."""
        places = None
        if sample:
            chosen = sampled_pairs(self.nodes.size(chunk) // 2, self.dealt.chunks)
            places = (2 * chosen[:, None] + np.arange(2)).ravel()
        ends = self.nodes.numbers(chunk, places).reshape(-1, 2)
        weights = None
        if self.dealt.weighted and not sample:
            weights = np.load(chunk_path(self.home, chunk, "weights"))
        if (path := chunk_path(self.home, chunk, "alone")).exists():
            linked = ~np.load(path) if not sample else ~np.load(path)[chosen]
            ends, weights = ends[linked], None if weights is None else weights[linked]
        return ends[:, 0], ends[:, 1], weights

    def forget(self) -> None:
        """Remove the chunks, which are not needed once they are dealt."""
        for chunk in range(self.dealt.chunks):
            self.nodes.forget(chunk)
            chunk_path(self.home, chunk, "weights").unlink(missing_ok=True)


class AttributeEntries(Entries):
    """The attributes of nodes; one that a node has twice counts once, with its largest amount, and zeros not at all."""

    drop_zeros = True

    def __init__(self, home: Path, nodes: Ids, names: Ids, facts: dict[str, Any], path: Path | None) -> None:
        self.nodes, self.names, self.first, self.path = nodes, names, facts["first"], path
        super().__init__(home, Dealt(home, "entries", facts["chunks"], True), Rule(False, True), facts["entries"])

    def _rows(self, chunk: int) -> np.ndarray:
        """The nodes of a chunk's lines."""
        path = bag_path(self.home, chunk, "nodes")
        return np.load(path) if path.exists() else self.nodes.numbers(self.first + chunk)

    def pairs(self, chunk: int, sample: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The node and the attribute of every entry."""
        row = np.load(bag_path(self.home, chunk, "row"))
        places = sampled_pairs(len(row), self.dealt.chunks) if sample else None
        row = row if places is None else row[places]
        weights = None if sample else np.load(bag_path(self.home, chunk, "amounts"))
        return self._rows(chunk)[row], self.names.numbers(chunk, places), weights

    def check_rows(self) -> None:
        """Refuse a node that has two lines."""
        seen = IntegerSet(1 << 62)
        for chunk in range(self.dealt.chunks):
            lines = bag_path(self.home, chunk, "lines")
            if not lines.exists():
                return
            rows = self._rows(chunk)
            at = seen.add_new(rows)
            if at >= 0:
                line, node = np.load(lines)[at], self.nodes.name(int(rows[at]))
                raise GraphError(
                    f"{self.path}:{line}: node '{node}' already has a line; join the two lines or remove one"
                )
