"""Read graphs from text: edges with optional files of attributes and labels, and the two files of LINQS."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Never, Unpack

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.files import tables
from neural_brane.files.graphs.edge_table import EdgeOptions, Edges, read_edge_table
from neural_brane.files.nodes import parse_rows, read_pairs, to_array, to_matrix
from neural_brane.files.reading import HEAD, Unpacked, check_count, recognise
from neural_brane.files.tables import fail, read_table, read_text, stem
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Rules, assemble
from neural_brane.graph.build import attribute_matrix, canonical
from neural_brane.graph.frames import known_pair
from neural_brane.graph.ids import INTEGER, MISSING, all_integers, as_integers, encode, locate
from neural_brane.graph.lazy import pl

FIX_HEADER = "correct it, give every node its own line or, if the line is an edge, move it further down"
EXPECTED = "write one edge per line, as 'u v' or 'u v weight'"


def read_edges(path: Path, **options: Unpack[EdgeOptions]) -> Edges:
    """Read a graph file, a table or lines of words, and check every line; `options` are for tables only."""
    with Unpacked(path, "graph file") as file:
        content = recognise(file.head(HEAD))
        given = any(value is not None for value in options.values())
        if content.kind in tables.TYPED or (content.kind == "text" and (given or is_separated(path, content.text))):
            return read_edge_table(file, **options)
        if given:
            raise GraphError(f"{path}: the graph file is {content.kind}, not a table; leave out the column options")
        return _read_lines(file)


def is_separated(path: Path, text: str) -> bool:
    """Return whether text is a table with a separator, rather than lines of words such as `ann,bob` or `ann bob`."""
    text = "\n".join(line for line in text.split("\n")[: tables.SAMPLE] if not line.lstrip().startswith("#"))
    suffix = tables.table_suffix(path)
    separator = tables.find_separator(text, tables.NAMED.get(suffix, ()))
    if separator is None:
        return False
    rows = tables.split_records(text, separator)
    spaced = any(" " in field and re.search(r"[^\W\d]", field) for row in rows for field in row)
    words = [re.findall(r"[^\s,]+", line) for line in text.split("\n") if line.strip()]
    inside = {word.count(separator) for line in words for word in line}
    if suffix in tables.NAMED or '"' in text or known_pair(rows[0]) or (spaced and inside != {1}):
        return True
    return any(len(line) not in (2, 3) for line in words)


def _read_lines(file: Unpacked) -> Edges:
    """Read lines `u v` or `u v weight`, with or without a header."""
    path = file.path
    table = read_table(read_text(file, "graph file"), ["u", "v", "weight", "more"])
    whole = {end: as_integers(table[end]) for end in ("u", "v")}
    table = table.with_columns(**{end: ids.cast(pl.String) for end, ids in whole.items() if ids is not None})
    numbers = _numbers(table)
    nodes = _header(path, table, numbers)
    if nodes is not None:
        header, table = table["line"][0], table.slice(1)
        numbers = None if numbers is None else numbers[1:]
        check_count(nodes, len(table), f"{path}:{header}: the number of nodes in the header", FIX_HEADER, GraphError)
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
    if (unnamed := 0 if nodes is None else nodes - len(ids)) < 0:
        fail(path, header, f"the header announces {nodes} nodes, but the file names {len(ids)}; correct the header")
    linked = table["v"].is_not_null()
    codes = codes.reshape(-1, 2)[linked.to_numpy()]
    description = "lines of words" + (f" under a header, '{nodes} {len(codes)}'" if nodes is not None else "")
    edges = table.filter(linked)
    weights = None if edges["weight"].null_count() == len(edges) else check_weights(path, edges)
    warning = ""
    if nodes is not None and numbers is not None and weights is None and int(numbers.max()) < nodes - 1:
        warning = header_warning(path, nodes, len(numbers))
    return Edges(ids, codes, weights, unnamed, description, warning)


def header_warning(path: Path, nodes: int, edges: int) -> str:
    """Return a warning that the header could be an edge: it counts more nodes than the lines below it name."""
    counts = f"{nodes} nodes, 0 to {nodes - 1}, and {edges} edges; if it is an edge, move it further down"
    return f"{path}: the first line, '{nodes} {edges}', is read as a header: {counts}"


def refuse_header(path: Path, line: int, announced: int, follow: int) -> Never:
    """Raise the error for a header with a wrong number of edges."""
    found = f"the first line reads as a header 'nodes edges' that announces {announced} edges, but {follow} follow"
    fail(path, line, f"{found}; correct the count or, if the line is an edge, move it further down")


def _numbers(table: pl.DataFrame) -> np.ndarray | None:
    """Return the ids (lines, 2) as integers, or None if some id is a name; a node without edges is both ends."""
    if not (all_integers(table["u"]) and all_integers(table["v"])):
        return None
    return np.stack([ids.cast(int).to_numpy() for ids in (table["u"], table["v"].fill_null(table["u"]))], axis=1)


def _header(path: Path, table: pl.DataFrame, numbers: np.ndarray | None) -> int | None:
    """Return the number of nodes if the first line is a header, else None."""
    line, *words = table.row(0)
    if words[2] is not None or not all(re.fullmatch("[0-9]{1,18}", word or "") for word in words[:2]):
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
        refuse_header(path, line, announced, follow)
    return None


def _check_columns(path: Path, table: pl.DataFrame) -> None:
    """Refuse lines that are too long, files where only some edges have weights, and files without edges."""
    if bad := next(table.filter(pl.col("more").is_not_null()).iter_rows(named=True), None):
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
        fail(path, odd["line"], f"the edge {has} weight, but line {usual['line']} {lacks}; weigh all edges or none")


def _check_kinds(path: Path, table: pl.DataFrame, nodes: int | None) -> None:
    """Refuse column titles, missing ids and, under a header, names among numbers."""
    for end in ("u", "v"):
        if bad := next(table.filter(pl.col(end).is_in(MISSING)).iter_rows(named=True), None):
            fail(path, bad["line"], f"'{bad[end]}' means a missing value, and an edge needs two nodes; remove the line")
    first = table.row(0, named=True)
    if nodes is None and len(first["u"]) > 1 and known_pair([first["u"], first["v"] or ""]):
        fail(path, first["line"], f"'{first['u']} {first['v']}' are column titles; put # before them")
    is_name = {end: ~pl.col(end).fill_null("0").str.contains(INTEGER) for end in ("u", "v")}
    named = table.filter(is_name["u"] | is_name["v"])
    if not len(named):  # integers beyond 64 bits are names
        named = table.head(1)
    titles = named.filter(is_name["u"] & is_name["v"])
    odd = named.row(0, named=True)
    if nodes is None and len(named) == len(titles) == 1 < len(table) and odd["line"] == table["line"][0]:
        fail(
            path,
            odd["line"],
            f"'{odd['u']} {odd['v']}' are names, but all other ids are numbers; "
            "put # before column titles or, if the line is an edge, move it further down",
        )
    if nodes is not None and len(named) < len(table):
        fail(
            path,
            odd["line"],
            f"the edge '{odd['u']} {odd['v']}' contains a name, but other ids are numbers; "
            f"under a header, give only names or only integers from 0 to {nodes - 1}",
        )


def _check_range(path: Path, table: pl.DataFrame, numbers: np.ndarray, nodes: int) -> None:
    """Refuse integer ids outside the range that the header announces."""
    outside = (numbers < 0) | (numbers >= nodes)
    if outside.any():
        at = int(np.argmax(outside.any(axis=1)))
        fail(
            path,
            table["line"][at],
            f"node {numbers[at][outside[at]][0]} is not one of the {nodes} nodes, 0 to {nodes - 1}, that the "
            "header announces; correct the line or the header, or remove the header to use any ids",
        )


def check_weights(path: Path, edges: pl.DataFrame) -> np.ndarray:
    """Return the float32 weight of every edge; refuse words that are not a finite number above 0."""
    words = edges["weight"]
    with np.errstate(over="ignore", under="ignore"):
        weights = words.cast(float, strict=False).fill_null(np.nan).to_numpy().astype(np.float32)
    bad = ~((weights > 0) & np.isfinite(weights))
    if bad.any():
        at = int(np.argmax(bad))
        fail(path, edges["line"][at], f"weight '{words[at]}' is not a finite number above 0; {EXPECTED}")
    return weights


# Graphs as text: a file of edges and, beside it, files of attributes and of labels.
#
# Graph file: one edge per line, `u v` or `u v weight`. A line with one id alone is a node without edges.
# Attribute file: one node per line, `node id:value id:value ...`; an `id` alone means `id:1`.
# Label file: one node per line, `node<TAB>label`.
#
# Spaces, tabs or commas separate words. Blank lines and lines that begin with # are skipped. Ids are integers or
# names; if one id is a name, all ids are read as names.
#
# A graph file may begin with a header, `nodes edges`. The first line is a header if it is two integers and the
# second is the number of edges that follow. There is one exception: the count matches by chance if that many edges
# do not fit between that many nodes, as in the edge list `1 2`, `2 3`, `3 1`. If the first line looks like a header
# but its number of edges is wrong, that is an error.
#
# With a header, ids are either the integers 0 to nodes - 1, with or without edges, or names; the attribute or label
# file may name nodes without edges. Without a header, only the ids in the graph file are nodes.


def read_graph_text(path: Path, files: dict[str, Path], rules: Rules, columns: EdgeOptions) -> AttributedGraph:
    """Read a graph file, text or a table, with the optional `files` `attributes` and `labels`."""
    edges = read_edges(path, **columns)
    if edges.warning and (edges.titles or not files):
        warnings.warn(edges.warning, ReadingWarning, stacklevel=4)
    rows = None
    if "attributes" in files:
        rows = parse_rows(files["attributes"], read_text(files["attributes"], "attribute file"))
    pairs = read_pairs(files["labels"]) if "labels" in files else None
    ids = _all_ids(path, edges, [part.nodes.to_list() for part in (rows, pairs) if part is not None])
    matrix, names = attribute_matrix(None, None, ids) if rows is None else to_matrix(rows, ids)
    adjacency = assemble(edges.ends, edges.weights, len(ids), rules, spend=True)
    titles = edges.titles
    del edges
    if adjacency.nnz == 0:
        raise GraphError(f"{path}: all edges are self-loops; keep them (self_loops='keep') or add edges")
    found = None if pairs is None else to_array(pairs, ids)
    return AttributedGraph(adjacency, matrix, ids, names, found, stem(path), edge_titles=titles)


def _all_ids(path: Path, edges: Edges, named: list[list[str]]) -> np.ndarray:
    """Return all ids: first those in the graph file, then those that only the other files contain."""
    if edges.unnamed == 0:
        return edges.ids
    known = dict.fromkeys(edges.ids.tolist())
    others = [node for nodes in named for node in dict.fromkeys(nodes) if node not in known]
    missing = list(dict.fromkeys(others))[: edges.unnamed]
    if len(missing) < edges.unnamed:
        linked = len(edges.ids)
        raise GraphError(
            f"{path}: the header announces {linked + edges.unnamed} nodes, but the files name only "
            f"{linked + len(missing)}; correct the header, or give each node without edges its own line"
        )
    return np.concatenate([edges.ids, np.array(missing)])


def read_linqs(cites: Path, content: Path, rules: Rules) -> AttributedGraph:
    """Read a .cites file and its .content file, which gives the order of the papers; ids are strings."""
    ids, attributes, labels = _read_content(content)
    adjacency = assemble(_read_cites(cites, content, ids), None, len(ids), rules)
    if adjacency.nnz == 0:
        raise GraphError(f"{cites}: every paper cites only itself; keep self-loops or add edges")
    return AttributedGraph(adjacency, attributes, ids, np.arange(attributes.shape[1]), labels, cites.stem)


def _read_cites(path: Path, content: Path, ids: np.ndarray) -> np.ndarray:
    """Return the citations (k, 2) as positions in `ids`."""
    table = read_table(read_text(path, ".cites file"), ["cited", "citing", "more"])
    bad = table["citing"].is_null() | table["more"].is_not_null()
    if bad.any():
        line = table["line"][bad.arg_true()[0]]
        fail(path, line, "the line does not have two columns; write one citation per line, as 'cited citing'")
    ends = np.stack([locate(ids, table[column]) for column in ("cited", "citing")], axis=1)
    if (ends < 0).any():
        row, column = np.argwhere(ends < 0)[0]
        paper = table.row(row)[1 + column]
        line = table["line"][int(row)]
        fail(path, line, f"paper '{paper}' has no line in {content.name}; add one there, or remove this line")
    return ends


def _read_content(path: Path) -> tuple[np.ndarray, sparse.csr_array, np.ndarray]:
    """Return the ids, attributes and labels of all papers."""
    papers: dict[str, int] = {}
    labels: list[str] = []
    indices: list[int] = []
    values: list[float] = []
    starts = [0]
    width = 0
    for line, text in enumerate(read_text(path, ".content file").decode().split("\n"), start=1):
        words = text.split("\t") if "\t" in text else text.split()
        if not text.strip():
            continue
        width = width or len(words)
        if len(words) != width or width < 2:
            expected = f"{width} as in the lines before" if papers else "an id, values and a label"
            fail(path, line, f"found {len(words)} columns, expected {expected}")
        if words[0] in papers:
            fail(path, line, f"paper '{words[0]}' appears again, first in line {papers[words[0]]}; remove one line")
        papers[words[0]] = line
        labels.append(words[-1].strip())
        for column, word in enumerate(words[1:-1]):
            if word != "0":
                indices.append(column)
                values.append(_number(path, line, word))
        starts.append(len(indices))
    parts = (np.array(values, dtype=np.float32), np.array(indices, dtype=np.int32), np.array(starts))
    matrix = sparse.csr_array(parts, shape=(len(papers), max(width - 2, 0)))
    return np.array(list(papers)), canonical(matrix, "attributes"), np.array(labels)


def _number(path: Path, line: int, word: str) -> float:
    """Return a value of the .content file as a finite number."""
    try:
        value = float(word)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        fail(path, line, f"value '{word}' is not a finite number; write 'id value value ... label'")
    return value
