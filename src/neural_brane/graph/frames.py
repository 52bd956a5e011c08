"""Convert data frames of pandas, polars and Arrow, and read edges from their columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.ids import MISSING, as_ids, as_integers, encode, locate
from neural_brane.graph.lazy import pl


def package_of(value: Any) -> str:
    """Return the package that defines an object's class.

    >>> package_of(np.ones(2))
    'numpy'
    """
    return type(value).__module__.partition(".")[0]


def is_frame(value: Any) -> bool:
    """Return whether a value is a pandas DataFrame."""
    return package_of(value) == "pandas" and hasattr(value, "columns")


def is_series(value: Any) -> bool:
    """Return whether a value is a pandas Series."""
    return package_of(value) == "pandas" and hasattr(value, "index") and not hasattr(value, "columns")


def by_index(rows: Any, ids: np.ndarray, what: str) -> Any:
    """Return the rows of a DataFrame or Series in the order of the ids; its index must contain each id once."""
    index = as_ids(rows.index, what=f"the index of {what}")
    places = locate(ids, index)
    order = np.full(len(ids), -1)
    order[places[places >= 0]] = np.flatnonzero(places >= 0)
    if len(index) != len(ids) or (order < 0).any():
        absent = ids[order < 0]
        problem = f"node {absent[0].item()!r} has no row" if len(absent) else "a node has several rows, or is unknown"
        raise GraphError(
            f"{what} are a pandas {type(rows).__name__} of {len(index)} rows, joined to the {len(ids)} nodes by its "
            f"index: {problem}; set its index to the nodes' ids, or give {what}.to_numpy() to match rows by position"
        )
    return rows.iloc[order]


def adjacency_frame(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and the ids of an adjacency whose index and columns name the same nodes in any order."""
    ids, columns = as_ids(frame.index, what="the index"), as_ids(frame.columns, what="the columns")
    order = locate(columns, ids) if ids.dtype.kind == columns.dtype.kind else np.full(len(ids), -1)
    if len(ids) != len(columns) or (order < 0).any():
        found = f"the index and the columns of this adjacency ({len(ids)} x {len(columns)}) must name the same nodes;"
        raise GraphError(f"{found} for a table of edges use AttributedGraph.from_frames(edges, nodes)")
    return frame.iloc[:, order].to_numpy(), ids


def is_adjacency(frame: Any) -> bool:
    """Return whether a DataFrame's index and columns name the same nodes."""
    return frame.shape[0] == frame.shape[1] and set(frame.index) == set(frame.columns)


