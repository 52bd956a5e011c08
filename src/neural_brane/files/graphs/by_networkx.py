"""GraphML, GEXF and GML: NetworkX reads and writes them; this module fixes or refuses content that it would misread.

All three formats use the same keys: one key for a node's label, `attributes` for its attributes (JSON: names, or names
with amounts), and `weight` for an edge's weight. `attributeNames` lists all names, and `ids` says whether ids are
integers or strings. The graph has these two keys; in GEXF the first node has them, because GEXF graphs have no data.
Data under other keys comes from other programs; it becomes attributes like the columns of a table of nodes.
"""

import gc
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.files.reading import read_unpacked, recognise
from neural_brane.files.storage import atomic
from neural_brane.files.tables import stem
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Rules
from neural_brane.graph.build import EdgeArrays, attribute_matrix, canonical, node_ids
from neural_brane.graph.encoder import Encoder
from neural_brane.graph.ids import all_integers
from neural_brane.graph.labels import node_labels
from neural_brane.graph.lazy import pl
from neural_brane.graph.memory import require_memory
from neural_brane.graph.nodes import NodeData, attributes_of

ATTRIBUTES, NAMES, IDS = "attributes", "attributeNames", "ids"
OLD_NAMES = "attribute_names"  # the key of earlier GraphML files
LABEL, CLASS = "label", "class"  # In GEXF and GML, "label" is the name of a node.
DEEPEST = 100  # levels of nested elements that are accepted
MEMORY_PER_BYTE = 30  # bytes that NetworkX needs for each byte of a file
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
FORBIDDEN_TEXT = re.compile(FORBIDDEN.pattern[:-1] + "\r]")  # NetworkX does not escape \r in text.
TYPE = {"key": "attr.type", "attribute": "type"}  # XML attribute with the type of the values
TYPES = ("boolean", "int", "integer", "long", "float", "double", "string")
STANDARD = {"graphml": "http://graphml.graphdrawing.org/xmlns", "gexf": "http://www.gexf.net/1.2draft"}


class ParsedFile(NamedTuple):
    """The content of a file; `labelled` is True if it declares labels, even if no node has one."""

    graph: Any
    label: str
    labelled: bool = False
    names: dict[Any, Any] | None = None


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable the garbage collector, which would take half the time to search new objects and find no cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@_without_collection()
def read_graphml(path: Path, rules: Rules, label: str | None = None) -> AttributedGraph:
    """Read a GraphML file; `label` is the key of nodes' labels."""
    data = _unpack(path)
    scan = _Scan(path, "graphml", data)
    found = _parse(path, "GraphML", lambda nx: nx.read_graphml(BytesIO(scan.standard(data)), force_multigraph=True))
    for _, values in found.nodes(data=True) if scan.drawn else ():
        for key in ("shape_type", "x", "y", "label"):  # NetworkX adds these keys for drawings of yEd.
            values.pop(key, None)
    label = label or LABEL
    return _build(path, ParsedFile(found, label, label in scan.declared), rules)


@_without_collection()
def read_gexf(path: Path, rules: Rules, label: str | None = None) -> AttributedGraph:
    """Read a GEXF file, version 1.1 to 1.3; `label` is the title of the attribute with nodes' labels."""
    data = _unpack(path)
    scan = _Scan(path, "gexf", data)
    found = _parse(path, "GEXF", lambda nx: nx.read_gexf(BytesIO(scan.standard(data))))
    for node, values in found.nodes(data=True):
        for key in ("label", "pid", "viz", "parents", "spells", "slices"):
            values.pop(key, None)
        for key, value in values.items():
            if isinstance(value, list) and len(value) > 1:
                raise GraphError(f"{path}: attribute {key!r} of node {node!r} has several values in time; keep one")
            values[key] = value[0][0] if isinstance(value, list) else value
    first: dict[str, Any] = next(iter(found.nodes.values()), {})
    found.graph |= {key: first.pop(key) for key in (IDS, NAMES) if key in first} | scan.about
    label = label or CLASS
    return _build(path, ParsedFile(found, label, label in scan.declared), rules)


