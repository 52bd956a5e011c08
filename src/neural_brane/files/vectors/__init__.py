"""Vectors to files and back: one module per format, and `formats` over them all.

A module declares its formats as `VectorFormat("SUFFIXES", "what is in the file", …)`. A new format is one new module:
lists, help, tests and the table of the documentation find it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

DECLARED = re.compile(r'= VectorFormat\(\s*"([^"]+)",\s*"([^"]+)"')


@cache
def declared_formats() -> dict[str, str]:
    """Return suffixes and what is in the files, read off the sources: help needs no NumPy, and comes at once.

    >>> declared_formats()[".npz"]
    'arrays vectors, ids and provenance'
    """
    sources = (path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    return dict(sorted(found for source in sources for found in DECLARED.findall(source)))


def list_suffixes() -> str:
    """Return the suffixes of all formats in a line, as in '.csv, .npz or .txt'."""
    *first, last = " ".join(declared_formats()).split()
    return f"{', '.join(first)} or {last}"
