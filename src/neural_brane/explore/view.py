"""Answer what the page can ask: places, colours, a node's card, a selection's summary, what two nodes share."""

from __future__ import annotations

import warnings
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from neural_brane.errors import ParameterError
from neural_brane.explore.nodes import Nodes
from neural_brane.explore.run import Run
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.search.exact import cosines_of_pairs

# Which attributes some nodes have more often than all nodes do.


def lifts(inside: np.ndarray, size: int, overall: np.ndarray, nodes: int) -> np.ndarray:
    """How many times more often each attribute is had among some nodes than among all.

    inside: (attributes,) how many of `size` nodes have each; overall: (attributes,) how many of all `nodes` have it.

    >>> lifts(np.array([2, 1]), 2, np.array([4, 4]), 8).tolist()
    [2.0, 1.0]
    """
    expected = overall * (size / max(nodes, 1))
    return np.divide(inside, expected, out=np.zeros(len(inside)), where=expected > 0)


def outstanding(inside: np.ndarray, size: int, overall: np.ndarray, nodes: int, most: int) -> np.ndarray:
    """The attributes that set some nodes apart: had more often than by chance, those that say most first.

    Ranked by count times the logarithm of the lift, the surprise at finding so many, so that neither what everyone
    has nor what one node alone has comes first.
    """
    lift = lifts(inside, size, overall, nodes)
    fewest = 2 if size > 3 else 1
    candidates = np.flatnonzero((lift > 1) & (inside >= fewest))
    surprise = inside[candidates] * np.log(lift[candidates])
    return candidates[np.argsort(-surprise, kind="stable")[:most]]


def counts_by_group(groups: np.ndarray, number: int, attributes: sparse.csr_array) -> sparse.csr_array:
    """(groups, attributes) how many nodes of each group have each attribute; nodes of group -1 do not count."""
    rows = np.flatnonzero(groups >= 0)
    ones = np.ones(len(rows), np.float32)
    membership = sparse.csr_array((ones, (groups[rows], rows)), shape=(number, len(groups)))
    present = sparse.csr_array(
        (np.ones(attributes.nnz, np.float32), attributes.indices, attributes.indptr), shape=attributes.shape
    )
    return sparse.csr_array(membership @ present)


# Names for parts of the map: a few for the whole, more as one comes nearer.

LEVELS = (8, 32, 128)  # regions of the whole map, of a part of it, and from near
FEWEST = 12  # nodes in a region, on average
SAMPLE = 20_000  # nodes from which the regions are found
ITERATIONS = 20  # of k-means; regions need not be the best ones
CLEAR = 0.6  # share of a region's nodes with one label, from which the label names it
WORDS = 2  # attributes that name a region


def regions(points: np.ndarray, nodes: Nodes, *, seed: int = 0) -> list[list[dict[str, Any]]]:
    """For each level, the regions of a map with their name, place and size; the largest first."""
    finest = [count for count in LEVELS if len(points) >= FEWEST * count] or ([1] if len(points) else [])
    return [_level(points, nodes, count, seed) for count in finest]


def _level(points: np.ndarray, nodes: Nodes, count: int, seed: int) -> list[dict[str, Any]]:
    groups = partition(points, count, seed)
    names = _names(points, nodes, groups, count)
    found = []
    for group, name in enumerate(names):
        members = np.flatnonzero(groups == group)
        if len(members) and name:
            x, y = np.median(points[members], axis=0).tolist()
            found.append({"name": name, "x": x, "y": y, "size": len(members)})
    return sorted(found, key=lambda region: -region["size"])