@_without_collection()
def read_gml(path: Path, rules: Rules, label: str | None = None) -> AttributedGraph:
    """Read a GML file; `label` is the key of nodes' labels. If nodes have no names, their numbers are the ids."""
    data = _unpack(path)
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GraphError(f"{path}:{line}: the text is not UTF-8 ({error.reason}); save it as UTF-8") from None
    if (kind := recognise(data[:4096]).kind) not in ("GML", "text"):
        raise GraphError(f"{path}:1: found {kind}, expected GML; rename or convert the file")
    # NetworkX misreads a comment with a single quote. It refuses repeated edges unless the graph is a multigraph.
    text = re.sub(r"(?m)^[ \t]*#.*$", "", text)
    text = re.sub(r"(?m)^[ \t]*graph\s*\[", r"\g<0> multigraph 1 ", text, count=1)
    found = _parse(path, "GML", lambda nx: nx.parse_gml(text.split("\n"), label="id"))
    # NetworkX turns the texts "[]" and "()" into lists; `_text` turns them back.
    names = {node: _text(values.pop("label")) for node, values in found.nodes(data=True) if "label" in values}
    named = len(set(names.values())) == len(found) and len(set(map(type, names.values()))) == 1
    for _, values in found.nodes(data=True):
        for key in [key for key, value in values.items() if _nested(value)]:
            del values[key]  # nested values describe how a node is drawn
    for _, _, values in found.edges(data=True):
        values.setdefault("weight", values.get("value"))
    found.graph.setdefault(IDS, "strings")  # NetworkX reads quoted names as strings, others as numbers.
    return _build(path, ParsedFile(found, label or CLASS, names=names if named else None), rules)


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, list | tuple) else value


def _nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_nested, value)))


def _unpack(path: Path) -> bytes:
    data = read_unpacked(path, "graph file")
    require_memory(MEMORY_PER_BYTE * len(data), f"{path}: reading it", "convert it to .npz on a larger machine")
    return data


def _parse(path: Path, kind: str, parse: Callable[[Any], Any]) -> Any:
    """Parse a file with NetworkX; turn the many exceptions that damaged files cause into GraphError."""
    import networkx

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NetworkX warns about data that we do not use, such as ports.
            return parse(networkx)
    except MemoryError:
        raise
    except Exception as error:
        reason = (str(error).strip() or "the file is damaged").splitlines()[0][:200]
        place = re.search(r"at \((\d+), \d+\)", reason)
        line = f":{place[1]}" if place else ""
        name = "" if type(error).__name__ == "NetworkXError" else f"{type(error).__name__}: "
        raise GraphError(f"{path}{line}: cannot be read as {kind} ({name}{reason}); correct or rewrite it") from None