def numeric_frame(frame: Any, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of a DataFrame of attributes in the order of the ids, and the names of its columns."""
    rows = by_index(frame, ids, "attributes")
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if getattr(dtype, "kind", "O") not in "biuf":
            advice = "use AttributedGraph.from_frames(edges, nodes) for other columns"
            raise GraphError(f"attribute column {name!r} has dtype {dtype}, but must be numeric; {advice}")
    return rows.to_numpy(dtype=float), as_ids(frame.columns, what="attribute_names")


# Usual titles of the columns of an edge's ends and weight, as `squash` gives them. Earlier pairs are preferred.
PAIRS = (
    ("source", "target"), ("from", "to"), ("src", "dst"), ("src", "dest"), ("sourceid", "targetid"),
    ("fromid", "toid"), ("fromnodeid", "tonodeid"), ("fromnode", "tonode"), ("sourcenode", "targetnode"),
    ("node1", "node2"), ("nodea", "nodeb"), ("id1", "id2"), ("start", "end"), ("head", "tail"), ("citing", "cited"),
    ("u", "v"), ("i", "j"),
)  # fmt: skip
ID_TITLES = ("id", "node", "nodeid", "name")  # usual titles of the ids in a table of nodes
WEIGHTS = ("weight", "weights", "w", "value")
Column = str | int | None
SAMPLE = 100_000  # edges that decide whether the pairs have a direction
# Titles of row numbers: those that pandas, R and our own reader give to a column without a title.
_UNTITLED = re.compile(r"|index|level_\d+|__index_level_\d+__|unnamed: ?\d+|\.\.\.\d+|column_\d+", re.IGNORECASE)
_COUNTERS = re.compile(r"#|x|n|nr|no|num|number|line|seq|idx|counter|rn|rows?(id|names?|num|numbers?|nr)?")
# Words in the titles of two kinds of nodes. Both kinds are often numbered from 1.
_NOUNS = re.compile(
    "user|customer|client|visitor|member|account|patient|reader|viewer|person|author|student|employee|item|product|"
    "article|movie|film|book|song|track|artist|album|paper|document|doc|page|post|video|game|app|recipe|restaurant|shop|"
    "store|company|gene|drug|disease|protein|tag|topic|keyword|word|venue|event|course|session|query|basket|order"
)
# Words in the titles of two nodes of one kind.
_ROLES = re.compile("from|to|source|target|src|dst|start|end|parent|child|follower|followee|friend|citing|cited")


def lacks_title(name: str) -> bool:
    """Return whether a program has named a column without a title."""
    return bool(_UNTITLED.fullmatch(name.strip()))


def untitled(names: list[str]) -> set[str]:
    """Return the columns without a title, such as an index that pandas wrote; none if all columns lack a title."""
    found = set(filter(lacks_title, names))
    return found if len(found) < len(names) else set()


def names_rows(title: str) -> bool:
    """Return whether a title is one of row numbers."""
    return bool(_COUNTERS.fullmatch(squash(title)))


def squash(title: str) -> str:
    """Return a title in lower case without spaces, underscores and hyphens.

    >>> squash("User ID"), squash("from_node")
    ('userid', 'fromnode')
    """
    return re.sub(r"[\s_-]", "", title).lower()


def name_two_kinds(source: str, target: str) -> bool:
    """Return whether the titles of two columns name two kinds of nodes, each with ids of its own.

    >>> name_two_kinds("user_id", "itemId"), name_two_kinds("from_user_id", "to_user_id"), name_two_kinds("a", "b")
    (True, False, False)
    """
    words = [re.findall("[a-z]+", re.sub("(?<=[a-z])(?=[A-Z])", " ", title).lower()) for title in (source, target)]
    numbered = all(word[-1:] == ["id"] for word in words)
    first, second = ({one.removesuffix("s") for one in word if one != "id"} for word in words)
    if not first or not second or first & second or any(map(_ROLES.fullmatch, first | second)):
        return False
    if numbered:
        return min(map(len, first | second)) > 1
    return all(any(map(_NOUNS.fullmatch, side)) for side in (first, second))


@dataclass(frozen=True, slots=True)
class EdgeColumns:
    """The ends of edges, int64 or strings, and their weights, None if all are 1; `names` are the chosen columns."""

    source: pl.Series
    target: pl.Series
    weights: np.ndarray | None
    names: tuple[str, str, str | None]
    ignored: list[str]

    @property
    def description(self) -> str:
        """A description of the columns that are used."""
        ends = f"edges from '{self.names[0]}' to '{self.names[1]}'"
        weighted = "" if self.names[2] is None else f", weighted by '{self.names[2]}'"
        ignored = f"; columns not used: {', '.join(map(repr, self.ignored))}" if self.ignored else ""
        return ends + weighted + ignored

    @property
    def unused(self) -> str:
        """A warning that names what the edges lose: columns that are not used, and the direction of their pairs."""
        columns = [repr(name) for name in self.ignored if name not in untitled([*self.names[:2], *self.ignored])]
        lost = [f"column{'s' * (len(columns) > 1)} {', '.join(columns)}"] if columns else []
        lost += ["the direction of the pairs"] if self._directed() else []
        if not lost:
            return ""
        weight = "weight=NAME (--weight NAME) takes a column of numbers as weights" if columns else ""
        both = "duplicates='sum' (--duplicates sum) counts both directions" if self._directed() else ""
        return f"not used: {' and '.join(lost)}; {' and '.join(filter(None, (weight, both)))}"

    def _directed(self) -> bool:
        """Return whether some, but not all, of the first pairs also occur in the other direction."""
        first = pl.DataFrame({"u": self.source.head(SAMPLE), "v": self.target.head(SAMPLE)})
        pairs = first.filter(pl.col("u") != pl.col("v")).unique()
        both = len(pairs.join(pairs, left_on=["u", "v"], right_on=["v", "u"], how="semi"))
        return 0 < both < len(pairs)

    def number(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends (edges, 2) as positions among ids, and the ids; strings are in the order they appear."""
        return number_ends(self.source, self.target)


def number_ends(source: pl.Series, target: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends (edges, 2) as positions among ids, and the ids; strings are in the order they appear."""
    if source.dtype.is_integer():
        codes, ids = encode(np.stack([source.to_numpy(), target.to_numpy()], axis=1).ravel())
    else:
        codes, ids = encode(side_by_side(source, target))
    return codes.reshape(-1, 2), ids


def side_by_side(source: pl.Series, target: pl.Series) -> pl.Series:
    """Return the ends of all edges in one series: both ends of the first edge, then of the second, and so on."""
    both = pl.concat([source, target])
    return both.gather(np.arange(len(both)).reshape(2, -1).T.ravel())


def choose_columns(
    columns: list[str], *, source: Column = None, target: Column = None, weight: Column = None, where: str = "edges"
) -> tuple[str, str, str | None]:
    """Return the columns of source, target and weight: as given, else with usual titles, else the first two."""
    given = [None if one is None else find_column(columns, one, where) for one in (source, target, weight)]
    free = [name for name in columns if name not in given]
    ends = given[:2]
    numbers = untitled(free) | set(filter(names_rows, free))
    if len(free) - len(numbers) >= ends.count(None):
        free = [name for name in free if name not in numbers]
    if ends == [None, None]:
        ends = list(known_pair(free)) or list(free[:2])
    ends = [end or next((name for name in free if name not in ends), None) for end in ends]
    if len(ends) < 2 or None in ends:
        found = f"{where}: edges need two columns of ids, but there is only {', '.join(map(repr, columns)) or 'none'};"
        raise GraphError(f"{found} separate columns by ',', a tab, ';' or '|', or give them as source and target")
    if ends[0] == ends[1] or given[2] in ends:
        raise GraphError(f"{where}: source, target and weight are {ends + given[2:]}; give three different columns")
    rest = [name for name in free if name not in ends]
    guessed = next((name for known in WEIGHTS for name in rest if squash(name) == known), None)
    return str(ends[0]), str(ends[1]), given[2] or guessed


def known_pair(columns: list[str]) -> tuple[str, ...]:
    """Return two columns with titles that belong together, such as source and target, or an empty tuple."""
    by_title = {squash(name): name for name in reversed(columns)}
    return next(((by_title[a], by_title[b]) for a, b in PAIRS if a in by_title and b in by_title), ())


def find_column(columns: list[str], wanted: str | int, where: str) -> str:
    """Return the name of a column given by name or by position, counted from 0."""
    if isinstance(wanted, str) and wanted in columns:
        return wanted
    if isinstance(wanted, str) and wanted.isdecimal():
        wanted = int(wanted)
    if isinstance(wanted, int) and 0 <= wanted < len(columns):
        return columns[wanted]
    advice = f"give one of {', '.join(map(repr, columns))}, or a position from 0 to {len(columns) - 1}"
    raise GraphError(f"{where}: there is no column {wanted!r}; {advice}")


def edge_columns(
    frame: pl.DataFrame,
    place: Place,
    *,
    source: Column = None,
    target: Column = None,
    weight: Column = None,
    same_ids: bool | None = False,
) -> EdgeColumns:
    """Return the edges of a data frame, from the columns that `choose_columns` chooses.

    Ids become int64 if all are whole numbers, else strings. Missing ids and weights that are not finite numbers above
    0 raise an error; `place` locates the row for the message. So do ids that stand in both columns of a table that
    joins two kinds of nodes, unless `same_ids` says that they are one kind.
    """
    if weight is source is target is None and frame.columns == [f"column_{at}" for at in (1, 2, 3)]:
        # A table of three columns without titles usually is `u,v,weight`: use the third as weights if it is numeric.
        third = frame["column_3"].drop_nulls()
        numbers = third.head(100).cast(pl.Float64, strict=False) if third.dtype == pl.String else third
        weight = "column_3" if len(third) and numbers.dtype.is_numeric() and not numbers.null_count() else None
    names = choose_columns(frame.columns, source=source, target=target, weight=weight, where=place.where)
    ends = [id_column(frame[name], place) for name in names[:2]]
    if ends[0].dtype != ends[1].dtype:
        ends = [end.cast(pl.String) for end in ends]
    if not same_ids and name_two_kinds(*names[:2]):
        sources, targets = (end.unique().to_frame("id") for end in ends)
        refuse_shared_ids(sources.join(targets, on="id")["id"], names, place)
    weights = None if names[2] is None else column_weights(frame[names[2]], place)
    ignored = [name for name in frame.columns if name not in names]
    return EdgeColumns(ends[0], ends[1], weights, names, ignored)


def refuse_shared_ids(shared: Any, names: tuple[str, str, str | None], place: Place) -> None:
    """Raise an error if two kinds of nodes share ids."""
    if len(shared):
        both = f"stand in both column '{names[0]}' and column '{names[1]}', which seem to be two kinds of nodes;"
        prefix = f"write a prefix before the ids of each kind, as in '{names[0]} {shared[0]}',"
        advice = f"{prefix} or say that they are one kind with same_ids=True (--same-ids)"
        raise GraphError(f"{place.where}: {len(shared):,} ids, such as {shared[0]!r}, {both} {advice}")


@dataclass(frozen=True, slots=True)
class Place:
    """The origin of a frame's rows, for messages."""

    where: str
    first_line: int = 0
    lines: np.ndarray | None = None

    def error(self, row: int, message: str) -> GraphError:
        """Return an error that names a row by its line in a file, or else by its position from 0."""
        if self.lines is not None:
            return GraphError(f"{self.where}:{self.lines[row]}: {message}")
        if self.first_line:
            return GraphError(f"{self.where}:{self.first_line + row}: {message}")
        return GraphError(f"{self.where}: row {row}: {message}")


def id_column(column: pl.Series, place: Place, *, needs: str = "an edge needs two nodes") -> pl.Series:
    """Return ids as int64 or strings; raise an error if one is missing or has another type. `needs` is the reason."""
    missing = column.is_null()
    if column.dtype.is_float():
        missing |= column.is_nan().fill_null(True)
    if missing.any():
        raise place.error(int(missing.arg_max() or 0), _missing(column.name, needs))
    kind = column.dtype
    if kind.is_float():
        whole = column.is_finite() & (column == column.round()) & (column.abs() < 2**53)
        if not whole.all():
            row = int((~whole).arg_max() or 0)
            raise place.error(row, f"column '{column.name}' holds {column[row]}; ids must be integers or strings")
        return column.cast(pl.Int64)
    if kind.is_integer():
        narrow = column.cast(pl.Int64, strict=False)
        return column.cast(pl.String) if narrow.null_count() else narrow
    if kind not in (pl.String, pl.Categorical, pl.Enum):
        raise GraphError(f"{place.where}: column '{column.name}' holds {kind}; ids must be integers or strings")
    ids = column.cast(pl.String).str.strip_chars()
    numbers = as_integers(ids)
    if numbers is not None:
        return numbers
    for bad in (ids == "", ids.is_in(MISSING)):
        if bad.any():
            row = int(bad.arg_max() or 0)
            raise place.error(row, _missing(column.name, needs, ids[row]))
    if (odd := ids.str.contains("\0", literal=True)).any():
        row = int(odd.arg_max() or 0)
        raise place.error(row, f"column '{column.name}' holds {ids[row]!r}, with the character NUL; remove it")
    return ids


def id_texts(column: pl.Series) -> pl.Series | None:
    """Return values as strings, as `id_column` would name nodes; None if the column cannot hold ids."""
    kind = column.dtype
    if kind.is_float():
        known = column.drop_nulls()
        whole = bool((known.is_finite() & (known == known.floor()) & (known.abs() < 2**53)).all())
        return column.cast(pl.Int64).cast(pl.String) if whole else None
    if not (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Enum)):
        return None
    texts = column.cast(pl.String).str.strip_chars()
    numbers = None if kind.is_integer() else as_integers(texts)
    return texts if numbers is None else numbers.cast(pl.String)


def _missing(column: str, needs: str, word: str = "") -> str:
    """Return the message for a missing id."""
    found = f"holds '{word}', which stands for no value" if word else "is empty"
    return f"column '{column}' {found}, and {needs}; fill it in, or remove the row"


def column_weights(column: pl.Series, place: Place) -> np.ndarray:
    """Return weights as float32; raise an error if one is not a finite number above 0 in float32."""
    if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Null)):
        raise GraphError(f"{place.where}: column '{column.name}' holds {column.dtype}; weights must be numbers above 0")
    with np.errstate(over="ignore", under="ignore"):
        weights = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy().astype(np.float32)
    bad = ~((weights > 0) & (weights < np.inf))
    if bad.any():
        row = int(np.argmax(bad))
        found = "missing" if column[row] is None else f"'{column[row]}'"
        advice = "give numbers from 1e-37 to 1e38 (float32), or choose another column"
        raise place.error(row, f"the weight in column '{column.name}' is {found}; {advice}")
    return weights


