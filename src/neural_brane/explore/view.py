"""Answer what the page asks of its data: names, places, colours, and lists of links, attributes and nearest nodes.

An answer is a dict of plain values and arrays. The server sends it when the page asks, and the page as one file holds
the answers of all nodes. What the page makes of them (cards, search, summaries) is `page/questions.js` for both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from neural_brane.embedding import Layer
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.explore.layout import fit_square
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import encode, locate
from neural_brane.graph.lazy import pl
from neural_brane.insight.groups import choose_k, name_groups, partition, weigh_attributes
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.linalg.weights import unit_rows
from neural_brane.search.exact import Exact, cosines_of_pairs

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


class Nodes:
    """The nodes in the order of the vectors, with what a graph knows of them; the graph may be missing.

    Parameters
    ----------
    ids
        (nodes,) ids in the order of the vectors.
    graph
        A graph that has all of these nodes; its other nodes are left out.
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
                f"{', '.join(map(repr, missing[:3].tolist()))}; give the graph that the vectors were made from"
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
        """(attributes,) the number of nodes that have each attribute."""
        return np.bincount(self.attributes.indices, minlength=len(self.attribute_names))

    @cached_property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct labels, the commonest first, and each node's place among them: past the last if it has none."""
        codes, names = encode(self.labels if self.labels is not None else np.full(len(self), ""))
        counts = np.where(names == "", -1, np.bincount(codes, minlength=len(names)))
        order = np.lexsort((names, -counts))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return names[order][counts[order] >= 0], rank[codes]

    def links_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The neighbours of some nodes and the weights of the edges, the heaviest first."""
        start, neighbours, weights = _lists(self.adjacency[rows], lambda part: -part.data)
        return {"start": start, "rows": neighbours, "weights": weights}

    def attributes_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The attributes of some nodes and how much of each they have, the rarest first: they say most about a node."""
        start, columns, amounts = _lists(self.attributes[rows], lambda part: self.holders[part.indices])
        return {"start": start, "columns": columns, "amounts": amounts}

    def holders_of(self, column: int) -> dict[str, np.ndarray]:
        """The nodes that have an attribute, and how much of it each has."""
        if not 0 <= column < len(self.attribute_names):
            raise ParameterError(f"there is no attribute {column}; there are {len(self.attribute_names)}, from 0")
        span = slice(*self._by_attribute.indptr[column : column + 2])
        return {
            "rows": self._by_attribute.indices[span].astype(np.uint32),
            "amounts": self._by_attribute.data[span].astype(np.float32),
        }

    @cached_property
    def _by_attribute(self) -> sparse.csc_array:
        return sparse.csc_array(self.attributes)

    def count(self, rows: np.ndarray) -> dict[str, Any]:
        """Count how many of some nodes have each attribute (if any has it), and the edges among them."""
        rows = np.unique(rows)
        found = np.bincount(self.attributes[rows].indices, minlength=len(self.attribute_names))
        columns = np.flatnonzero(found)
        return {
            "columns": columns.astype(np.uint32),
            "found": found[columns].astype(np.uint32),
            "edges": count_edges(self.adjacency[rows][:, rows]),
        }


def count_edges(adjacency: sparse.csr_array) -> int:
    """The edges of a symmetric matrix; a self-loop is one."""
    return int(adjacency.nnz + np.count_nonzero(adjacency.diagonal())) // 2


