"""Columns that give a node several attributes: the members of a list, or the words of a text.

Words are those that scikit-learn's `CountVectorizer` finds (lower case, two letters or more), a node has one or has it
not, and those that too few or too many nodes have are left out. Polars finds them, many rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neural_brane.graph.columns.column import Column
from neural_brane.graph.columns.single import Entries
from neural_brane.graph.columns.values import MISSING, as_texts

if TYPE_CHECKING:
    import polars as pl

WORD = r"\b\w{2,40}\b"  # longer ones are keys and hashes, not words
LARGEST_SHARE = 0.5  # of the nodes that have text: a word of more of them tells none apart
CODES = 2**32  # more than there are pieces
BLOCK_ROWS = 100_000  # split at a time: the pieces of all rows need far more memory than what is kept of them


@dataclass(frozen=True, slots=True)
class Members:
    """One attribute per member of a list: `tags=role::program`."""

    separator: str | None  # None where the column holds lists
    values: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Take every member that occurs, in the order of the alphabet."""
        part = cls(None if column.option is None else str(column.option), ())
        return cls(part.separator, tuple(_count(part, values)["piece"].to_list()))

    def split(self, values: pl.Series) -> pl.Series:
        """A list of members per row."""
        import polars as pl

        if isinstance(values.dtype, pl.List):
            return values
        texts = as_texts(values)
        return texts.str.split(self.separator) if self.separator else texts.reshape((-1, 1)).cast(pl.List(pl.String))

    def names(self, column: str) -> list[str]:
        """The attributes' names."""
        return [f"{column}={value}" for value in self.values]

    def encode(self, values: pl.Series) -> Entries:
        """The members of each row."""
        return _encode(self, values, self.values)

    def as_dict(self) -> dict[str, Any]:
        """What `from_dict` needs."""
        return {"separator": self.separator, "values": list(self.values)}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        """The same again."""
        separator = kept["separator"]
        return cls(None if separator is None else str(separator), tuple(map(str, kept["values"])))


@dataclass(frozen=True, slots=True)
class Words:
    """One attribute per word of a text: `description:game`."""

    words: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Take the words that enough nodes have and not too many, in the order of the alphabet."""
        import polars as pl

        counts = _count(cls(()), values)
        most = LARGEST_SHARE * (len(values) - values.null_count())
        kept = counts.filter((pl.col("nodes") >= int(column.option or 1)) & (pl.col("nodes") <= most))
        return cls(tuple(kept["piece"].to_list()))

    def split(self, values: pl.Series) -> pl.Series:
        """A list of words per row."""
        import polars as pl

        texts = values.list.join(" ") if isinstance(values.dtype, pl.List) else as_texts(values)
        return texts.str.to_lowercase().str.extract_all(WORD)

    def names(self, column: str) -> list[str]:
        """The attributes' names."""
        return [f"{column}:{word}" for word in self.words]

    def encode(self, values: pl.Series) -> Entries:
        """The words of each row; other words are nothing to tell of."""
        found = _encode(self, values, self.words)
        return found._replace(unknown=found.unknown.clear())

    def as_dict(self) -> dict[str, Any]:
        """What `from_dict` needs."""
        return {"words": list(self.words)}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        """The same again."""
        return cls(tuple(map(str, kept["words"])))


def _pieces(part: Members | Words, values: pl.Series) -> Iterator[pl.DataFrame]:
    """The pieces of each row, with repeats, as columns `row` and `piece`, for some rows at a time."""
    import polars as pl

    for start in range(0, len(values), BLOCK_ROWS):
        block = values.slice(start, BLOCK_ROWS)
        rows = pl.Series("row", np.arange(start, start + len(block)))
        lists = pl.DataFrame({"row": rows, "piece": part.split(block)}).filter(pl.col("piece").list.len() > 0)
        pieces = lists.explode("piece").with_columns(pl.col("piece").str.strip_chars())
        yield pieces.filter(~pl.col("piece").is_in(list(MISSING)))


def _distinct(rows: pl.Series, codes: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Rows and codes in order, each pair once. One integer per pair sorts far faster than two columns do."""
    import polars as pl

    pairs = (rows.cast(pl.Int64) * CODES + codes.cast(pl.Int64)).sort().to_numpy()
    first = np.ones(len(pairs), bool)
    first[1:] = pairs[1:] != pairs[:-1]
    return np.divmod(pairs[first], CODES)


def _count(part: Members | Words, values: pl.Series) -> pl.DataFrame:
    """Every piece and the number of rows that have it, in the order of the alphabet."""
    import polars as pl

    counts = [pl.DataFrame(schema={"piece": pl.String, "nodes": pl.UInt32})]
    for block in _pieces(part, values):
        # Equal strings share a category, and integers are compared faster than strings are.
        coded = block.with_columns(code=block["piece"].cast(pl.Categorical).to_physical())
        _, codes = _distinct(coded["row"], coded["code"])
        nodes = pl.Series("code", codes).cast(coded["code"].dtype).value_counts(name="nodes")
        words = coded.select("code", "piece").unique("code")
        counts.append(words.join(nodes, on="code").select("piece", pl.col("nodes").cast(pl.UInt32)))
    return pl.concat(counts).group_by("piece").agg(pl.col("nodes").sum()).sort("piece")


def _encode(part: Members | Words, values: pl.Series, known: tuple[str, ...]) -> Entries:
    """The codes of the pieces of each row, by their place in `known`."""
    import polars as pl

    codes = pl.Enum(pl.Series(known, dtype=pl.String))
    unknown = [pl.Series("piece", [], dtype=pl.String)]
    rows, places = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for block in _pieces(part, values):
        coded = block.with_columns(code=block["piece"].cast(codes, strict=False).to_physical())
        unknown.append(coded.filter(pl.col("code").is_null())["piece"])
        coded = coded.drop_nulls("code")
        for kept, found in zip((rows, places), _distinct(coded["row"], coded["code"]), strict=True):
            kept.append(found.astype(np.int32))
    return Entries(np.concatenate(rows), np.concatenate(places), pl.concat(unknown))
