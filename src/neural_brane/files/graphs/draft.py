"""A graph while its file is read, and the parts of a graph as text."""

from __future__ import annotations

import json
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops, assemble
from neural_brane.graph.build import attribute_matrix, canonical, node_ids
from neural_brane.graph.encoder import Encoder
from neural_brane.graph.frames import series_of
from neural_brane.graph.labels import node_labels
from neural_brane.graph.nodes import encode_table

# The parts of a graph as text, for the formats that are text: numbers that read back as the same float32.


def spell_numbers(values: np.ndarray) -> np.ndarray:
    """Float32 numbers in as few digits as read back the same, also through float64.

    >>> spell_numbers(np.array([0.1, 3.0], np.float32)).tolist()
    ['0.1', '3.0']
    """
    words = values.astype(str)
    lost = words.astype(np.float64).astype(np.float32) != values
    words[lost] = values[lost].astype(np.float64).astype(str)
    return words


def spelled_edges(graph: AttributedGraph) -> Iterator[tuple[int, int, str]]:
    """Every edge once, as the rows of its ends and its weight."""
    entries = graph.adjacency.tocoo()
    upper = entries.row <= entries.col
    rows, columns, weights = entries.row[upper], entries.col[upper], spell_numbers(entries.data[upper])
    return zip(rows.tolist(), columns.tolist(), weights.tolist(), strict=True)


def spelled_attributes(graph: AttributedGraph) -> Iterator[str]:
    """The attributes of every node as JSON, "" where it has none: names alone where all amounts are 1."""
    matrix = graph.attributes
    names = [json.dumps(str(name), ensure_ascii=False) for name in graph.attribute_names.tolist()]
    starts, columns, words = matrix.indptr.tolist(), matrix.indices.tolist(), spell_numbers(matrix.data).tolist()
    for start, stop in pairwise(starts):
        if start == stop:
            yield ""
        elif all(word == "1.0" for word in words[start:stop]):
            yield f"[{', '.join(names[column] for column in columns[start:stop])}]"
        else:
            pairs = zip(columns[start:stop], words[start:stop], strict=True)
            yield "{" + ", ".join(f"{names[column]}: {word}" for column, word in pairs) + "}"


def spelled_names(graph: AttributedGraph) -> str:
    """The names of all attributes as a JSON list; it tells 7 from "7"."""
    return json.dumps(graph.attribute_names.tolist(), ensure_ascii=False)


# A graph while its file is read: nodes and edges as they are named, one after another, and data of nodes by key.
#
# Our own files hold the attributes of a node as JSON under one key, `attributes`: the names, or names with amounts.
# Data under other keys comes from other programs; it becomes attributes as the columns of a table of nodes do.

ATTRIBUTES = "attributes"
SMALLEST, LARGEST = 2.0**-150, 2.0**128 - 2.0**103  # what lies between is neither 0 nor infinite as float32


class Rules(NamedTuple):
    """How edges are merged, and under which key a node's label stands."""

    duplicates: Duplicates = "max"
    self_loops: SelfLoops = "keep"
    label: str = "label"