class _Scan:
    """One pass over an XML file that finds the line of dangerous content and of content that NetworkX misreads."""

    def __init__(self, path: Path, root: str, data: bytes) -> None:
        self.path, self.root = path, root
        self.open: list[str] = []
        self.nodes: set[str] = set()
        self.ends: dict[str, int] = {}  # ids in edges, with their first line
        self.declared: set[str] = set()  # names of keys
        self.about: dict[str, str] = {}  # data about the graph in GEXF files of earlier versions
        self.directed = self.drawn = self.odd = False  # drawn by yEd; odd if `standard` must rewrite elements
        self.graphs, self.title = 0, ""
        self.options: list[str] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler, self.parser.EndElementHandler = self.start, self.end
        self.parser.StartDoctypeDeclHandler = lambda *_: self.fail(
            "found a document type (<!DOCTYPE …>), which can include other files or endless text; remove it"
        )
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            found = recognise(data[:4096]).kind if data else "nothing"
            shown = "" if found in ("GraphML", "GEXF", "XML") else f"; found {found}"
            self.fail(f"this is not a valid <{root}> XML file ({expat.ErrorString(error.code)}){shown}; write it again")
        except (UnicodeDecodeError, LookupError) as error:
            self.fail(f"the encoding cannot be read ({error}); save the file as UTF-8")
        if undeclared := self.ends.keys() - self.nodes:
            line, node = min((self.ends[node], node) for node in undeclared)
            raise GraphError(f"{path}:{line}: an edge names node {node!r}, but the file does not declare it; add it")

    def fail(self, message: str) -> NoReturn:
        raise GraphError(f"{self.path}:{self.parser.CurrentLineNumber}: {message}")

    def start(self, qualified: str, given: dict[str, str]) -> None:
        name = qualified.rpartition(" ")[2]
        if not self.open and name != self.root:
            self.fail(f"found <{name}>, expected <{self.root}> because of the file name; rename or convert the file")
        if len(self.open) >= DEEPEST:
            self.fail(f"elements are nested more than {DEEPEST} deep; flatten them")
        if name == "node":
            if "id" not in given:
                self.fail("a node has no id; give it one")
            if given["id"] in self.nodes:
                self.fail(f"node {given['id']!r} is declared twice; keep one declaration")
            self.nodes.add(given["id"])
        elif name == "edge":
            self.take_edge(given)
        elif name == "graph":
            self.take_graph(given)
        elif name == "hyperedge":
            self.fail("found a hyperedge, which joins several nodes; replace it by edges between two nodes")
        elif name in ("key", "attribute"):
            self.title = given.get("attr.name") or given.get("title") or ""
            self.declared.add(self.title)
            self.drawn |= "yfiles.type" in given
            self.odd |= given.get(TYPE[name], "string") not in TYPES
        elif name == "attvalue" and "value" not in given:
            self.fail("the value of an attribute is missing; write it, or remove the <attvalue>")
        elif name == "options" and self.title == ATTRIBUTES:
            self.parser.CharacterDataHandler = self.options.append
        self.open.append(name)

    def end(self, _: str) -> None:
        if self.open.pop() == "options":
            self.parser.CharacterDataHandler = None
            if (options := "".join(self.options)).startswith("["):
                self.about[NAMES] = options

    def take_edge(self, given: dict[str, str]) -> None:
        if "source" not in given or "target" not in given:
            self.fail("an edge has no source or no target; give it both")
        for end in ("source", "target"):
            self.ends.setdefault(given[end], self.parser.CurrentLineNumber)
        usual = ("true", "directed") if self.directed else ("false", "undirected")
        self.odd |= given.get("directed", given.get("type", usual[0])) not in usual

    def take_graph(self, given: dict[str, str]) -> None:
        nested = "node" in self.open
        self.graphs += not nested
        self.odd |= nested
        if self.graphs > 1:
            self.fail("this is the second graph of the file; put each graph into its own file")
        self.directed = given.get("edgedefault", given.get("defaultedgetype")) == "directed"
        if given.get("idtype") == "string":
            self.about[IDS] = "strings"

    def standard(self, data: bytes) -> bytes:
        """Return the file as NetworkX expects it: known namespace and types, undirected edges, marked groups."""
        opening = rb"<%b\b[^>]*>" % self.root.encode()
        name = re.compile(rb"""\sxmlns\s*=\s*("[^"]*"|'[^']*')""")
        data = re.sub(
            opening, lambda tag: name.sub(b"", tag[0][:-1]) + f' xmlns="{STANDARD[self.root]}">'.encode(), data, count=1
        )
        if not self.odd:
            return data
        tree = ElementTree.fromstring(data)  # noqa: S314 - without a document type there are no entities
        space = f"{{{STANDARD[self.root]}}}"
        for edge in tree.iter(f"{space}edge"):
            edge.attrib.pop("directed", None)
            edge.attrib.pop("type", None)
        for key in (*tree.iter(f"{space}key"), *tree.iter(f"{space}attribute")):
            kind = TYPE[key.tag.removeprefix(space)]
            if key.get(kind) not in TYPES:
                key.set(kind, "string")
        for node in tree.iter(f"{space}node"):
            if node.find(f"{space}graph") is not None:
                node.set("yfiles.foldertype", "group")
        return ElementTree.tostring(tree, encoding="utf-8")