class Frame(NamedTuple):
    """A table as a polars data frame; `index_name` is the column that was the named index of a pandas DataFrame."""

    table: pl.DataFrame
    index_name: str | None = None


def as_frame(given: Any, what: str) -> Frame:
    """Return a data frame of any library as a polars frame; an index of pandas that the user set is a column."""
    if isinstance(given, pl.DataFrame):
        return Frame(given)
    if isinstance(given, pl.LazyFrame):
        return Frame(given.collect())
    if is_frame(given):
        index = None
        if type(given.index).__name__ != "RangeIndex" or given.index.name is not None:
            levels = given.index.names
            own = [str(name if name is not None else "index") for name in levels]
            if len(levels) > 1:
                own = [str(name if name is not None else f"level_{at}") for at, name in enumerate(levels)]
            elif levels[0] is not None:
                index = own[0]
            given = given.reset_index(names=own)
        names = [str(name) for name in given.columns]
        if twice := [name for name in names if names.count(name) > 1]:
            raise GraphError(f"{what} have two columns '{twice[0]}'; rename one (an index counts as a column)")
        return Frame(pl.DataFrame([_series(name, given.iloc[:, at]) for at, name in enumerate(names)]), index)
    if hasattr(given, "__arrow_c_stream__"):
        return Frame(pl.DataFrame(given))
    kind = type(given).__name__
    raise GraphError(f"{what} are {kind}, not a table; give a DataFrame of pandas or polars, or an Arrow table")


def _series(name: str, column: Any) -> pl.Series:
    """Return a pandas column of any dtype as a polars series; missing values become null."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufMm":
        return pl.Series(name, column.to_numpy())
    return series_of(name, column.astype(object).where(column.notna(), None).tolist())


def series_of(name: str, values: list[Any]) -> pl.Series:
    """Return values, None if missing, as a series of numbers, booleans, text, vectors or lists of text."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {list, tuple, set, frozenset, np.ndarray}:
        members = {type(one) for value in values if value is not None for one in value}
        if str not in members and any(issubclass(kind, float | np.floating | np.ndarray) for kind in members):
            floats = [value if value is None else np.hstack([*value, ()]).astype(float).tolist() for value in values]
            return pl.Series(name, floats, dtype=pl.List(pl.Float64))
        return pl.Series(name, [value if value is None else [str(one) for one in value] for value in values])
    alike = any(kinds <= one for one in ({str}, {bool, np.bool_}, {int, np.int64}, {int, float}, {timedelta}))
    texts = values if alike else [value if value is None else str(value) for value in values]
    return pl.Series(name, texts, strict=kinds != {int, float})
