"""GEXF: the XML of Gephi, versions 1.1 to 1.3.

Written: a node's class as the attribute `class` (what GEXF calls a node's label is its name), its attributes under
`attributes` as `neural_brane.files.graphs.draft` says, with the list of their names as that attribute's options.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">
"""
CLASS = "class"


class _Document:
    """The elements of a GEXF file."""

    def __init__(self, draft: GraphDraft, label: str) -> None:
        self.draft, self.label = draft, label
        self.titles: dict[tuple[str, str], tuple[str, str]] = {}  # by class and id: title and type
        self.defaults: dict[str, Any] = {}  # of nodes, by title
        self.of = "node"
        self.title, self.kind = "", "string"
        self.open: list[tuple[str, Any]] = []
        self.graphs = 0
        self.ids = ""

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if name == "graph":
            self.graphs += 1
            if self.graphs > 1:
                self.draft.fail(line, "this is the second graph of the file; give each a file of its own")
            self.ids = attributes.get("idtype", "")
        elif name == "attributes":
            self.of = attributes.get("class", "node")
        elif name == "attribute":
            self.title, self.kind = attributes.get("title", ""), attributes.get("type", "string")
            self.titles[self.of, attributes.get("id", "")] = self.title, self.kind
            self.draft.labelled |= self.of == "node" and self.title == self.label
        elif name == "node":
            if "id" not in attributes:
                self.draft.fail(line, "a node lacks its id; give it one")
            self.open.append(("node", self.draft.node(attributes["id"], line)))
        elif name == "edge":
            self.open.append(("edge", attributes))
        elif name == "attvalue" and self.open:
            self._take(attributes, line)

    def end(self, name: str, text: str, line: int) -> None:
        if name == "default" and self.of == "node":
            self.defaults[self.title] = convert(self.kind, text, self.draft, line)
        elif name == "options" and self.title == ATTRIBUTES and text.startswith("["):
            self.draft.list_names(text, line)
        elif name in ("node", "edge") and self.open:
            kind, what = self.open.pop()
            if kind == "edge":
                self.draft.edge(what.get("source"), what.get("target"), what.get("weight"), line)

    def _take(self, attributes: dict[str, str], line: int) -> None:
        kind, what = self.open[-1]
        of = attributes.get("for", attributes.get("id", ""))
        if (kind, of) not in self.titles:
            self.draft.fail(line, f"a value is for attribute {of!r}, which no <attribute> of a {kind} declares; add it")
        title, type_ = self.titles[kind, of]
        value = convert(type_, attributes.get("value", ""), self.draft, line)
        if kind == "edge":
            if title == "weight":
                what.setdefault("weight", value)
            return
        if what in self.draft.columns.get(title, ()):
            self.draft.fail(line, f"attribute {title!r} of a node has several values in time; keep one")
        self.draft.value(what, title, value)

    def fill_defaults(self) -> None:
        """Give nodes without a value of some attribute its default."""
        for title, default in self.defaults.items():
            self.draft.fill(title, default)


def read_gexf(path: Path, rules: Rules) -> AttributedGraph:
    """Read a GEXF file."""
    draft = GraphDraft(path)
    document = _Document(draft, rules.label)
    read_xml(path, "gexf", document)
    document.fill_defaults()
    whole = document.ids != "string" and integer_ids(list(draft.rows))
    return draft.finish(rules, int if whole else str)


def write_gexf(graph: AttributedGraph, path: Path) -> None:
    """Write a GEXF file."""
    with atomic(path) as draft, open(draft, "w", encoding="utf-8", newline="\n") as file:
        kind = "integer" if graph.ids.dtype.kind == "i" else "string"
        file.write(f'{HEAD}<graph defaultedgetype="undirected" idtype="{kind}">\n<attributes class="node">\n')
        if graph.labels is not None:
            file.write(f'<attribute id="0" title="{CLASS}" type="string"/>\n')
        names = text(spelled_names(graph), path)
        file.write(f'<attribute id="1" title="{ATTRIBUTES}" type="string"><options>{names}</options></attribute>\n')
        file.write("</attributes>\n<nodes>\n")
        words = [attribute(str(node), path) for node in graph.ids.tolist()]
        labels = [""] * len(words) if graph.labels is None else graph.labels.tolist()
        for word, label, bag in zip(words, labels, spelled_attributes(graph), strict=True):
            parts = [(at, value) for at, value in enumerate((label, bag)) if value]
            values = "".join(f'<attvalue for="{at}" value={attribute(value, path)}/>' for at, value in parts)
            inside = f"><attvalues>{values}</attvalues></node>" if values else "/>"
            file.write(f"<node id={word} label={word}{inside}\n")
        file.write("</nodes>\n<edges>\n")
        for at, (row, column, weight) in enumerate(spelled_edges(graph)):
            file.write(f'<edge id="{at}" source={words[row]} target={words[column]} weight="{weight}"/>\n')
        file.write("</edges>\n</graph>\n</gexf>\n")
