"""Join a table of nodes to a graph: match ids, take labels from one column and attributes from the others."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import frames
from neural_brane.graph.adjacency import compact
from neural_brane.graph.columns import Column, as_texts, infer_columns, plain, read_kinds
from neural_brane.graph.encoder import Encoder, Missing
from neural_brane.graph.frames import ID_TITLES, Frame, Place, as_frame, find_column, id_column, squash, untitled
from neural_brane.graph.ids import as_integers, is_missing, locate
from neural_brane.graph.lazy import pl

if TYPE_CHECKING:
    from neural_brane.graph.attributed import AttributedGraph


SAMPLE_ROWS = 10_000  # rows that decide which column holds the ids
NEARLY_DISTINCT = 0.9  # share of distinct values from which a repeated id is a mistake in the table


class NodeOptions(TypedDict, total=False):
    """The options for reading a table of nodes."""

    # Columns of the ids and the labels, by name or position. `choose_id` chooses the default of `id`.
    id: str | int | None
    label: str | int | None
    # Kinds of columns, as in `{"age": "number:8", "tags": "list:;"}`, and columns to ignore. The kinds of all other
    # columns are inferred, as `neural_brane.graph.columns` describes.
    columns: Mapping[str, str] | Iterable[str] | None
    ignore: Collection[str]
    missing: Missing  # "none", or "attribute" to give nodes without a value an attribute such as `age=missing`
    # An encoder fitted to another table, to encode this one in the same way. The provenance of vectors contains it.
    encoder: Encoder | dict[str, Any] | None


def join_nodes(graph: AttributedGraph, nodes: Any, place: Place, options: NodeOptions) -> AttributedGraph:
    """Return a graph without attributes joined with a table of nodes; nodes without edges come last."""
    if graph.attributes.shape[1]:
        rest = "so a table of nodes cannot be joined; leave out the table, or give edges only"
        raise GraphError(f"graph '{graph.name}' already has {graph.attributes.shape[1]:,} attributes, {rest}")
    frame = as_frame(nodes, place.where)
    table, label = frame.table, options.get("label")
    id = choose_id(frame, place, given=options.get("id"), linked=graph.ids, titles=graph.edge_titles)
    label = None if label is None else find_column(table.columns, label, place.where)
    columns = describe_columns(table, id, label, place, options)
    rows = find_rows(table[id], graph.ids, place)
    if not (rows.places >= 0).any():
        raise GraphError(
            f"{place.where}: none of the {len(rows.ids):,} ids in column '{id}' (such as {rows.ids[0]!r}) is a node of "
            f"the edges (such as {graph.ids[0].item()!r}); give the column of the ids with --id NAME or id='NAME'"
        )
    warn_without_row(graph.ids, rows.without_row(graph.ids), place)
    encoder = options.get("encoder") or Encoder.fit(table, columns, missing=options.get("missing", "none"))
    encoder = encoder if isinstance(encoder, Encoder) else Encoder.from_dict(encoder)
    attributes, names = encoder.encode(table)
    adjacency, attributes, everyone = rows.join(graph.ids, graph.adjacency, attributes)
    if label is not None:
        labels = _labels(table[label], rows.places, len(everyone))
    elif graph.labels is not None:
        labels = np.concatenate([graph.labels, np.zeros(len(everyone) - len(graph), graph.labels.dtype)])
    else:
        labels = None
    return type(graph)(adjacency, attributes, everyone, names, labels, graph.name, encoder, graph.edge_titles)


def describe_columns(
    table: pl.DataFrame, id: str, label: str | None, place: Place, options: NodeOptions
) -> list[Column]:
    """Return the columns as `infer_columns` describes them, with the reason for the column of ids."""
    known = {"columns": options.get("columns"), "ignore": options.get("ignore", ())}
    try:
        columns = infer_columns(table, id=id, label=label, **known)  # type: ignore[arg-type]
    except GraphError as error:
        raise GraphError(f"{place.where}: {error}") from None
    found = "as given" if options.get("id") else "its values are the nodes of the edges"
    bare = untitled(table.columns) - set(read_kinds(options.get("columns"))) - {id, label}
    columns = [replace(column, why=found) if column.kind == "id" else column for column in columns]
    return [replace(one, kind="ignored", why="has no title") if one.name in bare else one for one in columns]


def choose_id(
    frame: Frame,
    place: Place,
    *,
    given: str | int | None = None,
    linked: np.ndarray | None = None,
    titles: Collection[str] = (),
    encoder: Encoder | None = None,
) -> str:
    """Return the name of the column of a table of nodes that holds the ids.

    It is the given column, by name or position; else the column of the ids in the table that `encoder` was fitted to.
    Otherwise it is the column whose values are the nodes of the edges, `linked`. If there are several, `Rank` orders
    them: distinct values come first, then usual titles, those of the edges (`titles`) and a named index of pandas; row
    numbers and columns without a title come last. If two columns remain, this raises an error.
    """
    names = frame.table.columns
    if given is not None:
        return find_column(names, given, place.where)
    before = next((column.name for column in encoder.columns if column.kind == "id"), None) if encoder else None
    if before in names:
        return str(before)
    if linked is None and frame.index_name is not None:
        return frame.index_name
    found = [] if linked is None else list(_candidates(frame, linked, {*ID_TITLES, *map(squash, titles)}))
    best = [one for one in found if one.rank == min(one.rank for one in found)]
    distinct = list({tuple(one.sample): one for one in best}.values())
    if len(distinct) > 1 and not distinct[0].rank.repeats:
        pair = " and ".join(f"'{one.name}'" for one in best[:2])
        raise GraphError(
            f"{place.where}: columns {pair} could both hold the nodes' ids; choose one with --id NAME or id='NAME'"
        )
    if best:
        return max(best, key=lambda one: (one.score, one.name not in untitled(names))).name
    wanted = f"column '{before}', which held the ids in the table of the fitted graph"
    if linked is not None:
        wanted = f"column holds the ids of the edges' nodes (such as {linked[0].item()!r})"
    problem = f"{place.where}: no {wanted}; the columns are {', '.join(map(repr, names))}:"
    raise GraphError(f"{problem} give the column of the ids with --id NAME or id='NAME', or rename it")


class Rank(NamedTuple):
    """The order in which columns are considered as ids; lower values come first."""

    repeats: bool  # nodes have several rows
    poor: bool  # there is no title, or one of row numbers
    unusual: bool  # the title is not one that ids usually have


class Candidate(NamedTuple):
    """A column that may hold the ids of nodes: its first values, and a score that is higher the more of them match."""

    name: str
    rank: Rank
    sample: pl.Series
    score: float


def _candidates(frame: Frame, linked: np.ndarray, usual: set[str]) -> Iterator[Candidate]:
    """Yield the columns that hold at least half as many nodes of the edges as the best column does."""
    names, found = frame.table.columns, []
    bare = untitled(names)
    for name in names:
        values = frames.id_texts(frame.table[name])
        if values is None:
            continue
        sample = values.head(SAMPLE_ROWS)
        known = sample.drop_nulls().unique()
        shared = int((locate(linked, known) >= 0).sum())
        steps = as_integers(sample.drop_nulls())
        counts = steps is not None and bool((steps.diff().drop_nulls() == 1).all())
        if shared and not (name in bare and counts):
            repeats = values.n_unique() < NEARLY_DISTINCT * len(values) or values.null_count() > 0
            unusual = squash(name) not in usual and name != frame.index_name
            rank = Rank(repeats, name in bare or frames.names_rows(name), unusual)
            found.append((shared, Candidate(name, rank, sample, shared * len(known) / len(sample) ** 2)))
    most = max((shared for shared, _ in found), default=0)
    return (one for shared, one in found if 2 * shared >= most)


class NodeRows(NamedTuple):
    """The rows of a table of nodes: their ids, and their positions among the nodes of the edges, -1 for other nodes."""

    ids: pl.Series
    places: np.ndarray

    def without_row(self, linked: np.ndarray) -> np.ndarray:
        """Return a mask of the nodes of the edges that have no row."""
        absent = np.ones(len(linked), bool)
        absent[self.places[self.places >= 0]] = False
        return absent

    def join(
        self, linked: np.ndarray, adjacency: sparse.csr_array, attributes: sparse.csr_array
    ) -> tuple[sparse.csr_array, sparse.csr_array, np.ndarray]:
        """Return the adjacency, attributes and ids of all nodes: first the nodes of the edges, then the others."""
        new = np.flatnonzero(self.places < 0)
        self.places[new] = np.arange(len(linked), len(linked) + len(new))
        everyone = linked
        if len(new):
            others = self.ids.gather(new).to_numpy()
            alike = linked.dtype.kind == others.dtype.kind == "i"
            everyone = np.concatenate([linked, others] if alike else [linked.astype(str), others.astype(str)])
        nodes = len(everyone)
        starts = np.pad(adjacency.indptr, (0, nodes - adjacency.shape[0]), mode="edge")
        padded = sparse.csr_array((adjacency.data, adjacency.indices, starts), shape=(nodes, nodes))
        # Put each row of attributes at the position of its node; nodes without a row get an empty one.
        rows = np.repeat(self.places, np.diff(attributes.indptr))
        placed = sparse.coo_array((attributes.data, (rows, attributes.indices)), (nodes, attributes.shape[1]))
        return padded, compact(placed.tocsr()), everyone


def find_rows(ids: pl.Series, linked: np.ndarray, place: Place) -> NodeRows:
    """Return the rows of a table with their positions among the nodes of the edges; check that ids are distinct."""
    ids = id_column(ids, place, needs="a node needs an id")
    check_distinct(ids, place)
    return NodeRows(ids, locate(linked, ids))


def check_distinct(ids: pl.Series, place: Place) -> None:
    """Raise an error if a node has two rows."""
    again = ids.is_duplicated() & ~ids.is_first_distinct()
    if again.any():
        at = int(again.arg_max() or 0)
        first = int((ids == ids[at]).arg_max() or 0)
        line = first if place.lines is None else int(place.lines[first]) - place.first_line
        before = f"line {place.first_line + line}" if place.first_line else f"row {line}"
        raise place.error(at, f"node {ids[at]!r} already has {before}; remove one of the two")


def warn_without_row(linked: np.ndarray, absent: np.ndarray, place: Place) -> None:
    """Warn if nodes of the edges, marked in `absent`, have no row."""
    if absent.any():
        examples = ", ".join(repr(node) for node in linked[absent][:3].tolist())
        found = f"{place.where}: {np.count_nonzero(absent):,} of the {len(linked):,} nodes of the edges have no row,"
        warnings.warn(f"{found} such as {examples}; they get no attributes", stacklevel=5)


def _labels(series: pl.Series, places: np.ndarray, nodes: int) -> np.ndarray:
    """Return one label per node, "" if it has no row or no value."""
    values = plain(series)
    if values is None:
        raise GraphError(f"the labels in column '{series.name}' are {series.dtype}; give text or numbers")
    found = as_texts(values).fill_null("").to_numpy().astype(str)
    labels = np.zeros(nodes, found.dtype)
    labels[places] = found
    return labels


MAX_KEYS = 5  # keys that a warning lists


class NodeData(NamedTuple):
    """The data of the nodes of another library: a dict per node, and the name of the graph for messages."""

    nodes: list[dict[str, Any]]
    where: str

    def column(self, key: str) -> list[Any]:
        """Return the value of every node for a key, None if it has none."""
        return [node.get(key) for node in self.nodes]

    def names(self) -> list[str]:
        """Return the keys of all nodes, in the order they appear."""
        return list(dict.fromkeys(key for node in self.nodes for key in node))

    def warn_unused(self, used: set[str]) -> None:
        """Warn if nodes have keys that are not used."""
        others = [repr(key) for key in self.names() if key not in used]
        if others:
            more = ", …" if len(others) > MAX_KEYS else ""
            warnings.warn(
                f"nodes of {self.where} have data under {', '.join(others[:MAX_KEYS])}{more}, which is not used; to "
                "use it, give its keys, as in attributes=['age', 'country'] or label='club'",
                stacklevel=4,
            )


def attributes_of(data: NodeData, keys: Sequence[str]) -> tuple[sparse.csr_array, np.ndarray, Encoder]:
    """Return the values of some keys as attributes (nodes, attributes), the attributes' names, and the encoder."""
    known, columns = data.names(), []
    for key in keys:
        if key not in known:
            raise GraphError(f"no node of {data.where} has {key!r}; take {', '.join(map(repr, known)) or 'none'}")
        values = [None if is_missing(value) else value for value in data.column(key)]
        columns.append(
            frames.series_of(key, [value.item() if isinstance(value, np.generic) else value for value in values])
        )
    table = pl.DataFrame(columns)
    encoder = Encoder.fit(table, infer_columns(table))
    return (*encoder.encode(table), encoder)