def _build(path: Path, parsed: ParsedFile, rules: Rules) -> AttributedGraph:
    """Make an AttributedGraph from the NetworkX graph."""
    graph, about = parsed.graph, parsed.graph.graph
    defaults, usual = about.get("node_default", {}), about.get("edge_default", {}).get("weight")
    data = NodeData([defaults | values for values in graph.nodes.values()], str(path))
    weighted = graph.edges(data="weight")
    try:
        ids = _ids([parsed.names[node] for node in graph] if parsed.names else list(graph), about.get(IDS))
        edges = [(u, v, (usual or 1.0) if weight in (None, "") else weight) for u, v, weight in weighted]
        adjacency = EdgeArrays.between(graph, edges).assemble(len(ids), rules)
        texts = [_text(value) for value in data.column(parsed.label)]
        labelled = parsed.labelled or any(text is not None for text in texts)
        names = about.get(NAMES, about.get(OLD_NAMES))
        matrix, columns, encoder = _attributes(path, data, ids, names, parsed.label)
        labels = node_labels(texts, ids) if labelled else None
        return AttributedGraph(adjacency, matrix, ids, columns, labels, stem(path), encoder)
    except UnicodeError as error:
        raise GraphError(f"{path}: UTF-8 cannot encode a name ({error}); save the names as UTF-8") from None
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


def _ids(words: list[Any], kind: str | None) -> np.ndarray:
    """Return the ids: integers, unless the file says "strings" or some word is not an integer."""
    if kind == "strings" or not all(isinstance(word, str) for word in words):
        return node_ids(words)
    whole = all_integers(pl.Series(words, dtype=pl.String))
    return node_ids(list(map(int, words)) if whole and words else words)


def _attributes(
    path: Path, data: NodeData, ids: np.ndarray, names: Any, label: str
) -> tuple[sparse.csr_array, np.ndarray, Encoder | None]:
    """Return the attributes under our own key; without it, encode the data under all other keys but `label`."""
    keys, texts = [key for key in data.names() if key != label], data.column(ATTRIBUTES)
    bags = [_bag(text) for text in texts]
    if names is None and (None in bags or all(text is None for text in texts)):
        return attributes_of(data, keys) if keys else (*attribute_matrix(None, None, ids), None)
    if others := [repr(key) for key in keys if key != ATTRIBUTES]:
        warnings.warn(f"{path}: nodes have data beside '{ATTRIBUTES}'; ignored {', '.join(others[:5])}", stacklevel=5)
    if None in bags:
        at = bags.index(None)
        advice = "they must be a JSON list or object"
        raise GraphError(f"the attributes of node {ids[at].item()!r} are {str(texts[at])[:40]!r}; {advice}")
    if names is None:
        known = {node: bag for node, bag in zip(ids.tolist(), bags, strict=True) if bag}
        return *attribute_matrix(known, None, ids), None
    return *_matrix(bags, _names(names), ids), None


def _bag(text: Any) -> dict[str, Any] | None:
    """Return the attributes of a node by name, or None if the text is not in our layout."""
    if text in (None, ""):
        return {}
    try:
        bag = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return None
    if isinstance(bag, list):
        return dict.fromkeys(map(str, bag), 1.0)
    return bag if isinstance(bag, dict) else None


def _names(text: Any) -> list[Any]:
    """Return the list of attribute names from its JSON text."""
    try:
        names = json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError) as error:
        raise GraphError(f"{NAMES} is not JSON ({error}); write the file again") from None
    if not isinstance(names, list):
        raise GraphError(f"{NAMES} is {str(text)[:40]!r}; it must be a JSON list")
    return names


