"""Typed values of XML files: what GraphML and GEXF call integers, numbers, truths and text."""

from __future__ import annotations

from typing import Any

from neural_brane.io.graph_draft import GraphDraft

WHOLE = ("int", "integer", "long", "short", "byte")
FRACTIONS = ("float", "double", "bigdecimal")
TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def convert(kind: str, text: str, draft: GraphDraft, line: int) -> Any:
    """A value of a type; None where the text is empty and the type is not text."""
    kind, word = kind.lower(), text.strip()
    if kind not in (*WHOLE, *FRACTIONS, "boolean"):
        return text
    if not word:
        return None
    try:
        if kind == "boolean":
            return TRUTHS[word.lower()]
        return int(word) if kind in WHOLE else float(word)
    except (KeyError, ValueError):
        draft.fail(line, f"{word[:60]!r} is not of the type {kind} that its attribute has; mend the value or the type")


def integer_ids(words: list[str]) -> bool:
    """Tell whether all words are integers of 64 bits, written the usual way: then these are the ids."""
    import polars as pl

    from neural_brane.graph.ids import all_integers

    return bool(words) and all_integers(pl.Series(words, dtype=pl.String))