def partition(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    """The region of every point, by k-means on a sample of them; the same seed, the same regions."""
    from scipy.cluster.vq import kmeans2

    rng = np.random.default_rng(seed)
    sample = points if len(points) <= SAMPLE else points[np.sort(rng.choice(len(points), SAMPLE, replace=False))]
    different = np.unique(sample, axis=0).astype(np.float64)
    if len(different) <= count:
        return np.asarray(cKDTree(different).query(points)[1])
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a region that stays empty has no name, and is left out
        middles = kmeans2(sample.astype(np.float64), count, iter=ITERATIONS, minit="++", rng=rng)[0]
    return np.asarray(cKDTree(middles).query(points)[1])


def _names(points: np.ndarray, nodes: Nodes, groups: np.ndarray, count: int) -> list[str]:
    """What to call each region: by a common label, else by outstanding attributes, else by the node in the middle."""
    counts = counts_by_group(groups, count, nodes.attributes).toarray()
    classes, codes = nodes.classes
    names = []
    for group in range(count):
        members = np.flatnonzero(groups == group)
        if not len(members):
            names.append("")
            continue
        commonest = np.bincount(codes[members], minlength=len(classes) + 1)[: len(classes)]
        if len(classes) and commonest.max() >= CLEAR * len(members):
            names.append(str(classes[commonest.argmax()]))
            continue
        best = outstanding(counts[group], len(members), nodes.attribute_counts, len(nodes), WORDS)
        middle = members[np.argmin(np.square(points[members] - points[members].mean(axis=0)).sum(axis=1))]
        words = [str(nodes.attribute_names[int(at)]) for at in best]
        names.append(" · ".join(words) if words else nodes.name(int(middle)))
    return names


# What the page can ask: places, colours, a node's card, a selection's summary, what two nodes share.

NEAREST = 10  # nodes in a list of the nearest
MOST_NEIGHBOURS = 60  # in a card; all of them are drawn on the map
MOST_ATTRIBUTES = 80  # in a card
MOST_HOVERED = 500  # edges drawn for the node under the pointer
MOST_LISTED = 15  # outstanding attributes and classes of a selection
QUICK_CLUSTERS = 20_000  # nodes up to which clusters are found in a moment
MOST_EDGES = 20_000  # drawn for a selection


class View:
    """One or several runs, which are vectors of the same nodes, and what a graph knows of these nodes.

    Rows are those of the first run; the vectors of all runs stand in its order.
    """

    def __init__(self, nodes: Nodes, runs: list[Run], *, title: str = "vectors"):
        self.nodes, self.runs, self.title = nodes, runs, title
        self.regions = lru_cache(maxsize=8)(self._regions)  # by run and layout

    def about(self) -> dict[str, Any]:
        """What the page must know first."""
        nodes = self.nodes
        return {
            "title": self.title,
            "nodes": len(nodes),
            "edges": int(nodes.adjacency.nnz + np.count_nonzero(nodes.adjacency.diagonal())) // 2,
            "attributes": len(nodes.attribute_names),
            "has_graph": nodes.graph is not None,
            "runs": [{"name": run.name, "dim": run.dim, "layouts": list(run.points)} for run in self.runs],
            "columns": self._columns(),
            "nearest": NEAREST,
        }

    def _columns(self) -> list[dict[str, str]]:
        columns = []
        if self.nodes.labels is not None:
            columns.append({"name": "label", "title": "label"})
        if self.nodes.graph is not None:
            columns.append({"name": "degree", "title": "number of neighbours"})
        columns.append({"name": "length", "title": "length of the vector"})
        clusters = {"name": "cluster", "title": "cluster of similar vectors"}
        at = bool(self.nodes.labels is not None) if len(self.nodes) <= QUICK_CLUSTERS else len(columns)
        return [*columns[:at], clusters, *columns[at:]]  # the first is shown first, and must be there at once

    def points(self, run: int, layout: str) -> np.ndarray:
        """(2, nodes) float32: all x, then all y."""
        return np.ascontiguousarray(self._run(run).points_of(layout).T)

    def _regions(self, run: int, layout: str) -> list[list[dict[str, Any]]]:
        """The names of parts of a map, by level."""
        return regions(self._run(run).points_of(layout), self.nodes)

    def column(self, name: str) -> tuple[dict[str, Any], np.ndarray]:
        """A colour for every node: what the values mean, and classes (uint16) or amounts (float32)."""
        kind, _, attribute = name.partition(":")
        if kind == "attribute" and attribute:
            return self._attribute_column(attribute)
        if kind == "label" and self.nodes.labels is not None:
            classes, codes = self.nodes.classes
            return _category("label", classes.tolist(), codes)
        if kind == "cluster":
            names, codes = self.clusters
            return _category("cluster", names, codes)
        if kind == "degree":
            return _number("number of neighbours", self.nodes.degrees, "log")
        if kind == "length":
            return _number("length of the vector", self.runs[0].lengths, "linear")
        raise ParameterError(f"there is no colour {name!r}; choose label, cluster, degree, length or attribute:NAME")

    def _attribute_column(self, name: str) -> tuple[dict[str, Any], np.ndarray]:
        rows, amounts = self.nodes.with_attribute(self.nodes.find_attribute(name))
        if len(amounts) and (amounts != amounts[0]).any():
            values = np.zeros(len(self.nodes), np.float32)
            values[rows] = amounts
            return _number(name, values, "linear")
        codes = np.ones(len(self.nodes), np.int64)
        codes[rows] = 0
        return _category(name, [f"has {name}", "has it not"], codes, plain=[1])

    @cached_property
    def clusters(self) -> tuple[list[str], np.ndarray]:
        """The clusters of the first run's vectors, by name, and the cluster of each node."""
        return self.runs[0].clusters(self.nodes)

    def hover(self, row: int) -> dict[str, Any]:
        """A few words about the node under the pointer, and its first neighbours, to draw the edges."""
        neighbours = self.nodes.neighbours(self._row(row))[0]
        return {**self.nodes.brief(row), "degree": len(neighbours), "neighbours": neighbours[:MOST_HOVERED].tolist()}

    def card(self, row: int) -> dict[str, Any]:
        """All that is known of one node."""
        row = self._row(row)
        nodes, attributes = self.nodes, self.nodes.attributes_of(row)
        neighbours, weights = nodes.neighbours(row)
        shown = neighbours[:MOST_NEIGHBOURS]
        return {
            **nodes.brief(row),
            "attributes": [[name, amount] for name, amount in attributes[:MOST_ATTRIBUTES]],
            "attribute_total": len(attributes),
            "neighbours": [
                {**nodes.brief(other), "weight": float(weight)}
                for other, weight in zip(shown.tolist(), weights[: len(shown)].tolist(), strict=True)
            ],
            "neighbour_total": len(neighbours),
            "nearest": [self._nearest(run, row) for run in self.runs],
        }

    def _nearest(self, run: Run, row: int) -> list[dict[str, Any]]:
        rows, cosines = run.nearest(row, NEAREST)
        scores = run.scores(row, rows)
        linked = set(self.nodes.neighbours(row)[0].tolist())
        return [
            {**self.nodes.brief(other), "cosine": cosine, "score": score, "linked": other in linked}
            for other, cosine, score in zip(rows.tolist(), cosines.tolist(), scores, strict=True)
        ]

    def reasons(self, row: int, run: int = 0) -> dict[str, Any]:
        """What shaped a node's vector, and which links a model suggests; empty without a model."""
        return self._run(run).reasons(self.nodes, self._row(row))

    def summary(self, rows: np.ndarray) -> dict[str, Any]:
        """What some nodes have in common: their classes, outstanding attributes and the edges among them."""
        rows, nodes = self._rows(rows), self.nodes
        classes, codes = nodes.classes
        inside = np.bincount(codes[rows], minlength=len(classes) + 1)
        overall = np.bincount(codes, minlength=len(classes) + 1)
        order = [at for at in np.argsort(-inside, kind="stable").tolist() if inside[at] and at < len(classes)]
        part = nodes.attributes[rows]
        had = np.bincount(part.indices, minlength=len(nodes.attribute_names))
        best = outstanding(had, len(rows), nodes.attribute_counts, len(nodes), MOST_LISTED)
        lift = lifts(had, len(rows), nodes.attribute_counts, len(nodes))
        return {
            "count": len(rows),
            "classes": [[str(classes[at]), int(inside[at]), int(overall[at])] for at in order[:MOST_LISTED]],
            "class_total": len(order),
            "attributes": [
                [nodes.attribute_names[at], int(had[at]), int(nodes.attribute_counts[at]), float(lift[at])]
                for at in best.tolist()
            ],
            "edges": self._edges_within(rows),
        }

    def _edges_within(self, rows: np.ndarray) -> int:
        part = self.nodes.adjacency[rows][:, rows]
        return int(part.nnz + np.count_nonzero(part.diagonal())) // 2

    def edges(self, rows: np.ndarray) -> np.ndarray:
        """(edges, 2) uint32: the edges with at least one end among some nodes, at most MOST_EDGES, heaviest first."""
        rows = self._rows(rows)
        part = self.nodes.adjacency[rows].tocoo()
        pairs = np.sort(np.stack([rows[part.row], part.col], axis=1), axis=1)
        order = np.argsort(-part.data, kind="stable")
        _, first = np.unique(pairs[order], axis=0, return_index=True)
        return pairs[order][np.sort(first)][:MOST_EDGES].astype(np.uint32)

    def pair(self, one: int, other: int) -> dict[str, Any]:
        """What two nodes share."""
        one, other = self._row(one), self._row(other)
        nodes = self.nodes
        first, second = dict(nodes.attributes_of(one)), dict(nodes.attributes_of(other))
        ours, theirs = nodes.neighbours(one)[0], nodes.neighbours(other)[0]
        common = np.intersect1d(ours, theirs)
        return {
            "nodes": [nodes.brief(one), nodes.brief(other)],
            "cosines": [cosines_of_pairs(run.vectors[[one]], run.vectors[[other]]).tolist()[0] for run in self.runs],
            "score": self.runs[0].scores(one, np.array([other]))[0],
            "linked": bool(np.isin(other, ours)),
            "attributes": [name for name in first if name in second],
            "only": [len(set(first) - set(second)), len(set(second) - set(first))],
            "neighbours": [nodes.brief(row) for row in common[:MOST_NEIGHBOURS].tolist()],
            "neighbour_total": len(common),
        }

    def described(self, rows: np.ndarray) -> list[list[str]]:
        """The id and label of each of some nodes, to export."""
        return [[self.nodes.name(row), self.nodes.label(row)] for row in self._rows(rows).tolist()]

    def rows_of(self, kind: str, name: str) -> np.ndarray:
        """The rows of the nodes with an attribute or a label, or with an id that holds a text; ascending."""
        if kind == "attribute":
            return np.sort(self.nodes.with_attribute(self.nodes.find_attribute(name))[0])
        if kind == "label":
            classes, codes = self.nodes.classes
            return np.flatnonzero(np.isin(codes, np.flatnonzero(classes == name)))
        if kind == "id":
            return self.nodes.matching(name)
        raise ParameterError(f"nodes are found by attribute, label or id, not by {kind!r}")

    def _run(self, number: int) -> Run:
        if not 0 <= number < len(self.runs):
            raise ParameterError(f"there is no run {number}; there are {len(self.runs)}, from 0")
        return self.runs[number]

    def _row(self, row: int) -> int:
        if not 0 <= row < len(self.nodes):
            raise ParameterError(f"there is no row {row}; there are {len(self.nodes)}, from 0")
        return row

    def _rows(self, rows: np.ndarray) -> np.ndarray:
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self.nodes)):
            raise ParameterError(f"there is no row {rows.max()}; there are {len(self.nodes)}, from 0")
        return np.unique(rows.astype(np.int64))


def _category(
    title: str, names: list[str], codes: np.ndarray, plain: list[int] | None = None
) -> tuple[Any, np.ndarray]:
    """A column of classes; a code beyond the names stands for none, `plain` ones are drawn without a colour."""
    counts = np.bincount(np.minimum(codes, len(names)), minlength=len(names) + 1)
    about = {
        "title": title,
        "kind": "category",
        "names": names,
        "counts": counts[:-1].tolist(),
        "none": int(counts[-1]),
    }
    return about | {"plain": plain or []}, np.minimum(codes, 65535).astype(np.uint16)


def _number(title: str, values: np.ndarray, scale: str) -> tuple[dict[str, Any], np.ndarray]:
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    return {"title": title, "kind": "number", "low": low, "high": high, "scale": scale}, values.astype(np.float32)
