"""The parts of a graph as text, for the formats that are text: numbers that read back as the same float32."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from neural_brane.graph import AttributedGraph


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
