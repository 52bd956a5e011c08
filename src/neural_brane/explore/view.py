"""Answer what the page asks of its data: names, places, colours, and lists of links, attributes and nearest nodes.

An answer is a dict of plain values and arrays. The server sends it when the page asks, and the page as one file holds
the answers of all nodes. What the page makes of them (cards, search, summaries) is `page/questions.js` for both.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from neural_brane.errors import ParameterError
from neural_brane.explore.nodes import Nodes, count_edges
from neural_brane.explore.run import Run, divide
from neural_brane.insight.groups import name_groups, weigh_attributes
from neural_brane.search.exact import cosines_of_pairs

NEAREST = 10  # nodes in a list of the nearest
QUICK_CLUSTERS = 20_000  # nodes up to which clusters are found in a moment
LEVELS = (8, 32, 128)  # named regions of the whole map, of a part of it, and from near
FEWEST = 12  # nodes in a region, on average
CLEAR = 0.6  # share of a region's nodes with one label, from which the label names it
WORDS = 2  # attributes that name a region

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
                return self.nearest(int(query["run"]), some)
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
        columns = []
        if self.nodes.labels is not None:
            columns.append({"name": "label", "title": "label"})
        if self.nodes.graph is not None:
            columns.append({"name": "degree", "title": "number of neighbours"})
        columns.append({"name": "length", "title": "length of the vector"})
        clusters = {"name": "cluster", "title": "cluster of similar vectors"}
        at = bool(self.nodes.labels is not None) if len(self.nodes) <= QUICK_CLUSTERS else len(columns)
        return [*columns[:at], clusters, *columns[at:]]  # the page opens with the first, which must be there at once

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
        finest = [count for count in LEVELS if len(points) >= FEWEST * count] or ([1] if len(points) else [])
        return [self._level(points, count) for count in finest]

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
            return _number("number of neighbours", self.nodes.degrees)
        if name == "length":
            return _number("length of the vector", self.runs[0].lengths)
        raise ParameterError(f"there is no colour {name!r}; choose label, cluster, degree, length or attribute:NAME")

    @cached_property
    def clusters(self) -> tuple[list[str], np.ndarray]:
        """The clusters of the first run's vectors, by name, and the cluster of each node."""
        return self.runs[0].clusters(self.nodes)

    def nearest(self, run: int, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The nearest nodes of some nodes by one run, their cosines and, where the run has them, scores of a link."""
        return self._run(run).nearest(rows, NEAREST)

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


def _number(title: str, values: np.ndarray) -> Answer:
    return {"title": title, "kind": "number", "values": values.astype(np.float32)}
