"""Answer the questions of the page with dicts of plain values and arrays, for the server and the single file."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.explore.layout import fit_square
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import encode, locate
from neural_brane.graph.lazy import pl
from neural_brane.insight.groups import ROWS, divide, draw_rows, find_centres, join_centres, name_groups
from neural_brane.search.exact import Exact, cosines_of_pairs

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


class Nodes:
    """The nodes in the order of the vectors, with their links, attributes and labels if there is a graph.

    Parameters
    ----------
    ids : ndarray (nodes,)
        The ids in the order of the vectors.
    graph : AttributedGraph, optional
        A graph that contains all of these nodes; its other nodes are left out.
    """

    def __init__(self, ids: np.ndarray, graph: AttributedGraph | None = None):
        self.ids, self.graph = ids, graph
        self.names = pl.Series(ids).cast(pl.String)
        self.adjacency = sparse.csr_array((len(ids), len(ids)), dtype=np.float32)
        self.attributes = sparse.csr_array((len(ids), 0), dtype=np.float32)
        self.attribute_names = pl.Series([], dtype=pl.String)
        self.labels: np.ndarray | None = None
        if graph is None:
            return
        rows = locate(graph.ids, ids)
        if len(missing := ids[rows < 0]):
            raise EmbeddingError(
                f"{len(missing):,} of {len(ids):,} nodes with a vector are not in the graph, such as "
                f"{', '.join(map(repr, missing[:3].tolist()))}; give the graph that the vectors were learned from"
            )
        self.adjacency, self.attributes, self.labels = graph.adjacency, graph.attributes, graph.labels
        self.attribute_names = pl.Series(graph.attribute_names).cast(pl.String)
        if not np.array_equal(rows, np.arange(len(graph))):
            self.adjacency = sparse.csr_array(graph.adjacency[rows][:, rows])
            self.attributes = sparse.csr_array(graph.attributes[rows])
            self.labels = None if graph.labels is None else graph.labels[rows]
        self.adjacency.sort_indices()

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rows(self) -> dict[Any, int]:
        """The row of each node by its id."""
        return {node: row for row, node in enumerate(self.ids.tolist())}

    @cached_property
    def holders(self) -> np.ndarray:
        """The number of nodes that have each attribute: (attributes,)."""
        return np.bincount(self.attributes.indices, minlength=len(self.attribute_names))

    @cached_property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct labels, the commonest first, and each node's index among them; without a label, the next."""
        codes, names = encode(self.labels if self.labels is not None else np.full(len(self), ""))
        counts = np.where(names == "", -1, np.bincount(codes, minlength=len(names)))
        order = np.lexsort((names, -counts))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return names[order][counts[order] >= 0], rank[codes]

    def links_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the neighbours of nodes and the weights of the edges, the heaviest first."""
        start, neighbours, weights = _lists(self.adjacency[rows], lambda part: -part.data)
        return {"start": start, "rows": neighbours, "weights": weights}

    def attributes_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the attributes of nodes and their amounts, the rarest first because they describe a node best."""
        start, columns, amounts = _lists(self.attributes[rows], lambda part: self.holders[part.indices])
        return {"start": start, "columns": columns, "amounts": amounts}

    def holders_of(self, column: int) -> dict[str, np.ndarray]:
        """Return the nodes that have an attribute, and their amounts of it."""
        if not 0 <= column < len(self.attribute_names):
            raise ParameterError(f"attribute {column} is out of range; there are {len(self.attribute_names)}, from 0")
        span = slice(*self._by_attribute.indptr[column : column + 2])
        rows, amounts = self._by_attribute.indices[span], self._by_attribute.data[span]
        return {"rows": rows.astype(np.uint32), "amounts": amounts.astype(np.float32)}

    @cached_property
    def _by_attribute(self) -> sparse.csc_array:
        return sparse.csc_array(self.attributes)

    def count(self, rows: np.ndarray) -> dict[str, Any]:
        """Count the edges among nodes, and for each of their attributes the nodes that have it."""
        rows = np.unique(rows)
        found = np.bincount(self.attributes[rows].indices, minlength=len(self.attribute_names))
        columns = np.flatnonzero(found)
        counts = {"columns": columns.astype(np.uint32), "found": found[columns].astype(np.uint32)}
        return counts | {"edges": count_edges(self.adjacency[rows][:, rows])}


