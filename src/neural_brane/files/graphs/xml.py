"""Read XML files element by element, and their typed values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Protocol
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from neural_brane.errors import GraphError
from neural_brane.files.graphs.draft import GraphDraft
from neural_brane.files.reading import Unpacked, recognise

# XML files element by element. A document type is refused: with it come entities that grow or read other files.

CHUNK = 1 << 20
DEEPEST = 100  # elements in one another
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


class Elements(Protocol):
    """What reads a document: told of every element's start and, with the text that it holds itself, of its end."""

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""

    def end(self, name: str, text: str, line: int) -> None:
        """An element ends."""


class _Reader:
    """Passes on the events of expat, with the text between them."""

    def __init__(self, path: Path, root: str, elements: Elements) -> None:
        self.path, self.root, self.elements = path, root, elements
        self.open: list[list[str]] = []  # the text of every open element, piece by piece
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text
        self.parser.StartDoctypeDeclHandler = self.refuse_doctype

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(" ")[2]
        if not self.open and local != self.root:
            raise self.error(f"found <{local}>, where <{self.root}> begins a file of this name; rename or convert it")
        if len(self.open) >= DEEPEST:
            raise self.error(f"elements stand in one another more than {DEEPEST} deep; flatten them")
        self.open.append([])
        self.elements.start(local, {key.rpartition(" ")[2]: value for key, value in attributes.items()}, self.line)

    def end(self, name: str) -> None:
        self.elements.end(name.rpartition(" ")[2], "".join(self.open.pop()), self.line)

    def text(self, text: str) -> None:
        self.open[-1].append(text)

    def refuse_doctype(self, *_: Any) -> None:
        raise self.error("found a document type (<!DOCTYPE …>), which can hide other files and endless text; remove it")

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def error(self, message: str) -> GraphError:
        return GraphError(f"{self.path}:{self.line}: {message}")


def read_xml(path: Path, root: str, elements: Elements) -> None:
    """Read a document whose root element has this name, some of it at a time."""
    reader = _Reader(path, root, elements)
    head = b""
    try:
        with Unpacked(path, "graph file") as file:
            while chunk := file.read(CHUNK):
                head = head or chunk[:4096]
                reader.parser.Parse(chunk, False)
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        found = recognise(head).kind if head else "nothing"
        known = "" if found in ("GraphML", "GEXF", "XML") else f", found {found} instead"
        raise reader.error(f"this is not XML as <{root}> files are{known} ({expat.ErrorString(error.code)})") from None
    except (UnicodeDecodeError, LookupError) as error:
        raise reader.error(f"its encoding cannot be read ({error}); save it as UTF-8") from None


def attribute(value: str, path: Path) -> str:
    """A value in quotes, for an attribute of an element."""
    return quoteattr(_allowed(value, path))


def text(value: str, path: Path) -> str:
    """Text for an element."""
    return escape(_allowed(value, path), {"\r": "&#13;"})


def _allowed(value: str, path: Path) -> str:
    if found := FORBIDDEN.search(value):
        raise GraphError(
            f"{path}: XML cannot hold the character {found.group()!r} of {value[:60]!r}; write .npz instead"
        )
    return value


# Typed values of XML files: what GraphML and GEXF call integers, numbers, truths and text.

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
