"""Vectors as Python and notebooks show them: what made them, how many there are, the first few."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

FEW = 5  # nodes, and numbers of a vector, that a notebook shows


def as_text(ids: np.ndarray, dim: int, provenance: dict[str, Any], *, nodes: int | None = None) -> str:
    """The vectors in one line; `nodes` says how many there are where only the first ids are given.

    >>> as_text(np.arange(4), 2, {"method": "line", "data": {"name": "cora"}})
    'Embedding(line of cora: 4 × 2; ids 0, 1, 2, …)'
    """
    known = ", ".join(map(repr, ids[:3].tolist())) + (", …" if len(ids) > 3 else "")
    return f"Embedding({_title(len(ids) if nodes is None else nodes, dim, provenance)}; ids {known})"


def as_html(ids: np.ndarray, vectors: np.ndarray, provenance: dict[str, Any]) -> str:
    """A table of the first nodes; whatever comes from a file is escaped."""
    titles = "".join(f"<th>d{at}</th>" for at in range(min(FEW, vectors.shape[1])))
    rows = "".join(
        f"<tr><th>{escape(str(node))}</th>" + "".join(f"<td>{number:.4g}</td>" for number in vector[:FEW]) + "</tr>"
        for node, vector in zip(ids[:FEW].tolist(), vectors[:FEW], strict=True)
    )
    caption = escape(_title(len(ids), vectors.shape[1], provenance))
    return f"<table><caption>{caption}</caption><tr><th>id</th>{titles}</tr>{rows}</table>"


def _title(nodes: int, dim: int, provenance: dict[str, Any]) -> str:
    data = provenance.get("data")
    graph = data.get("name") if isinstance(data, dict) else None
    return f"{provenance.get('method', 'vectors')}{f' of {graph}' if graph else ''}: {nodes:,} × {dim}"