def count_edges(adjacency: sparse.csr_array) -> int:
    """Return the number of edges in a symmetric matrix; a self-loop counts once."""
    return int(adjacency.nnz + np.count_nonzero(adjacency.diagonal())) // 2


def _lists(part: sparse.csr_array, rank: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries of each row, sorted by rank: where each row begins, columns and values."""
    rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    order = np.lexsort((part.indices, rank(part), rows))
    return part.indptr.astype(np.uint32), part.indices[order].astype(np.uint32), part.data[order].astype(np.float32)


BLOCK_ROWS = 65_536  # rows read at a time
NAMING = 2  # most attributes in the name of a cluster
REASONS = 8  # most attributes, neighbours and suggested links in a card


@dataclass(eq=False)
class Run:
    """One set of vectors of all nodes; memory-mapped vectors stay on disk.

    Parameters
    ----------
    name : str
        The name in the page.
    vectors : ndarray (nodes, dim) float32
        The vectors in the order of the nodes.
    path : Path, optional
        The file of the vectors; their t-SNE is saved beside it.
    model : Embedder, optional
        The fitted method that made the vectors; it explains them.
    """

    name: str
    vectors: np.ndarray
    _: KW_ONLY
    path: Path | None = None
    model: Embedder | None = None

    def __post_init__(self) -> None:
        self.points: dict[str, np.ndarray] = {}  # the map of each layout
        self._search = Exact(self.vectors)
        self._lock = threading.Lock()  # needed because the first search stores the vectors' lengths

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """The length of each vector: (nodes,)."""
        blocks = (self.vectors[at : at + BLOCK_ROWS] for at in range(0, len(self.vectors), BLOCK_ROWS))
        return np.concatenate([np.empty(0, np.float32)] + [np.linalg.norm(block, axis=1) for block in blocks])

    def add_layout(self, name: str, points: np.ndarray) -> None:
        """Add a map of the nodes."""
        self.points[name] = fit_square(points)

    def points_of(self, layout: str) -> np.ndarray:
        """Return the positions of the nodes (nodes, 2) on the map of a layout."""
        if layout not in self.points:
            raise ParameterError(f"{self.name} has no map {layout!r}; choose from {', '.join(self.points)}")
        return self.points[layout]

    def nearest(self, rows: np.ndarray, k: int) -> dict[str, np.ndarray]:
        """Return the `k` nearest nodes of each row and their cosines."""
        with self._lock:
            near = self._search.nearest(self.vectors[rows], k, rows)
        width = near.rows.shape[1]
        return {
            "start": (np.arange(len(rows) + 1) * width).astype(np.uint32),
            "rows": near.rows.ravel().astype(np.uint32),
            "cosines": near.cosines.ravel(),
        }

    def clusters(self, nodes: Nodes) -> tuple[list[str], np.ndarray]:
        """Divide the directions of the vectors into clusters; return their names and the cluster of each node."""
        codes, _ = divide(self.vectors)
        words = name_groups(nodes.attributes, nodes.attribute_names, codes, int(codes.max()) + 1, NAMING)
        names = [" · ".join(one.attribute for one in typical) for typical in words]
        return [f"{at + 1}: {name}" if name else f"cluster {at + 1}" for at, name in enumerate(names)], codes

    def reasons(self, nodes: Nodes, row: int) -> dict[str, Any]:
        """Return the reasons for a node's vector and suggested links, as far as the model gives them."""
        answer: dict[str, Any] = {}
        if self.model is None:
            return answer
        node = nodes.ids[row].item()
        with suppress(ParameterError):
            explained = self.model.explain(node, top=REASONS)
            answer["attributes"] = [[str(name), float(share)] for name, share in explained.attributes]
            answer["neighbours"] = [[nodes.rows[other], float(share)] for other, share in explained.neighbours]
        with suppress(ParameterError):
            answer["suggested"] = [
                {"row": nodes.rows[one.id], "score": float(one.score), "why": str(one.reasons)}
                for one in self.model.suggest(node, REASONS)
            ]
        return answer


def divide_points(points: np.ndarray, most: int) -> np.ndarray:
    """Return the region of each point of a map; there are at most `most`."""
    sample = points[draw_rows(len(points), ROWS, 0)]
    centres = find_centres(sample, min(most, len(np.unique(sample, axis=0))), 0)
    return np.unique(join_centres(points, centres), return_inverse=True)[1]


NEAREST = 10  # nodes in a list of the nearest
QUICK_CLUSTERS = 20_000  # most nodes for which clusters take only a moment
LEVELS = (8, 32, 128)  # named regions at three levels of zoom
FEWEST = 12  # least number of nodes per region, on average
CLEAR = 0.6  # a label names a region if at least this share of its nodes has the label
WORDS = 2  # most attributes in the name of a region

TITLES = {
    "label": "label", "cluster": "cluster of similar vectors", "degree": "number of neighbours",
    "length": "length of the vector",
}  # fmt: skip
LISTS = ("links", "attributes", "nearest", "count")  # questions about nodes that the request lists

Answer = dict[str, Any]


class View:
    """The data of the page: one or several runs, which are sets of vectors of the nodes, ordered as in the first."""

    def __init__(self, nodes: Nodes, runs: list[Run], *, title: str = "vectors"):
        self.nodes, self.runs, self.title = nodes, runs, title
        self.regions = lru_cache(maxsize=8)(self._regions)  # called with run and layout

    def answer(self, name: str, query: dict[str, Any], rows: np.ndarray | None = None) -> Answer | None:
        """Return the answer to a question about some rows, or all if None; None if there is no such question."""
        if name in LISTS:
            checked = self._checked(np.arange(len(self.nodes)) if rows is None else rows)
            if name == "nearest":
                return self._run(int(query["run"])).nearest(checked, NEAREST)
            lists = {"links": self.nodes.links_of, "attributes": self.nodes.attributes_of, "count": self.nodes.count}
            return lists[name](checked)
        respond = {
            "about": self.about,
            "names": self.names,
            "points": lambda: {"values": self.points(int(query["run"]), query["layout"])},
            "regions": lambda: {"levels": self.regions(int(query["run"]), query["layout"])},
            "column": lambda: self.column(query["name"]),
            "holders": lambda: self.nodes.holders_of(int(query["attribute"])),
            "alike": lambda: self.alike(int(query["one"]), int(query["other"])),
            "reasons": lambda: self.reasons(int(query["row"])),
        }.get(name)
        return None if respond is None else respond()

    def about(self) -> Answer:
        """Return the facts that the page needs first: title, counts, runs and colours."""
        nodes = self.nodes
        return {
            "title": self.title, "nodes": len(nodes), "edges": count_edges(nodes.adjacency),
            "attributes": len(nodes.attribute_names), "has_graph": nodes.graph is not None,
            "runs": [{"name": run.name, "dim": run.dim, "layouts": list(run.points)} for run in self.runs],
            "columns": self._columns(),
        }  # fmt: skip

    def _columns(self) -> list[dict[str, str]]:
        names = ["label"] * (self.nodes.labels is not None)
        names += ["cluster"] if len(self.nodes) <= QUICK_CLUSTERS else []
        names += ["degree", "length"] if self.nodes.graph is not None else ["length"]
        names += ["cluster"] if len(self.nodes) > QUICK_CLUSTERS else []  # the page opens with the first, a quick one
        return [{"name": name, "title": TITLES[name]} for name in names]

    def names(self) -> Answer:
        """Return the names of all nodes and attributes, and the number of nodes of each attribute."""
        nodes = self.nodes
        return {
            "ids": nodes.names.to_list(), "attributes": nodes.attribute_names.to_list(),
            "holders": nodes.holders.astype(np.uint32),
        }  # fmt: skip

    def points(self, run: int, layout: str) -> np.ndarray:
        """Return the positions of the nodes: (2, nodes) float32, all x, then all y."""
        return np.ascontiguousarray(self._run(run).points_of(layout).T)

    def _regions(self, run: int, layout: str) -> list[list[dict[str, Any]]]:
        """Return for each level the regions of a map with name, position and size, the largest first."""
        points = self._run(run).points_of(layout)
        counts = [count for count in LEVELS if len(points) >= FEWEST * count] or [1] * bool(len(points))
        return [self._level(points, count) for count in counts]

    def _level(self, points: np.ndarray, count: int) -> list[dict[str, Any]]:
        """Return at most `count` regions: each has the name of its label, its attributes or its central node."""
        groups = divide_points(points, count)
        count = int(groups.max()) + 1
        classes, codes = self.nodes.classes
        attributes = self.nodes.attributes, self.nodes.attribute_names
        words = name_groups(*attributes, groups, count, WORDS, sure=False)  # a hint is enough for a region
        regions = []
        for group in range(count):
            members = np.flatnonzero(groups == group)
            centre = points[members].mean(axis=0)
            x, y = np.median(points[members], axis=0).tolist()
            commonest = np.bincount(codes[members], minlength=len(classes) + 1)[: len(classes)]
            if len(classes) and commonest.max() >= CLEAR * len(members):
                name = str(classes[commonest.argmax()])
            elif words[group]:
                name = " · ".join(one.attribute for one in words[group])
            else:
                name = self.nodes.names[int(members[np.argmin(np.square(points[members] - centre).sum(axis=1))])]
            regions.append({"name": name, "x": x, "y": y, "size": len(members)})
        return sorted((region for region in regions if region["name"]), key=lambda region: -region["size"])

    def column(self, name: str) -> Answer:
        """Return the values that colour the nodes: classes (codes and their names) or numbers."""
        if name == "label" and self.nodes.labels is not None:
            classes, codes = self.nodes.classes
            return _category("label", classes.tolist(), codes)
        if name == "cluster":
            return _category("cluster", *self.clusters)
        if name == "degree":
            return _number(name, np.diff(self.nodes.adjacency.indptr))
        if name == "length":
            return _number(name, self.runs[0].lengths)
        raise ParameterError(f"no colour is called {name!r}; choose label, cluster, degree, length or attribute:NAME")

    @cached_property
    def clusters(self) -> tuple[list[str], np.ndarray]:
        """The names of the clusters of the first run's vectors, and the cluster of each node."""
        return self.runs[0].clusters(self.nodes)

    def alike(self, one: int, other: int) -> Answer:
        """Return the cosine of two nodes in each run."""
        pair = self._checked(np.array([one, other]))
        cosines = [cosines_of_pairs(run.vectors[pair[:1]], run.vectors[pair[1:]]).tolist()[0] for run in self.runs]
        return {"cosines": cosines}

    def reasons(self, row: int, run: int = 0) -> Answer:
        """Return the reasons for a node's vector and the links that the model suggests; empty without a model."""
        return self._run(run).reasons(self.nodes, int(self._checked(np.array([row]))[0]))

    def _run(self, number: int) -> Run:
        if not 0 <= number < len(self.runs):
            raise ParameterError(f"run {number} is out of range; there are {len(self.runs)}, from 0")
        return self.runs[number]

    def _checked(self, rows: np.ndarray) -> np.ndarray:
        outside = rows[(rows < 0) | (rows >= len(self.nodes))]
        if len(outside):
            raise ParameterError(f"row {outside[0]} is out of range; there are {len(self.nodes)}, from 0")
        return rows.astype(np.int64)


def _category(title: str, names: list[str], codes: np.ndarray) -> Answer:
    """Return a column of classes; the code after the last name means no class."""
    counts = np.bincount(codes, minlength=len(names) + 1)
    return {
        "title": title, "kind": "category", "names": names, "counts": counts[: len(names)].tolist(),
        "none": int(counts[len(names) :].sum()), "values": codes.astype(np.uint32),
    }  # fmt: skip


def _number(name: str, values: np.ndarray) -> Answer:
    return {"title": TITLES[name], "kind": "number", "values": values.astype(np.float32)}