def _matrix(bags: list[Any], names: list[Any], ids: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the matrix of the nodes' attributes, with one column for each name of the list, and the names."""
    places = {str(name): at for at, name in enumerate(names)}
    entries = [(row, name, amount) for row, bag in enumerate(bags) for name, amount in bag.items()]
    for row, name, amount in entries:
        if name not in places:
            raise GraphError(f"attribute {name!r} of node {ids[row].item()!r} is not in {NAMES}; add it there")
        if not isinstance(amount, int | float):
            raise GraphError(f"the amount of attribute {name!r} is {amount!r}; give a number, as in {{'age': 31}}")
    rows = np.array([row for row, _, _ in entries], dtype=np.int64)
    columns = np.array([places[name] for _, name, _ in entries], dtype=np.int64)
    values = np.array([amount for _, _, amount in entries], dtype=float)
    matrix = sparse.coo_array((values, (rows, columns)), (len(ids), len(names)))
    return attribute_matrix(canonical(matrix, "attributes"), names, ids)


@_without_collection()
def write_graphml(graph: AttributedGraph, path: Path) -> None:
    """Write a GraphML file."""
    import networkx

    made = _to_networkx(graph, LABEL)
    _check_xml(path, made, FORBIDDEN_TEXT)
    with atomic(path) as draft:
        networkx.write_graphml_xml(made, draft, named_key_ids=True)


@_without_collection()
def write_gexf(graph: AttributedGraph, path: Path) -> None:
    """Write a GEXF file."""
    import networkx

    made = _to_networkx(graph, CLASS)
    _check_xml(path, made, FORBIDDEN)
    next(iter(made.nodes.values())).update(made.graph)
    with atomic(path) as draft:
        networkx.write_gexf(made, draft)


@_without_collection()
def write_gml(graph: AttributedGraph, path: Path) -> None:
    """Write a GML file, in ASCII as GML requires."""
    import networkx

    with atomic(path) as draft:
        networkx.write_gml(_to_networkx(graph, CLASS), draft)


def _to_networkx(graph: AttributedGraph, label: str) -> Any:
    """Return the graph as a NetworkX graph whose values are only text and numbers."""
    import networkx

    names = json.dumps(graph.attribute_names.tolist(), ensure_ascii=False)
    made = networkx.Graph(**{IDS: "integers" if graph.ids.dtype.kind == "i" else "strings", NAMES: names})
    ids = graph.ids.tolist()
    made.add_nodes_from((at, {ATTRIBUTES: bag} if bag else {}) for at, bag in zip(ids, spell_bags(graph), strict=True))
    if graph.labels is not None:
        networkx.set_node_attributes(made, dict(zip(ids, graph.labels.tolist(), strict=True)), label)
    entries = sparse.triu(graph.adjacency).tocoo()
    weights = spell_numbers(entries.data).astype(np.float64).tolist()
    ends = zip(entries.row.tolist(), entries.col.tolist(), weights, strict=True)
    made.add_weighted_edges_from((ids[row], ids[column], weight) for row, column, weight in ends)
    return made


def _check_xml(path: Path, made: Any, forbidden: re.Pattern[str]) -> None:
    """Refuse ids and values of nodes with a character that XML does not allow."""
    for node, values in made.nodes(data=True):
        found = FORBIDDEN.search(str(node)) or next(filter(None, map(forbidden.search, values.values())), None)
        if found:
            raise GraphError(f"{path}: XML lacks the character {found.group()!r} in {found.string[:60]!r}; write .npz")


def spell_bags(graph: AttributedGraph) -> list[str]:
    """Return the attributes of each node as JSON: only names if all amounts are 1, "" without attributes."""
    matrix = graph.attributes
    names = [json.dumps(str(name), ensure_ascii=False) for name in graph.attribute_names.tolist()]
    columns, words = matrix.indices.tolist(), spell_numbers(matrix.data).tolist()
    bags = []
    for start, stop in pairwise(matrix.indptr.tolist()):
        pairs = list(zip((names[column] for column in columns[start:stop]), words[start:stop], strict=True))
        if all(word == "1.0" for _, word in pairs):
            bags.append(f"[{', '.join(name for name, _ in pairs)}]" if pairs else "")
        else:
            bags.append("{" + ", ".join(f"{name}: {word}" for name, word in pairs) + "}")
    return bags


def spell_numbers(values: np.ndarray) -> np.ndarray:
    """Spell float32 numbers with the fewest digits that read back the same, also through float64.

    >>> spell_numbers(np.array([0.1, 3.0], np.float32)).tolist()
    ['0.1', '3.0']
    """
    words = values.astype(str)
    lost = words.astype(np.float64).astype(np.float32) != values
    words[lost] = values[lost].astype(np.float64).astype(str)
    return words