class GraphDraft:
    """What a file has said so far. Nodes are known by the word that the file has for them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[Any, int] = {}  # of every node that was named, by a node or by an edge
        self.order = array("q")  # rows in the order in which nodes were declared
        self.declared: set[int] = set()
        self.ends = array("q")
        self.weights = array("d")
        self.columns: dict[str, dict[int, Any]] = {}
        self.names: list[Any] | None = None  # of all attributes, where the file lists them
        self.labelled = False  # whether the file says that there are labels, even where no node has one

    def fail(self, line: int, message: str) -> NoReturn:
        """Raise an error with file and line."""
        raise GraphError(f"{self.path}:{line}: {message}")

    def node(self, word: Any, line: int) -> int:
        """Declare a node; return its row."""
        row = self.rows.setdefault(word, len(self.rows))
        if row in self.declared:
            self.fail(line, f"node {word!r} stands here for the second time; keep one of the two")
        self.declared.add(row)
        self.order.append(row)
        return row

    def edge(self, source: Any, target: Any, weight: Any, line: int) -> None:
        """Add an edge between nodes that may be declared later."""
        if source is None or target is None:
            self.fail(line, "an edge lacks its source or its target; give it both")
        try:
            number = 1.0 if weight is None else float(weight)
        except (TypeError, ValueError, OverflowError):
            self.fail(line, f"the weight of an edge is {weight!r}; give a number above 0")
        if not SMALLEST < number < LARGEST:
            self.fail(line, f"the weight of an edge is {weight!r}; give a number above 0 that float32 can hold")
        self.weights.append(number)
        self.ends.extend(self.rows.setdefault(word, len(self.rows)) for word in (source, target))

    def value(self, row: int, key: str, value: Any) -> None:
        """Note what a node has under a key."""
        self.columns.setdefault(key, {})[row] = value

    def fill(self, key: str, default: Any) -> None:
        """Give nodes that have nothing under a key its default."""
        column = self.columns.setdefault(key, {})
        for row in self.order:
            column.setdefault(row, default)

    def list_names(self, text: str, line: int) -> None:
        """Take the list of all attributes' names, as JSON."""
        names = self._json(text, f"line {line}")
        if not isinstance(names, list):
            self.fail(line, f"the names of attributes are {text[:40]!r}; give a JSON list")
        self.names = names

    def finish(self, rules: Rules, name_of: Callable[[Any], Any] = lambda word: word) -> AttributedGraph:
        """The graph; `name_of` gives a node's id by the word that the file has for it."""
        words = list(self.rows)
        if len(self.declared) < len(words):
            stranger = next(word for row, word in enumerate(words) if row not in self.declared)
            raise GraphError(f"{self.path}: an edge names node {stranger!r}, which the file does not declare; add it")
        order = np.array(self.order, dtype=np.int64)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        try:
            return self._build(rules, node_ids([name_of(words[row]) for row in order]), order, rank)
        except GraphError as error:
            own = str(error).startswith(f"{self.path}:")
            raise error if own else GraphError(f"{self.path}: {error}") from None

    def _build(self, rules: Rules, ids: np.ndarray, order: np.ndarray, rank: np.ndarray) -> AttributedGraph:
        ends = rank[np.array(self.ends, dtype=np.int64).reshape(-1, 2)]
        weights = np.array(self.weights)
        adjacency = assemble(
            ends[:, 0], ends[:, 1], weights, len(ids), duplicates=rules.duplicates, self_loops=rules.self_loops
        )
        columns = {key: self._in_order(column, order) for key, column in self.columns.items()}
        given = columns.pop(rules.label, None)
        labels = node_labels([None] * len(ids) if given is None and self.labelled else given, ids)
        matrix, names, encoder = self._attributes(columns, ids)
        return AttributedGraph(adjacency, matrix, ids, names, labels, graph_name(self.path), encoder)

    def _in_order(self, column: dict[int, Any], order: np.ndarray) -> list[Any]:
        return [column.get(row) for row in order.tolist()]

    def _attributes(
        self, columns: dict[str, list[Any]], ids: np.ndarray
    ) -> tuple[sparse.csr_array, np.ndarray, Encoder | None]:
        """The attributes under our own key or, where there are none, of the data under all other keys."""
        own = columns.get(ATTRIBUTES)
        bags = None if own is None else [self._bag(text, node) for text, node in zip(own, ids.tolist(), strict=True)]
        if self.names is None and (bags is None or any(bag is False for bag in bags)):
            if not columns:
                return (*attribute_matrix(None, None, ids), None)
            import polars as pl

            return encode_table(pl.DataFrame([series_of(key, values) for key, values in columns.items()]))
        columns.pop(ATTRIBUTES, None)
        if columns:
            others = ", ".join(map(repr, list(columns)[:5]))
            warnings.warn(f"{self.path}: nodes have attributes of their own; {others} are left out", stacklevel=5)
        return (*self._matrix(bags or [], ids), None)

    def _bag(self, text: Any, node: Any) -> dict[str, Any] | bool | None:
        """The attributes of a node by name, None where it has none; False where this is not what we write."""
        if text is None:
            return None
        try:
            bag = json.loads(text) if isinstance(text, str) else text
        except (ValueError, RecursionError):
            bag = False
        if isinstance(bag, list):
            return dict.fromkeys(map(str, bag), 1.0)
        if isinstance(bag, dict):
            return bag
        if self.names is not None:
            raise GraphError(f"the attributes of node {node!r} are {str(text)[:40]!r}; give a JSON list or object")
        return False

    def _matrix(self, bags: Iterable[Any], ids: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
        """The matrix of bags of attributes, with a column for every name that the file lists, or that occurs."""
        by_node = {node: bag for node, bag in zip(ids.tolist(), bags, strict=False) if bag}
        if self.names is None:
            return attribute_matrix(by_node, None, ids)
        places = {str(name): at for at, name in enumerate(self.names)}
        rows, columns, values = array("q"), array("q"), []
        for row, bag in enumerate(bags):
            for name, value in (bag or {}).items():
                if name not in places:
                    raise GraphError(f"attribute {name!r} of node {ids[row].item()!r} is not in the list of names")
                rows.append(row)
                columns.append(places[name])
                values.append(value)
        if not all(isinstance(value, int | float) for value in values):
            raise GraphError("the amount of some attribute is no number; give names with numbers, as in {'age': 31}")
        shape = (len(ids), len(self.names))
        entries = sparse.coo_array((np.array(values, dtype=float), (np.array(rows), np.array(columns))), shape)
        return attribute_matrix(canonical(entries, "attributes"), self.names, ids)

    def _json(self, text: str, where: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise GraphError(f"{self.path}: {where} does not hold JSON ({error}); write the file again") from None


def graph_name(path: Path) -> str:
    """What a graph is called that comes from a file: its name without its endings."""
    return path.name.removesuffix(".gz").removesuffix(".zst").rpartition(".")[0] or path.stem
