"""GML, the Graph Modelling Language: words, numbers, strings and lists in brackets.

A node has a number, `id`, and a name, `label`; without names, the numbers are the ids. Written: a node's class under
`class`, its attributes under `attributes` as `neural_brane.files.graphs.draft` says, the list of their names under
`attributeNames` of the graph, and an edge's weight under `weight`; without it, numbers under `value` are read.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from neural_brane.errors import GraphError
from neural_brane.files.graphs.draft import (
    ATTRIBUTES,
    GraphDraft,
    Rules,
    spelled_attributes,
    spelled_edges,
    spelled_names,
)
from neural_brane.files.reading import Unpacked, recognise
from neural_brane.files.storage import atomic
from neural_brane.graph import AttributedGraph

CHUNK = 1 << 20
DEEPEST = 100  # lists in one another
LONGEST = 1 << 28  # characters of a string
TOKEN = re.compile(
    r"""(?P<open>\[)|(?P<close>\])|"(?P<string>[^"]*)"|"""
    r"""(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?=[\s\]\[])|(?P<key>[A-Za-z_]\w*)(?=[\s\[\]"])"""
)
BLANK = re.compile(r"\s*(?:\#[^\n]*\n\s*)*")
ENTITY = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(quot|amp|lt|gt|apos));")
NAMED = {"quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'"}
CLASS = "class"


def read_gml(path: Path, rules: Rules) -> AttributedGraph:
    """Read a GML file."""
    draft = GraphDraft(path)
    found = {"node": 0, "edge": 0, "graph": 0}
    names: dict[Any, Any] = {}
    for name, fields, line in _elements(path):
        found[name] += 1
        if name == "node":
            _take_node(draft, fields, names, line)
        elif name == "edge":
            draft.edge(fields.get("source"), fields.get("target"), fields.get("weight", fields.get("value")), line)
        else:
            if found["graph"] > 1:
                draft.fail(line, "this is the second graph of the file; give each a file of its own")
            if "attributeNames" in fields:
                draft.list_names(str(fields["attributeNames"]), line)
    if not found["graph"]:
        raise GraphError(f"{path}: there is no 'graph [ … ]' in this file; {_found(path)}")
    draft.labelled = rules.label in draft.columns
    named = len(set(names.values())) == len(draft.rows) and len({type(name) for name in names.values()}) == 1
    return draft.finish(rules, names.__getitem__ if named else lambda word: word)


def _take_node(draft: GraphDraft, fields: dict[str, Any], names: dict[Any, Any], line: int) -> None:
    if "id" not in fields:
        draft.fail(line, "a node lacks its id; give it one")
    row = draft.node(fields["id"], line)
    if "label" in fields:
        names[fields["id"]] = fields["label"]
    for key, value in fields.items():
        if key not in ("id", "label"):
            draft.value(row, key, value)


def _elements(path: Path) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Nodes, edges and the graph itself as they end, with the plain values that they hold and the line."""
    lists: list[tuple[str, dict[str, Any]]] = []
    key = ""
    for kind, value, line in _tokens(path):
        if kind == "key":
            if key:
                raise GraphError(f"{path}:{line}: found {value!r} where the value of {key!r} should stand; add it")
            key = value
        elif kind == "close":
            if key or not lists:
                raise GraphError(f"{path}:{line}: found ']' where none can stand; remove it, or add what is missing")
            name, fields = lists.pop()
            depth = [one for one, _ in lists]
            if (name == "graph" and not depth) or (name in ("node", "edge") and depth == ["graph"]):
                yield name, fields, line
        elif not key:
            raise GraphError(f"{path}:{line}: found {value!r} where a key should stand; {_found(path)}")
        elif kind == "open":
            if len(lists) >= DEEPEST:
                raise GraphError(f"{path}:{line}: lists stand in one another more than {DEEPEST} deep; flatten them")
            lists.append((key, {}))
            key = ""
        else:
            if lists:
                lists[-1][1][key] = value
            key = ""
    if lists or key:
        raise GraphError(f"{path}: the file ends within '{lists[-1][0] if lists else key}'; it is cut off")


def _tokens(path: Path) -> Iterator[tuple[str, Any, int]]:
    """The tokens of a file with their lines, some of the file at a time."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    line, rest, ended = 1, "", False
    with Unpacked(path, "graph file") as file:
        while not ended:
            chunk = file.read(max(CHUNK, len(rest)))  # a long string is not gone through again and again
            ended = not chunk
            try:
                rest += decoder.decode(chunk, ended) + "\n" * ended
            except UnicodeDecodeError as error:
                raise GraphError(f"{path}: after line {line} it is not text in UTF-8 ({error.reason})") from None
            start, at = 0, _skip(rest, 0)
            while match := TOKEN.match(rest, at):
                line += rest.count("\n", start, match.end())
                start, at = match.end(), _skip(rest, match.end())
                yield (*_value(match), line)
            line += rest.count("\n", start, at)
            rest = rest[at:]
            if len(rest) > LONGEST:
                raise GraphError(f"{path}:{line}: a string begins here that does not end; close it with a quote")
    if rest:
        raise GraphError(f"{path}:{line}: found {rest[:30].strip()!r}, which is not GML; {_found(path)}")


def _skip(text: str, at: int) -> int:
    """The place after blanks and comments; a comment that may go on is not skipped."""
    found = BLANK.match(text, at)
    return found.end() if found else at


def _value(match: re.Match[str]) -> tuple[str, Any]:
    kind = str(match.lastgroup)
    word = match.group(kind)
    if kind == "number":
        whole = re.fullmatch(r"[+-]?\d{1,20}", word)  # more digits are no number that anyone counts with
        return kind, int(word) if whole else float(word)
    return kind, ENTITY.sub(_character, word) if kind == "string" else word


def _character(entity: re.Match[str]) -> str:
    decimal, hexadecimal, name = entity.groups()
    if name:
        return NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else entity.group()


def _found(path: Path) -> str:
    with Unpacked(path, "graph file") as file:
        kind = recognise(file.read(4096)).kind
    return "write it again" if kind == "GML" else f"this is {kind}, not GML: rename or convert it"


def write_gml(graph: AttributedGraph, path: Path) -> None:
    """Write a GML file, in ASCII as the language asks."""
    with atomic(path) as draft, open(draft, "w", encoding="ascii", newline="\n") as file:
        file.write(f"graph [\n  directed 0\n  attributeNames {_quote(spelled_names(graph))}\n")
        labels = [""] * len(graph) if graph.labels is None else graph.labels.tolist()
        for row, (node, bag) in enumerate(zip(graph.ids.tolist(), spelled_attributes(graph), strict=True)):
            name = str(node) if isinstance(node, int) else _quote(node)
            own = "" if graph.labels is None else f" {CLASS} {_quote(labels[row])}"
            own += f" {ATTRIBUTES} {_quote(bag)}" if bag else ""
            file.write(f"  node [ id {row} label {name}{own} ]\n")
        for row, column, weight in spelled_edges(graph):
            file.write(f"  edge [ source {row} target {column} weight {_real(weight)} ]\n")
        file.write("]\n")


def _quote(value: str) -> str:
    """A string, with every character that GML's ASCII cannot hold as its number."""
    return '"' + re.sub(r"[^ !#-%\'-~]", lambda found: f"&#{ord(found.group())};", value) + '"'


def _real(word: str) -> str:
    """A number as GML writes reals: with a point before the exponent."""
    digits, e, exponent = word.partition("e")
    return digits + ("" if "." in digits else ".0") + (f"E{exponent}" if e else "")
