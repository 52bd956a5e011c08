"""What to say of an id that no node has."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np

CLOSE = 50_000  # ids at most that are compared with one that is unknown


def about_unknown(ids: np.ndarray, node: Any) -> str:
    """Say which ids there are, and which of them look like the one that was given.

    >>> about_unknown(np.array(["ann", "bob"]), "Ann")
    "no node 'Ann' here; ids are strings, such as 'ann', 'bob'; did you mean 'ann'?"
    """
    kind = "integers" if ids.dtype.kind == "i" else "strings"
    known = ", ".join(map(repr, ids[:3].tolist())) or "none"
    message = f"no node {node!r} here; ids are {kind}, such as {known}"
    close = near_misses(ids, node)
    return f"{message}; did you mean {' or '.join(map(repr, close))}?" if close else message


def near_misses(ids: np.ndarray, node: Any) -> list[Any]:
    """Ids that are spelled much like one, upper case or lower; they begin alike, so that few are compared."""
    text = str(node).casefold()
    if not text or not isinstance(node, str | int | np.integer):
        return []
    names = ids if ids.dtype.kind == "U" else ids.astype(str)
    alike = np.flatnonzero(np.char.startswith(names, text[0]) | np.char.startswith(names, text[0].upper()))[:CLOSE]
    spelled: dict[str, int] = {}
    for row in alike.tolist():
        spelled.setdefault(str(names[row]).casefold(), row)
    return [ids[spelled[name]].item() for name in get_close_matches(text, spelled)]