def _lists(part: sparse.csr_array, rank: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries of each row in the order of their rank: where rows begin, columns and values."""
    rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    order = np.lexsort((part.indices, rank(part), rows))
    return part.indptr.astype(np.uint32), part.indices[order].astype(np.uint32), part.data[order].astype(np.float32)


BLOCK_ROWS = 65_536  # read at a time
SAMPLE = 20_000  # rows from which groups are found
NAMING = 2  # attributes that name a cluster
REASONS = 8  # attributes, neighbours and suggested links in a card


@dataclass(eq=False)
class Run:
    """Vectors of all nodes, which stay on the disk where the file allows it.

    Parameters
    ----------
    name
        What the page calls it.
    vectors
        (nodes, dim) float32 in the order of the map's nodes.
    layer
        Scores links by the vectors, where the method has learned such a layer.
    path
        The file that they come from, beside which a map of them may be kept.
    model
        The fitted method that made them, if it is known; it can explain them.
    """

    name: str
    vectors: np.ndarray
    _: KW_ONLY
    layer: Layer | None = None
    path: Path | None = None
    model: Embedder | None = None

    def __post_init__(self) -> None:
        self.points: dict[str, np.ndarray] = {}  # by layout
        self._search = Exact(self.vectors)
        self._lock = threading.Lock()  # the first search computes the vectors' lengths

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """(nodes,) the length of each vector."""
        blocks = (self.vectors[at : at + BLOCK_ROWS] for at in range(0, len(self.vectors), BLOCK_ROWS))
        return np.concatenate([np.empty(0, np.float32)] + [np.linalg.norm(block, axis=1) for block in blocks])

    def add_layout(self, name: str, points: np.ndarray) -> None:
        """Add a map of the nodes."""
        self.points[name] = fit_square(points)

    def points_of(self, layout: str) -> np.ndarray:
        """(nodes, 2) where the nodes stand, by the name of the map."""
        if layout not in self.points:
            raise ParameterError(f"there is no map {layout!r} of {self.name}; there is {', '.join(self.points)}")
        return self.points[layout]

    def nearest(self, rows: np.ndarray, k: int) -> dict[str, np.ndarray]:
        """The `k` nodes nearest to each of some, their cosines and, if there is a layer, its scores of a link."""
        with self._lock:
            found = self._search.nearest(self.vectors[rows], k, rows)
        width = found.rows.shape[1]
        answer = {
            "start": (np.arange(len(rows) + 1) * width).astype(np.uint32),
            "rows": found.rows.ravel().astype(np.uint32),
            "cosines": found.cosines.ravel(),
        }
        if self.layer is not None:
            pairs = np.stack([np.repeat(rows, width), found.rows.ravel()], axis=1)
            answer["scores"] = self.layer.score(self.vectors, pairs)
        return answer

    def clusters(self, nodes: Nodes) -> tuple[list[str], np.ndarray]:
        """Clusters of the directions of the vectors: their names, and the cluster of each node."""
        codes = divide(self.vectors, prepare=unit_rows)
        words = name_groups(nodes.attributes, codes, int(codes.max()) + 1, NAMING)
        names = [" · ".join(nodes.attribute_names[one.attribute] for one in several) for several in words]
        return [f"{at + 1}: {name}" if name else f"cluster {at + 1}" for at, name in enumerate(names)], codes

    def reasons(self, nodes: Nodes, row: int) -> dict[str, Any]:
        """Reasons for a node's vector, and likely links, as far as the model can give them; empty without one."""
        found: dict[str, Any] = {}
        if self.model is None:
            return found
        node = nodes.ids[row].item()
        with suppress(ParameterError):
            explained = self.model.explain(node, top=REASONS)
            found["attributes"] = [[str(name), float(share)] for name, share in explained.attributes]
            found["neighbours"] = [[nodes.rows[other], float(share)] for other, share in explained.neighbours]
        with suppress(ParameterError):
            found["suggested"] = [
                {"row": nodes.rows[one.id], "score": float(one.score), "why": str(one.reasons)}
                for one in self.model.suggest(node, REASONS)
            ]
        return found


def divide(
    table: np.ndarray, k: int | None = None, *, prepare: Callable[[np.ndarray], np.ndarray] = np.asarray, seed: int = 0
) -> np.ndarray:
    """The group of every row: k-means finds the middles of a sample of them, and each row joins the nearest middle.

    k: how many groups there are at most; None has the number chosen. prepare: applied to rows as they are read.
    """
    total = len(table)
    rng = np.random.default_rng(seed)
    rows = np.arange(total) if total <= SAMPLE else np.sort(rng.choice(total, SAMPLE, replace=False))
    sample = prepare(table[rows])
    k = choose_k(sample, seed) if k is None else min(k, len(np.unique(sample, axis=0)))
    found = partition(sample, k, seed)
    middles = np.stack([sample[found == group].mean(axis=0) for group in range(k)])
    codes = []
    with one_blas_thread():
        for at in range(0, total, BLOCK_ROWS):
            block = prepare(table[at : at + BLOCK_ROWS])
            codes.append(np.argmax(block @ middles.T - np.square(middles).sum(axis=1) / 2, axis=1))
    return np.unique(np.concatenate(codes), return_inverse=True)[1]


NEAREST = 10  # nodes in a list of the nearest
QUICK_CLUSTERS = 20_000  # nodes up to which clusters are found in a moment
LEVELS = (8, 32, 128)  # named regions of the whole map, of a part of it, and from near
FEWEST = 12  # nodes in a region, on average
CLEAR = 0.6  # share of a region's nodes with one label, from which the label names it
WORDS = 2  # attributes that name a region

TITLES = {
    "label": "label",
    "cluster": "cluster of similar vectors",
    "degree": "number of neighbours",
    "length": "length of the vector",
}
LISTS = ("links", "attributes", "nearest", "count")  # questions about some nodes, which are sent along

Answer = dict[str, Any]


class View:
    """One or several runs, which are vectors of the same nodes, and what a graph knows of these nodes.

    Rows are those of the first run; the vectors of all runs stand in its order.
    """

    def __init__(self, nodes: Nodes, runs: list[Run], *, title: str = "vectors"):
        self.nodes, self.runs, self.title = nodes, runs, title
        self.regions = lru_cache(maxsize=8)(self._regions)  # by run and layout

    def answer(self, name: str, query: dict[str, Any], rows: np.ndarray | None = None) -> Answer | None:
        """The answer to a question of the page, or None where there is no such question.

        rows: the nodes to ask about, for questions about nodes; all of them if None.
        """
        if name in LISTS:
            some = self._checked(np.arange(len(self.nodes)) if rows is None else rows)
            if name == "nearest":
                return self._run(int(query["run"])).nearest(some, NEAREST)
            lists = {"links": self.nodes.links_of, "attributes": self.nodes.attributes_of, "count": self.nodes.count}
            return lists[name](some)
        ask = {
            "about": self.about,
            "names": self.names,
            "points": lambda: {"values": self.points(int(query["run"]), query["layout"])},
            "regions": lambda: {"levels": self.regions(int(query["run"]), query["layout"])},
            "column": lambda: self.column(query["name"]),
            "holders": lambda: self.nodes.holders_of(int(query["attribute"])),
            "alike": lambda: self.alike(int(query["one"]), int(query["other"])),
            "reasons": lambda: self.reasons(int(query["row"])),
        }.get(name)
        return None if ask is None else ask()

    def about(self) -> Answer:
        """Facts that the page needs first."""
        nodes = self.nodes
        return {
            "title": self.title,
            "nodes": len(nodes),
            "edges": count_edges(nodes.adjacency),
            "attributes": len(nodes.attribute_names),
            "has_graph": nodes.graph is not None,
            "runs": [{"name": run.name, "dim": run.dim, "layouts": list(run.points)} for run in self.runs],
            "columns": self._columns(),
        }

    def _columns(self) -> list[dict[str, str]]:
        shown = ["label"] * (self.nodes.labels is not None)
        shown += ["cluster"] if len(self.nodes) <= QUICK_CLUSTERS else []
        shown += ["degree", "length"] if self.nodes.graph is not None else ["length"]
        shown += ["cluster"] if len(self.nodes) > QUICK_CLUSTERS else []  # the page opens with the first, at once
        return [{"name": name, "title": TITLES[name]} for name in shown]

    def names(self) -> Answer:
        """The names of all nodes and attributes, how many nodes have each attribute, and how much it says of one."""
        nodes = self.nodes
        return {
            "ids": nodes.names.to_list(),
            "attributes": nodes.attribute_names.to_list(),
            "holders": nodes.holders.astype(np.uint32),
            "weights": weigh_attributes(nodes.holders, len(nodes)),
        }

    def points(self, run: int, layout: str) -> np.ndarray:
        """(2, nodes) float32: all x, then all y."""
        return np.ascontiguousarray(self._run(run).points_of(layout).T)

    def _regions(self, run: int, layout: str) -> list[list[dict[str, Any]]]:
        """For each level, the regions of a map with their name, place and size; the largest first."""
        points = self._run(run).points_of(layout)
        counts = [count for count in LEVELS if len(points) >= FEWEST * count] or [1] * bool(len(points))
        return [self._level(points, count) for count in counts]

    def _level(self, points: np.ndarray, count: int) -> list[dict[str, Any]]:
        groups = divide(points, count)
        count = int(groups.max()) + 1
        classes, codes = self.nodes.classes
        words = name_groups(self.nodes.attributes, groups, count, WORDS, sure=False)  # a region only marks a place
        found = []
        for group in range(count):
            members = np.flatnonzero(groups == group)
            middle = points[members].mean(axis=0)
            x, y = np.median(points[members], axis=0).tolist()
            commonest = np.bincount(codes[members], minlength=len(classes) + 1)[: len(classes)]
            if len(classes) and commonest.max() >= CLEAR * len(members):
                name = str(classes[commonest.argmax()])
            elif words[group]:
                name = " · ".join(self.nodes.attribute_names[one.attribute] for one in words[group])
            else:
                name = self.nodes.names[int(members[np.argmin(np.square(points[members] - middle).sum(axis=1))])]
            found.append({"name": name, "x": x, "y": y, "size": len(members)})
        return sorted((region for region in found if region["name"]), key=lambda region: -region["size"])

    def column(self, name: str) -> Answer:
        """A colour for every node: classes (codes and their names) or amounts."""
        if name == "label" and self.nodes.labels is not None:
            classes, codes = self.nodes.classes
            return _category("label", classes.tolist(), codes)
        if name == "cluster":
            return _category("cluster", *self.clusters)
        if name == "degree":
            return _number(name, np.diff(self.nodes.adjacency.indptr))
        if name == "length":
            return _number(name, self.runs[0].lengths)
        raise ParameterError(f"there is no colour {name!r}; choose label, cluster, degree, length or attribute:NAME")

    @cached_property
    def clusters(self) -> tuple[list[str], np.ndarray]:
        """The clusters of the first run's vectors, by name, and the cluster of each node."""
        return self.runs[0].clusters(self.nodes)

    def alike(self, one: int, other: int) -> Answer:
        """The cosine of two nodes by each run, and the first run's score of a link between them."""
        pair = self._checked(np.array([one, other]))
        cosines = [cosines_of_pairs(run.vectors[pair[:1]], run.vectors[pair[1:]]).tolist()[0] for run in self.runs]
        layer = self.runs[0].layer
        score = None if layer is None else float(layer.score(self.runs[0].vectors[pair], np.array([[0, 1]]))[0])
        return {"cosines": cosines, "score": score}

    def reasons(self, row: int, run: int = 0) -> Answer:
        """Reasons for a node's vector, and links that the model suggests; empty without a model."""
        return self._run(run).reasons(self.nodes, int(self._checked(np.array([row]))[0]))

    def _run(self, number: int) -> Run:
        if not 0 <= number < len(self.runs):
            raise ParameterError(f"there is no run {number}; there are {len(self.runs)}, from 0")
        return self.runs[number]

    def _checked(self, rows: np.ndarray) -> np.ndarray:
        outside = rows[(rows < 0) | (rows >= len(self.nodes))]
        if len(outside):
            raise ParameterError(f"there is no row {outside[0]}; there are {len(self.nodes)}, from 0")
        return rows.astype(np.int64)


def _category(title: str, names: list[str], codes: np.ndarray) -> Answer:
    """A column of classes; a code past the names stands for none."""
    counts = np.bincount(codes, minlength=len(names) + 1)
    return {
        "title": title,
        "kind": "category",
        "names": names,
        "counts": counts[: len(names)].tolist(),
        "none": int(counts[len(names) :].sum()),
        "values": codes.astype(np.uint32),
    }


def _number(name: str, values: np.ndarray) -> Answer:
    return {"title": TITLES[name], "kind": "number", "values": values.astype(np.float32)}
