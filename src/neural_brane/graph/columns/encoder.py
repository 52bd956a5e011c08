"""The encoder: fitted to one table of nodes, and then the same for every other."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph.adjacency import compact
from neural_brane.graph.columns.column import ENCODED, Column
from neural_brane.graph.columns.several import Members, Words
from neural_brane.graph.columns.single import Bins, Categories, Entries, Flag
from neural_brane.graph.columns.values import plain
from neural_brane.graph.ids import as_ids, repeated

if TYPE_CHECKING:
    import polars as pl

Missing = Literal["none", "attribute"]
Part = Categories | Bins | Flag | Members | Words
PARTS: dict[str, type[Part]] = {
    "category": Categories,
    "number": Bins,
    "boolean": Flag,
    "list": Members,
    "text": Words,
}
KEPT = ("name", "kind", "why", "option", "missing", "distinct")  # of a column; examples are for the screen alone


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """How the columns of a table of nodes become attributes, fixed by the table that it was fitted to.

    New nodes are encoded alike: numbers beyond those seen belong to the first or the last bin, and a category that
    was not seen is left out, with a warning. `as_dict` and `from_dict` keep it as plain JSON.

    Parameters
    ----------
    columns
        All columns of the table, with what each is.
    parts
        For each column that becomes attributes, in the order of columns, how.
    marked
        The columns whose missing values are an attribute of their own, as in `age=missing`.

    Examples
    --------
    >>> import polars as pl
    >>> from neural_brane.graph.columns import infer_columns
    >>> people = pl.DataFrame({"age": [31, 45, 22, 31], "country": ["IN", "FR", None, "IN"]})
    >>> encoder = Encoder.fit(people, infer_columns(people))
    >>> encoder.names.tolist()
    ['age=22', 'age=31', 'age=45', 'country=FR', 'country=IN']
    >>> encoder.encode(pl.DataFrame({"age": [99], "country": ["IN"]}))[0].toarray().tolist()
    [[0.0, 0.0, 1.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]
    parts: dict[str, Part]
    marked: frozenset[str] = frozenset()

    @classmethod
    def fit(cls, frame: pl.DataFrame, columns: Sequence[Column], *, missing: Missing = "none") -> Self:
        """Learn bins, values and words from a table, whose columns `infer_columns` has described."""
        if missing not in ("none", "attribute"):
            raise ParameterError(f"missing is {missing!r}; give 'none', or 'attribute' for attributes like age=missing")
        used = [column for column in columns if column.kind in ENCODED]
        parts = {column.name: PARTS[column.kind].fit(_plain(frame[column.name]), column) for column in used}
        marked = frozenset(column.name for column in used if column.missing and missing == "attribute")
        encoder = cls(tuple(columns), parts, marked)
        encoder._check_names()
        return encoder

    @property
    def names(self) -> np.ndarray:
        """The names of all attributes, in the order of the columns of the matrix."""
        return as_ids([name for column in self.parts for name in self.names_of(column)] or [], what="attribute names")

    def names_of(self, column: str) -> list[str]:
        """The names of the attributes of one column of the table."""
        own = self.parts[column].names(column) if column in self.parts else []
        return [*own, f"{column}=missing"] if column in self.marked else own

    def encode(self, frame: pl.DataFrame) -> tuple[sparse.csr_array, np.ndarray]:
        """The attributes (rows, attributes) of the rows of a table, and their names."""
        absent = [name for name in self.parts if name not in frame.columns]
        if absent:
            raise GraphError(
                f"the table of nodes lacks the column '{absent[0]}', which the encoder was fitted to; "
                f"it has {', '.join(map(repr, frame.columns))}"
            )
        widths = [len(self.names_of(name)) for name in self.parts]
        starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        found = [self._encode_column(name, frame[name], start) for name, start in zip(self.parts, starts, strict=False)]
        return _stack(found, len(frame), int(starts[-1])), self.names

    def _encode_column(self, name: str, series: pl.Series, start: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the attributes of a column's entries, rising."""
        values, part = _plain(series), self.parts[name]
        entries = part.encode(values)
        _tell_unknown(name, part, entries)
        rows, codes = entries.rows, entries.codes
        if name in self.marked:
            empty = np.flatnonzero(values.is_null().to_numpy())
            last = np.full(len(empty), len(part.names(name)), np.int32)
            rows, codes = np.concatenate([rows, empty]), np.concatenate([codes, last])
            order = np.argsort(rows, kind="stable")
            rows, codes = rows[order], codes[order]
        return rows, codes + int(start)

    def check_gives(self, names: np.ndarray) -> None:
        """Refuse attributes that this encoder does not give."""
        if not np.array_equal(self.names, names):
            raise GraphError(
                f"the encoder gives {len(self.names):,} attributes, which are not the {len(names):,} of the graph; "
                "encode the table again, or leave the encoder out"
            )

    def _check_names(self) -> None:
        names = self.names
        if (twice := repeated(names)) is not None:
            homes = [column for column in self.parts if twice in self.names_of(column)]
            raise GraphError(
                f"columns {' and '.join(map(repr, homes))} of the nodes both give an attribute '{twice}'; rename a "
                "column, or the value"
            )

    def as_dict(self) -> dict[str, Any]:
        """All of it but the examples, as JSON holds it."""
        columns = [
            {key: value for key, value in asdict(column).items() if key in KEPT}
            | (self.parts[column.name].as_dict() if column.name in self.parts else {})
            for column in self.columns
        ]
        return {"columns": columns, "marked": sorted(self.marked)}

    @classmethod
    def from_dict(cls, kept: Any) -> Self:
        """The encoder that `as_dict` described."""
        try:
            columns = tuple(Column(**{key: column[key] for key in KEPT}) for column in kept["columns"])
            parts = {
                column["name"]: PARTS[column["kind"]].from_dict(column)
                for column in kept["columns"]
                if column["kind"] in ENCODED
            }
            encoder = cls(columns, parts, frozenset(map(str, kept["marked"])))
        except GraphError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise GraphError(
                f"this is not an encoder of columns ({type(error).__name__}: {error}); give what Encoder.as_dict made"
            ) from None
        encoder._check_names()
        return encoder


def _plain(series: pl.Series) -> pl.Series:
    values = plain(series)
    if values is None:
        raise GraphError(f"column '{series.name}' of the nodes holds {series.dtype}; ignore it, or convert it to text")
    return values


def _tell_unknown(name: str, part: Part, entries: Entries) -> None:
    """Warn of values that have no attribute."""
    if len(entries.unknown) == 0:
        return
    what = {Bins: "are not numbers (or dates, where all others are)", Flag: "are neither true nor false"}.get(
        type(part), "were not seen before"
    )
    examples = ", ".join(repr(value) for value in entries.unknown.head(100).unique(maintain_order=True).head(3))
    warnings.warn(
        f"{len(entries.unknown):,} values of column '{name}' of the nodes {what} and are left out, such as {examples}",
        stacklevel=4,
    )


def _stack(columns: Iterable[tuple[np.ndarray, np.ndarray]], rows: int, width: int) -> sparse.csr_array:
    """The matrix of the entries of all columns, which come in the order of the matrix's columns."""
    columns = list(columns)
    counts = np.zeros(rows, np.int64)
    for at, _ in columns:
        counts += np.bincount(at, minlength=rows)
    starts = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(starts[-1], np.int32)
    free = starts[:-1].copy()  # where the next entry of each row goes
    for at, codes in columns:
        own = np.bincount(at, minlength=rows)
        first = np.concatenate([[0], np.cumsum(own)[:-1]]) if rows else own
        places = (free - first)[at]
        places += np.arange(len(at))
        indices[places] = codes
        free += own
    return compact(sparse.csr_array((np.ones(len(indices), np.float32), indices, starts), shape=(rows, width)))
