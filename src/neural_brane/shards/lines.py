"""Edge lists as lines of words, a block at a time; `neural_brane.io.graph_text` states the format.

A first line of two integers may be a header, `nodes edges`. That is known at the end alone, when the edges are counted:
so the line is held back, and becomes a chunk of its own, the first in the numbering, if it is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.edge_columns import Place, side_by_side
from neural_brane.graph.ids import INTEGER
from neural_brane.graph.numbering import names_of
from neural_brane.io.compressed import Unpacked
from neural_brane.io.content import recognise
from neural_brane.io.dialect import known_pair
from neural_brane.io.edges import EXPECTED
from neural_brane.io.fields import split_fields
from neural_brane.io.lines import fail, read_table, without_comments
from neural_brane.io.text_blocks import HEAD, Block, read_blocks
from neural_brane.shards.order import in_order
from neural_brane.shards.pairs import Pairs, check_missing, integers_or_names

if TYPE_CHECKING:
    import polars as pl

WHAT = "graph file"
Parsed = tuple[Pairs, list[tuple[bool, int]]]  # and for edges with and without weights the first line of each
SEPARATORS = (b" ", b"\t", b",")


def text_blocks(path: Path, what: str) -> Iterator[Block]:
    """The lines of a text file, a block at a time, comments made blank; refuse what is not text."""
    with Unpacked(path, what, streamed=True) as file:
        content = recognise(file.head(HEAD))
        if content.kind not in ("text", "binary"):
            raise GraphError(f"{path}: the {what} is a {content.kind} file; {content.advice}")
        for block in read_blocks(file, content.encoding):
            yield block._replace(data=without_comments(block.data, path, what, block.line))


class Candidate(NamedTuple):
    """A first line that may be a header, or else an edge; which of the two, the edges that follow decide."""

    line: int
    words: tuple[str, str]

    @property
    def nodes(self) -> int:
        """How many nodes it announces, if it is a header."""
        return int(self.words[0])

    @property
    def edges(self) -> int:
        """How many edges it announces, if it is a header."""
        return int(self.words[1])


class EdgeLines:
    """The edges of a file of lines; what is known of the file after the last of them is in the attributes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.candidate: Candidate | None = None
        self.follow = 0  # edges, without the candidate
        self.weighted: bool | None = None
        self.titles = ""  # a first line of two names, which may be titles
        self._begun = False
        self._weighed_line = 0

    def _blocks(self) -> Iterator[Block]:
        for block in text_blocks(self.path, WHAT):
            if not self._begun:
                block = self._begin(block)
            yield block

    def pairs(self) -> Iterator[Pairs]:
        """Yield the edges, and nodes that stand alone, a block at a time."""
        for found, seen in in_order(self._parse, self._blocks()):
            for weighted, line in seen:
                self._weigh(weighted, line)
            if found.number:
                self.follow += found.number - (0 if found.alone is None else int(found.alone.sum()))
                yield found
        if self.follow == 0 and self.candidate is None:
            raise GraphError(f"{self.path}: the graph has no edges; {EXPECTED}")

    def _begin(self, block: Block) -> Block:
        """Look at the first line that has words, and take it out if it may be a header."""
        match = re.search(rb"(?m)^[^\n]*[^\s,][^\n]*$", block.data)
        if match is None:
            return block
        self._begun = True
        line = block.line + block.data.count(b"\n", 0, match.start())
        words = match[0].replace(b",", b" ").decode().split()
        if len(words) == 2 and all(re.fullmatch("[0-9]{1,18}", word) for word in words):
            self.candidate = Candidate(line, (words[0], words[1]))
            data = block.data[: match.start()] + b" " * len(match[0]) + block.data[match.end() :]
            return block._replace(data=data)
        if len(words) > 1 and len(words[0]) > 1 and known_pair(words[:2]):
            fail(self.path, line, f"'{words[0]} {words[1]}' are titles of columns; put # before them")
        if len(words) > 1 and not any(re.fullmatch(INTEGER, word) for word in words[:2]):
            self.titles = f"{self.path}:{line}: '{words[0]} {words[1]}'"
        return block

    def _parse(self, block: Block) -> Parsed:
        """The edges of a block: quickly where every line is plain, else line by line."""
        return self._plain(block) or self._careful(block)

    def _plain(self, block: Block) -> Parsed | None:
        """The edges of a block where every line has two words and one separator; None where one has not."""
        separators = [one for one in SEPARATORS if one in block.data]
        if len(separators) != 1 or block.data.count(separators[0]) != block.lines:
            return None
        names = split_fields(block, separators[0].decode(), 2, (0, 1))
        if names is None:
            return None
        check_missing(names, Place(str(self.path), block.line), ("first", "second"))
        return Pairs(integers_or_names(names), None, None, len(block.data)), [(False, block.line)]

    def _careful(self, block: Block) -> Parsed:
        """The edges of any block, checked line by line, and the first lines with a weight and without one."""
        import polars as pl

        table = read_table(block.data, ["u", "v", "weight", "more"]).with_columns(pl.col("line") + (block.line - 1))
        long = table.filter(pl.col("more").is_not_null())
        if len(long):
            words = " ".join(str(word) for word in long.row(0)[1:])
            fail(self.path, long["line"][0], f"the line has more than three columns ('{words}'); {EXPECTED}")
        edges = table.filter(pl.col("v").is_not_null())
        kinds = [(weighted, edges.filter(pl.col("weight").is_not_null() == weighted)) for weighted in (True, False)]
        seen = sorted([(weighted, those["line"][0]) for weighted, those in kinds if len(those)], key=lambda one: one[1])
        names = names_of(side_by_side(table["u"], table["v"].fill_null(table["u"])))
        check_missing(names, Place(str(self.path), lines=table["line"].to_numpy()), ("first", "second"))
        alone = table["v"].is_null().to_numpy()
        weights = self._weights(table) if seen and seen[0][0] else None
        found = Pairs(integers_or_names(names), weights, alone if alone.any() else None, len(block.data))
        return found, seen

    def _weigh(self, weighted: bool, line: int) -> None:
        """Refuse a file where only some edges have weights."""
        if self.weighted is None:
            self.weighted, self._weighed_line = weighted, line
        if self.weighted != weighted:
            has, lacks = ("has a", "has none") if weighted else ("has no", "has one")
            fail(
                self.path,
                line,
                f"the edge {has} weight, while line {self._weighed_line} {lacks}; weigh all edges or none",
            )

    def _weights(self, frame: pl.DataFrame) -> np.ndarray:
        """The weight of every line, 1 for a node that stands alone."""
        linked = frame["v"].is_not_null().to_numpy()
        with np.errstate(over="ignore", under="ignore"):
            weights = frame["weight"].cast(float, strict=False).fill_null(np.nan).to_numpy().astype(np.float32)
        bad = linked & ~((weights > 0) & np.isfinite(weights))
        if bad.any():
            at = int(np.argmax(bad))
            word, line = frame["weight"][at], frame["line"][at]
            fail(self.path, line, f"weight '{word}' is not a finite number above 0; {EXPECTED}")
        return np.where(linked, weights, np.float32(1))
