"""GraphML: XML with a key for every kind of data. NetworkX, igraph, Gephi, yEd and Cytoscape write it.

Written: a node's label under the key `label`, its attributes under `attributes` as `neural_brane.files.graphs.draft` says,
an edge's weight under `weight`; of the graph, `ids` says whether ids are integers or strings, and `attribute_names`
lists the names.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from neural_brane.files.graphs.draft import (
    ATTRIBUTES,
    GraphDraft,
    Rules,
    spelled_attributes,
    spelled_edges,
    spelled_names,
)
from neural_brane.files.graphs.xml import attribute, convert, integer_ids, read_xml, text
from neural_brane.files.storage import atomic
from neural_brane.graph import AttributedGraph

OURS = {"ids", "attribute_names"}
HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
"""


class _Document:
    """The elements of a GraphML file."""

    def __init__(self, draft: GraphDraft, label: str) -> None:
        self.draft, self.label = draft, label
        self.keys: dict[str, dict[str, str]] = {}
        self.defaults: dict[str, Any] = {}
        self.open: list[tuple[str, Any]] = []  # elements that data may belong to: graph, node or edge
        self.data: dict[str, str] = {}
        self.key = ""
        self.graphs = 0
        self.ids = ""  # "integers" or "strings", where the file says so

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        self.data = attributes if name in ("data", "key") else self.data
        if name == "key":
            self.key = attributes.get("id", "")
            self.keys[self.key] = {"attr.name": "", "attr.type": "string", "for": "all"} | attributes
            own = attributes.get("attr.name") == self.label and attributes.get("for") == "node"
            self.draft.labelled |= own
        elif name == "graph":
            self.graphs += not self.open
            if self.graphs > 1:
                self.draft.fail(line, "this is the second graph of the file; give each a file of its own")
            self.open.append(("graph", None))
        elif name == "node":
            if "id" not in attributes:
                self.draft.fail(line, "a node lacks its id; give it one")
            self.open.append(("node", self.draft.node(attributes["id"], line)))
        elif name == "edge":
            ends = {"source": attributes.get("source"), "target": attributes.get("target"), "weight": None}
            self.open.append(("edge", ends))
        elif name == "hyperedge":
            self.draft.fail(line, "a hyperedge joins several nodes at once; write it as edges between two each")

    def end(self, name: str, text: str, line: int) -> None:
        if name == "default" and self.key in self.keys:
            key = self.keys[self.key]
            self.defaults[self.key] = convert(key["attr.type"], text, self.draft, line)
        elif name == "data" and self.open:
            self._take(text, line)
        elif name in ("graph", "node", "edge") and self.open:
            kind, what = self.open.pop()
            if kind == "edge":
                if what["weight"] is None:
                    what["weight"] = self._default("edge", "weight")
                self.draft.edge(**what, line=line)

    def _take(self, text: str, line: int) -> None:
        kind, what = self.open[-1]
        key = self.keys.get(self.data.get("key", ""))
        if key is None:
            self.draft.fail(line, f"data has the key {self.data.get('key')!r}, which no <key> declares; add it")
        name = key["attr.name"]
        if kind == "graph" and name in OURS:
            self.ids = text if name == "ids" else self.ids
            if name == "attribute_names":
                self.draft.list_names(text, line)
        elif kind == "node" and name:  # a key without a name is for drawing
            self.draft.value(what, name, convert(key["attr.type"], text, self.draft, line))
        elif kind == "edge" and name == "weight":
            what["weight"] = convert(key["attr.type"], text, self.draft, line)

    def _default(self, kind: str, name: str) -> Any:
        of = (kind, "all")
        keys = [id for id, key in self.keys.items() if key["attr.name"] == name and key["for"] in of]
        return next((self.defaults[id] for id in keys if id in self.defaults), None)

    def fill_defaults(self) -> None:
        """Give nodes without a value of some key its default."""
        for key in self.keys.values():
            name = key["attr.name"]
            default = self._default("node", name) if name else None
            if default is not None and key["for"] in ("node", "all"):
                self.draft.fill(name, default)


def read_graphml(path: Path, rules: Rules) -> AttributedGraph:
    """Read a GraphML file."""
    draft = GraphDraft(path)
    document = _Document(draft, rules.label)
    read_xml(path, "graphml", document)
    document.fill_defaults()
    whole = document.ids != "strings" and integer_ids(list(draft.rows))
    return draft.finish(rules, int if whole else str)


def write_graphml(graph: AttributedGraph, path: Path) -> None:
    """Write a GraphML file."""
    with atomic(path) as draft, open(draft, "w", encoding="utf-8", newline="\n") as file:
        file.write(HEAD)
        _write_keys(graph, file)
        kind = "integers" if graph.ids.dtype.kind == "i" else "strings"
        file.write(f'<graph edgedefault="undirected">\n<data key="ids">{kind}</data>\n')
        file.write(f'<data key="attribute_names">{text(spelled_names(graph), path)}</data>\n')
        words = [attribute(str(node), path) for node in graph.ids.tolist()]
        labels = [""] * len(words) if graph.labels is None else graph.labels.tolist()
        for word, label, bag in zip(words, labels, spelled_attributes(graph), strict=True):
            parts = [("label", label), (ATTRIBUTES, bag)]
            data = "".join(f'<data key="{key}">{text(value, path)}</data>' for key, value in parts if value)
            file.write(f"<node id={word}>{data}</node>\n" if data else f"<node id={word}/>\n")
        for row, column, weight in spelled_edges(graph):
            file.write(f'<edge source={words[row]} target={words[column]}><data key="weight">{weight}</data></edge>\n')
        file.write("</graph>\n</graphml>\n")


def _write_keys(graph: AttributedGraph, file: IO[str]) -> None:
    keys = [("ids", "graph", "string"), ("attribute_names", "graph", "string"), ("weight", "edge", "double")]
    keys += [("label", "node", "string")] if graph.labels is not None else []
    for name, of, kind in [*keys, (ATTRIBUTES, "node", "string")]:
        file.write(f'<key id="{name}" for="{of}" attr.name="{name}" attr.type="{kind}"/>\n')
