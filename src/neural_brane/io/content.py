"""What a file is, by its first bytes, whatever its name."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from neural_brane.io.text_blocks import Encoding, find_encoding

_SIGNATURES = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow stream"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x93NUMPY", "NumPy array"),
    (b"\x89HDF\r\n", "HDF5"),
    (b"SQLite format 3\0", "SQLite"),
    (b"%PDF", "PDF"),
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
)
# Blanks within a line never cross its end, and a comment never holds another's end: there is one way to match, at most.
_GML = re.compile(
    r"([^\S\n]*(#.*|(Creator|Version|comment)\b.*)?\n)*[^\S\n]*(graph|Creator|Version)\s*(\[|\"|$)", re.IGNORECASE
)
_MARKUP = re.compile(r"\s*(<!--((?!-->).)*-->\s*)*<(\?xml|!doctype|[a-z])", re.IGNORECASE | re.DOTALL)

# How to go on with a file that is no table and no edge list.
ADVICE = {
    "zip": "unpack it and give the file in it; a graph of ours ends in .npz",
    "NumPy array": "give a graph file; an array of pairs goes to AttributedGraph.from_edges",
    "GML": "name it so that it ends in .gml",
    "GraphML": "name it so that it ends in .graphml",
    "GEXF": "name it so that it ends in .gexf",
    "Matrix Market": "name it so that it ends in .mtx",
    "JSON": "write JSON lines, one object per line, as in: jq -c '.[]' FILE > FILE.jsonl",
    "gzip": "it is compressed twice; unpack it once",
    "zstd": "it is compressed twice; unpack it once",
}
_SAVE = "save it as UTF-8 text (CSV), Parquet or JSON lines"


class Content(NamedTuple):
    """A kind of content ("text" where it is none of the known) and, of text, its encoding and its beginning."""

    kind: str
    encoding: Encoding
    text: str

    @property
    def advice(self) -> str:
        """What to do with a file of this kind where a table is needed."""
        return ADVICE.get(self.kind, _SAVE)


def recognise(head: bytes, encoding: Encoding | None = None) -> Content:
    """Recognise a file by its first bytes, in the encoding given or else found."""
    encoding = encoding or find_encoding(head)
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return Content(kind, encoding, "")
    text = head.decode(encoding.name, "replace").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        return Content("binary", encoding, "")
    return Content(_kind_of_text(text), encoding, text)


def _kind_of_text(text: str) -> str:
    if text.startswith("%%MatrixMarket"):
        return "Matrix Market"
    if _MARKUP.match(text):
        lower = text.lower()
        return "GraphML" if "<graphml" in lower else "GEXF" if "<gexf" in lower else "XML"
    if _GML.match(text):
        return "GML"
    start = text.lstrip()
    if start.startswith("{"):
        return _kind_of_json(start)
    return "JSON" if re.match(r"\[\s*[\[{]", start) else "text"


def _kind_of_json(text: str) -> str:
    """Tell JSON lines from one JSON object over several lines or with a graph in it, and both from text."""
    first = text.partition("\n")[0]
    found: Any = None
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return "JSON" if re.match(r"\{\s*(\"|$)", first) else "text"
    graph = isinstance(found, dict) and "nodes" in found and ("links" in found or "edges" in found)
    return "JSON" if graph else "JSON lines"
