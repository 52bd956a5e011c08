"""UPP-SNE: cosines and sines of attributes, shaped so that a node predicts those it meets on walks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.kernels import bags, cpu
from neural_brane.kernels.model import padded, rows_of
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.features import own_attributes, proper_links, row_blocks
from neural_brane.methods.parameters import shared, whole
from neural_brane.methods.skipgram import count_visits, two_seeds
from neural_brane.methods.training import ALIAS, SINGLE, Loop, Moments, neighbour_bytes
from neural_brane.progress import Meter
from neural_brane.sampling.tables import alias_table
from neural_brane.sampling.walks import WalkSampler, window_targets

NEGATIVE_POWER = 0.75
FEWEST_WALKS = 150_000  # in all, unless their number is given: a small graph needs as many steps as a larger one
STEPS_AT_ONCE = 64  # trained between two looks at the checkpoint


class LearnedAngles(NamedTuple):
    """The map from attributes to angles, and how its training went."""

    maps: np.ndarray  # (attributes, dim - dim // 2) float32
    loss_history: list[float]  # the mean loss of a target, a context or a negative, some batches at a time


class UPPSNE(InductiveEmbedder):
    """User profile preserving social network embedding (Zhang, Yin, Zhu, Zhang; 2017).

    A node's vector is made of its attributes x alone: the cosines and the sines of some angles μ·x, divided by the
    square root of their number, as random Fourier features are. But the μ are learned, together with a context vector
    per node, by skip-gram: a node's vector predicts the nodes around it on random walks, and not those drawn at random
    by frequency ** 0.75. So attributes are mapped in the way that agrees with the links, and new nodes are embedded by
    their attributes. There are dim / 2 angles; where dim is odd, the last one has no sine.

    Of every walk one place is drawn, whose node predicts all others within the window; each of them comes with
    negatives of its own. The authors take plain gradient steps: of all pairs at once in the paper, pair by pair in
    their later program, a hundred million of them. Here Adam takes a step for every 64 walks, which needs far fewer;
    its rate was chosen by the classes of citeseer, cora and wiki, and the number of walks by those of caltech36. Rows
    of attributes have length one, so that angles stay small whatever the amounts. The vectors that come out are not
    divided by the root of the number of angles: a regression with a penalty tells classes better by them on wiki and
    caltech36. A node without attributes has no angles, and so the vector that all such nodes share. In a graph without
    any attribute each node is its own, and only its own nodes can be embedded.
    """

    title = "upp-sne"
    growth = "time: nodes × walks × window × dim; memory: edges + entries + (nodes + attributes) × dim"
    paper = "Zhang, Yin, Zhu, Zhang: User profile preserving social network embedding, 2017"
    grid = {"learning_rate": [0.003, 0.01, 0.03], "walks_per_node": [10, 40]}
    small = {"walks_per_node": 1, "walk_length": 10}
    trial = {"walks_per_node": 1}
    holds = {"upp-sne": LearnedAngles}
    by_attributes = True
    why_not = "its map is shared by all nodes, so that more steps move all of them; transform embeds new nodes"

    walks_per_node: int | None = whole(
        "Walks that start at each node; one place of each is a source. None: 40, and more in a small graph, so that "
        "there are 150,000 in all.",
        default=None,
    )
    walk_length: int = whole("Nodes in a walk.", default=100, least=2)
    window: int = whole("A source is paired with the nodes of its walk at most so many places away.", default=10)
    negatives: int = whole("Nodes drawn against each pair, in proportion to (visits of walks) ** 0.75.", default=5)
    learning_rate: float = shared("learning_rate", default=0.01, about="Of Adam.")
    batch_size: int = whole("Walks in a step.", default=64)
    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, padded(self.dim - self.dim // 2)
        attributes, entries = (sizes.attributes, sizes.attribute_entries) if sizes.attributes else (n, n)
        targets = 2 * self.window * (1 + self.negatives)
        walks = STEPS_AT_ONCE * self.batch_size * (4 * self.walk_length + 4 * targets + 24)
        held = {
            "tables": 3 * SINGLE * width * (attributes + 2 * n) + 8 * (attributes + n),
            "matrices": 8 * entries + 16 * n + 8 * sizes.links,
            "sampling": neighbour_bytes(sizes) + 20 * n,
        }
        return {
            "preparing draws": held | {"sampling": held["sampling"] + ALIAS * n},
            "training": held | {"batches": walks + self.batch_size * targets * (28 + 2 * SINGLE * width)},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers of the vectors of all pairs and their negatives."""
        pairs = self._walks(sizes.nodes) * 2 * min(self.window, self.walk_length)
        return float(pairs * (1 + self.negatives) * 2 * padded(self.dim - self.dim // 2))

    def _walks(self, nodes: int) -> int:
        """Count all walks."""
        if self.walks_per_node is not None:
            return nodes * self.walks_per_node
        return nodes * max(40, -(-FEWEST_WALKS // max(nodes, 1)))

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedAngles:
        links = proper_links(graph, "there are no pairs to learn from")  # a self-loop pairs a node with itself
        attributes = unit(own_attributes(graph))
        own_seeds = two_seeds(seed)
        tables = bags.empty_tables(attributes.shape[1], len(graph), self.dim)
        maps, rng = tables.maps[:, : self.dim - self.dim // 2], np.random.default_rng(own_seeds[0])
        for rows in row_blocks(len(maps)):  # uniform in ±1 / (2 columns), as in the authors' program
            some = maps[rows]
            some[:] = (rng.random(some.shape, np.float32) - np.float32(0.5)) / np.float32(maps.shape[1])
        with cpu.threads(self.threads):
            sampler = WalkSampler(links, length=self.walk_length, seed=seed)
            visits = self._stages.once("visits", lambda: count_visits(sampler.draw, len(graph), len(graph)))
            frequent, own = alias_table(visits**NEGATIVE_POWER), rows_of(attributes)
            total, chunk = self._walks(len(graph)), STEPS_AT_ONCE * self.batch_size
            numbers: dict[str, Any] = {"losses": []}

            def step(at: int) -> float:
                first = at * chunk
                walks = sampler.draw(first, min(chunk, total - first))
                places = places_of(walks, own_seeds[1], at)
                targets = window_targets(
                    walks, places, window=self.window, negatives=self.negatives, frequent=frequent, seed=own_seeds[1],
                    first=first,
                )  # fmt: skip
                steps = bags.Steps(self.learning_rate, at * STEPS_AT_ONCE, self.batch_size)
                losses = bags.train(tables, own, walks[np.arange(len(walks)), places], targets, self.dim, steps)
                numbers["losses"].append(float(losses.mean(dtype=np.float64)))
                return float(numbers["losses"][-1])

            loop = Loop(
                self._stages.stage("tables"), Meter(self.progress, total, "walks"), -(-total // chunk),
                units=lambda at: min(at * chunk, total), learning_rate=self.learning_rate,
            )  # fmt: skip
            losses = loop.run(tables._asdict(), step, numbers=numbers)
        return LearnedAngles(np.ascontiguousarray(maps), losses)

    def _blocks(self, graph: AttributedGraph, learned: LearnedAngles) -> Iterator[np.ndarray]:
        return embed(own_attributes(graph), learned.maps, self.dim)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        return stack(embed(new.attributes, fitted.learned.maps, self.dim), len(new), self.dim)


def embed(attributes: sparse.csr_array, maps: np.ndarray, dim: int) -> Iterator[np.ndarray]:
    """The vectors of nodes with these attributes, some at a time: cosines, then sines."""
    for rows in row_blocks(attributes.shape[0]):
        angles = unit(attributes[rows]) @ maps
        yield np.hstack([np.cos(angles), np.sin(angles[:, : dim - maps.shape[1]])])


def unit(attributes: sparse.csr_array) -> sparse.csr_array:
    """Attributes with rows of length one; an empty row stays empty."""
    lengths = np.sqrt((attributes.astype(np.float64) ** 2).sum(axis=1))
    scales = np.repeat(1 / np.where(lengths > 0, lengths, 1), np.diff(attributes.indptr))
    values = (attributes.data * scales).astype(np.float32)
    return sparse.csr_array((values, attributes.indices, attributes.indptr), shape=attributes.shape)


def places_of(walks: np.ndarray, seed: int, step: int) -> np.ndarray:
    """A random place of each of the walks (k, length) before its end."""
    chances = np.random.default_rng([seed, step]).random(len(walks))
    return (chances * (walks >= 0).sum(axis=1)).astype(np.int64)
