"""Graph files as text: one edge per line, with or without a header. `graph_text` states the format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.ids import encode
from neural_brane.io.claims import check_count
from neural_brane.io.lines import INTEGER, all_integers, fail, read_table, read_text

if TYPE_CHECKING:
    import polars as pl

CLAIM = "mend it, give every node a line of its own or, if the line is an edge, move it further down"
EXPECTED = "write one edge per line, as 'u v' or 'u v weight'"


@dataclass(frozen=True, slots=True)
class Edges:
    """What a graph file says: the ends of its edges as positions in ids, and their weights.

    unnamed: how many nodes the header counts that the file does not name.
    """

    ids: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    weights: np.ndarray
    unnamed: int


def read_edges(path: Path) -> Edges:
    """Read a graph file and check every line."""
    import polars as pl

    table = read_table(read_text(path, "graph file"), ["u", "v", "weight", "more"])
    numbers = _numbers(table)
    nodes = _header(path, table, numbers)
    if nodes is not None:
        header, table = table["line"][0], table.slice(1)
        numbers = None if numbers is None else numbers[1:]
        check_count(nodes, len(table), f"{path}:{header}: a header that counts nodes", CLAIM, GraphError)
    _check_columns(path, table)
    if numbers is None:
        _check_kinds(path, table, nodes)
        flat = pl.concat([table["u"], table["v"].fill_null(table["u"])])
        codes, ids = encode(flat.gather(np.arange(2 * len(table)).reshape(2, -1).T.ravel()))
    elif nodes is not None:
        _check_range(path, table, numbers, nodes)
        codes, ids = numbers, np.arange(nodes)
    else:
        codes, ids = encode(numbers.ravel())
    unnamed = 0 if nodes is None else nodes - len(ids)
    if unnamed < 0:
        fail(
            path,
            header,
            f"the header announces {nodes} nodes, but the file names {len(ids)}; mend the header",
        )
    linked = table["v"].is_not_null()
    codes = codes.reshape(-1, 2)[linked.to_numpy()]
    return Edges(ids, codes[:, 0], codes[:, 1], _weights(path, table.filter(linked)), unnamed)


def _numbers(table: pl.DataFrame) -> np.ndarray | None:
    """Return both ends of every line as integers, or None if some id is a name; a lone node is both ends."""
    if not (all_integers(table["u"]) and all_integers(table["v"])):
        return None
    first = table["u"].cast(int).to_numpy()
    second = table["v"].fill_null(table["u"]).cast(int).to_numpy()
    return np.stack([first, second], axis=1)


def _header(path: Path, table: pl.DataFrame, numbers: np.ndarray | None) -> int | None:
    """Return the number of nodes if the first line is a header, by the rule that `graph_text` states."""
    line, *words = table.row(0)
    if not (words[0].isdecimal() and (words[1] or "").isdecimal() and words[2] is None):
        return None
    nodes, announced = int(words[0]), int(words[1])
    rest = table.slice(1)
    follow = rest["v"].count()
    weighted = rest["weight"].count() > 0
    fits = numbers is not None and numbers[1:].max(initial=-1) < nodes
    named = numbers is None and not any(rest[end].str.contains(INTEGER).any() for end in ("u", "v"))
    if announced == follow:
        by_chance = not (weighted or fits or named) and announced > nodes * (nodes + 1) // 2
        return None if by_chance else nodes
    if weighted or fits or named:
        fail(
            path,
            line,
            f"the first line reads as a header 'nodes edges' that announces {announced} edges, but {follow} "
            "follow; mend the count, or, if the line is an edge, move it further down",
        )
    return None


def _first(table: pl.DataFrame) -> dict[str, Any] | None:
    """Return the first row, if there is one."""
    return table.row(0, named=True) if len(table) else None


def _check_columns(path: Path, table: pl.DataFrame) -> None:
    """Refuse lines that are too long, files where only some edges have weights, and files without edges."""
    import polars as pl

    if bad := _first(table.filter(pl.col("more").is_not_null())):
        words = " ".join(str(bad[column]) for column in ("u", "v", "weight", "more"))
        fail(path, bad["line"], f"the line has more than three columns ('{words}'); {EXPECTED}")
    edges = table.filter(pl.col("v").is_not_null())
    if len(edges) == 0:
        raise GraphError(f"{path}: the graph has no edges; {EXPECTED}")
    plain = pl.col("weight").is_null()
    if edges["weight"].null_count() not in (0, len(edges)):
        usual = edges.row(0, named=True)
        odd = edges.filter(plain if usual["weight"] is not None else ~plain).row(0, named=True)
        has, lacks = ("has a", "has none") if odd["weight"] is not None else ("has no", "has one")
        fail(
            path,
            odd["line"],
            f"the edge {has} weight, while line {usual['line']} {lacks}; weigh all edges or none",
        )


def _check_kinds(path: Path, table: pl.DataFrame, nodes: int | None) -> None:
    """Refuse column titles and, under a header, names among numbers."""
    import polars as pl

    is_name = {end: ~pl.col(end).fill_null("0").str.contains(INTEGER) for end in ("u", "v")}
    named = table.filter(is_name["u"] | is_name["v"])
    titles = named.filter(is_name["u"] & is_name["v"])
    odd = named.row(0, named=True)
    if nodes is None and len(named) == len(titles) == 1 < len(table) and odd["line"] == table["line"][0]:
        fail(
            path,
            odd["line"],
            f"'{odd['u']} {odd['v']}' are names, while all other ids are numbers; "
            "put # before column titles, or, if the line is an edge, move it further down",
        )
    if nodes is not None and len(named) < len(table):
        fail(
            path,
            odd["line"],
            f"the edge '{odd['u']} {odd['v']}' names a node, while others number them; "
            f"under a header, nodes are all names or all integers from 0 to {nodes - 1}",
        )


def _check_range(path: Path, table: pl.DataFrame, numbers: np.ndarray, nodes: int) -> None:
    """Refuse integers that the header does not allow for."""
    outside = (numbers < 0) | (numbers >= nodes)
    if outside.any():
        at = int(np.argmax(outside.any(axis=1)))
        fail(
            path,
            table["line"][at],
            f"node {numbers[at][outside[at]][0]} is not one of the {nodes} nodes, 0 to {nodes - 1}, that the "
            "header announces; mend the line or the header, or remove the header to use any ids",
        )


def _weights(path: Path, edges: pl.DataFrame) -> np.ndarray:
    """Return the float32 weight of every edge: 1 where the file has none."""
    words = edges["weight"]
    if words.null_count() == len(edges):
        return np.ones(len(edges), dtype=np.float32)
    with np.errstate(over="ignore", under="ignore"):
        weights = words.cast(float, strict=False).to_numpy().astype(np.float32)
    bad = ~((weights > 0) & np.isfinite(weights))
    if bad.any():
        at = int(np.argmax(bad))
        fail(path, edges["line"][at], f"weight '{words[at]}' is not a finite number above 0; {EXPECTED}")
    return weights
