"""Graphs as text: a file of edges and, beside it, files of attributes and of labels.

Graph file: one edge per line, `u v` or `u v weight`. A line with one id alone is a node without edges.
Attribute file: one node per line, `node id:value id:value ...`; an `id` alone means `id:1`.
Label file: one node per line, `node<TAB>label`.

Words are separated by spaces, tabs or commas; blank lines and lines that begin with # do not count. Ids are
integers or names; if any is a name, all are read as names.

A graph file may begin with a header, `nodes edges`. The first line is taken for one when it is two integers
and the second is the number of edges that follow, except where this must be chance: where the first number of
nodes has no room for the second number of edges, as in the edge list `1 2`, `2 3`, `3 1`. It is an error when
the first line looks like a header in every other way and only the count is wrong.

With a header, nodes are either the integers 0 to nodes - 1, with edges or without, or names; names that have
no edge may come from the attribute or the label file. Without a header, the nodes are those that the graph
file names.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Unpack

import numpy as np

from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops, assemble_ends
from neural_brane.graph.build import attribute_matrix
from neural_brane.io import attributes as attribute_file
from neural_brane.io import labels as label_file
from neural_brane.io.edge_table import EdgeOptions, Edges
from neural_brane.io.edges import read_edges
from neural_brane.io.frames import stem


def read_graph_text(
    path: Path,
    *,
    attributes: Path | None = None,
    labels: Path | None = None,
    duplicates: Duplicates = "max",
    self_loops: SelfLoops = "keep",
    **columns: Unpack[EdgeOptions],
) -> AttributedGraph:
    """Read a graph file, text or a table, and, if given, its attribute and label files."""
    edges = read_edges(path, **columns)
    if edges.doubt and attributes is None and labels is None:
        warnings.warn(edges.doubt, ReadingWarning, stacklevel=3)
    rows = None if attributes is None else attribute_file.read_rows(attributes)
    pairs = None if labels is None else label_file.read_pairs(labels)
    ids = _all_ids(path, edges, [part.nodes.to_list() for part in (rows, pairs) if part is not None])
    matrix, names = attribute_matrix(None, None, ids) if rows is None else attribute_file.to_matrix(rows, ids)
    adjacency = assemble_ends(edges.ends, edges.weights, len(ids), duplicates=duplicates, self_loops=self_loops)
    del edges  # in a large graph, as large as the adjacency
    if adjacency.nnz == 0:
        raise GraphError(f"{path}: all edges are self-loops; keep them (self_loops='keep') or add edges")
    found = None if pairs is None else label_file.to_array(pairs, ids)
    return AttributedGraph(adjacency, matrix, ids, names, found, stem(path))


def _all_ids(path: Path, edges: Edges, named: list[list[str]]) -> np.ndarray:
    """Return the ids of all nodes: those of the graph file, then those that only the other files name."""
    if edges.unnamed == 0:
        return edges.ids
    known = dict.fromkeys(edges.ids.tolist())
    others = [node for nodes in named for node in dict.fromkeys(nodes) if node not in known]
    missing = list(dict.fromkeys(others))[: edges.unnamed]
    if len(missing) < edges.unnamed:
        linked = len(edges.ids)
        raise GraphError(
            f"{path}: the header announces {linked + edges.unnamed} nodes, but only "
            f"{linked + len(missing)} are named; "
            "mend the header, or give each node without edges a line of its own"
        )
    return np.concatenate([edges.ids, np.array(missing)])
