"""Graphs as LINQS text: citations in a .cites file, and the words and labels of papers in a .content file.

`.content`: one paper per line, `id value value ... label`, with the same number of values on every line.
`.cites`: one citation per line, `cited citing`. Both are separated by tabs or by spaces.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.files.text import fail, read_table, read_text
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Rules, assemble
from neural_brane.graph.build import canonical
from neural_brane.graph.ids import locate


def read_linqs(cites: Path, content: Path, rules: Rules) -> AttributedGraph:
    """Read a pair of .cites and .content files; papers keep the order of the .content file.

    Ids are strings, as LINQS mixes numbers and names; attributes are numbered by column.
    """
    ids, attributes, labels = _read_content(content)
    ends = _read_cites(cites, content, ids)
    adjacency = assemble(ends, None, len(ids), rules)
    if adjacency.nnz == 0:
        raise GraphError(f"{cites}: all citations are of a paper by itself; keep self-loops or add edges")
    return AttributedGraph(adjacency, attributes, ids, np.arange(attributes.shape[1]), labels, cites.stem)


def _read_cites(path: Path, content: Path, ids: np.ndarray) -> np.ndarray:
    """Return the citations as an array of pairs of positions in ids."""
    table = read_table(read_text(path, ".cites file"), ["cited", "citing", "more"])
    bad = table["citing"].is_null() | table["more"].is_not_null()
    if bad.any():
        line = table["line"][bad.arg_true()[0]]
        fail(path, line, "the line does not have two columns; write one citation per line, as 'cited citing'")
    ends = np.stack([locate(ids, table[column]) for column in ("cited", "citing")], axis=1)
    if (ends < 0).any():
        row, column = np.argwhere(ends < 0)[0]
        paper = table.row(row)[1 + column]
        fail(
            path,
            table["line"][int(row)],
            f"paper '{paper}' has no line in {content.name}; add one there, or remove this line",
        )
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
            fail(path, line, f"the line has {len(words)} columns; expected {expected}")
        if words[0] in papers:
            fail(path, line, f"paper '{words[0]}' already has line {papers[words[0]]}; remove one of the two")
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
    """Read a value of the .content file, which must be finite."""
    try:
        value = float(word)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        fail(path, line, f"value '{word}' is not a finite number; write 'id value value ... label'")
    return value
