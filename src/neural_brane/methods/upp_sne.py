"""UPP-SNE: learn cosines and sines of attributes that predict the nodes met on random walks."""

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
FEWEST_WALKS = 150_000  # least number of all walks by default, because small graphs need as many steps as large ones
STEPS_AT_ONCE = 64  # steps of Adam in a step of the loop


class LearnedAngles(NamedTuple):
    """The map from attributes to angles, and the losses of its training."""

    maps: np.ndarray  # (attributes, dim - dim // 2) float32
    loss_history: list[float]  # mean loss of a target in each step of the loop


class UPPSNE(InductiveEmbedder):
    """Learn a map of attributes whose vectors predict the nodes met on random walks.

    User profile preserving social network embedding (Zhang, Yin, Zhu, Zhang; 2017). It is good for new nodes, which are
    embedded by their attributes. A node's vector depends only on its attributes x: it contains the cosines and sines of
    dim / 2 angles μ·x, divided by the root of their number, like random Fourier features; if dim is odd, the last angle
    has no sine. Skip-gram learns the μ and a context vector for each node, so that a node's vector distinguishes the
    nodes around it on random walks from nodes drawn in proportion to frequency ** 0.75.

    One place is drawn on each walk; its node predicts all others within the window, each with separate negatives. The
    authors take plain gradient steps, over all pairs in the paper and pair by pair in their program, a hundred million
    in total. Here Adam takes a step for every 64 walks and needs far fewer; its rate was chosen by the classes of
    citeseer, cora and wiki, the number of walks by those of caltech36. Rows of attributes have length one, so that
    angles stay small. The final vectors leave out that division, because it made a penalised regression predict classes
    worse on wiki and caltech36. All nodes without attributes share one vector. If a graph has no attributes, each node
    is its own attribute, and new nodes cannot be embedded.
    """

    title = "upp-sne"
    growth = "time: nodes × walks × window × dim; memory: edges + entries + (nodes + attributes) × dim"
    paper = "Zhang, Yin, Zhu, Zhang: User profile preserving social network embedding, 2017"
    grid = {"learning_rate": [0.003, 0.01, 0.03], "walks_per_node": [10, 40]}
    small = {"walks_per_node": 1, "walk_length": 10}
    trial = {"walks_per_node": 1}
    holds = {"upp-sne": LearnedAngles}
    learns = {
        "maps_": "ndarray of shape (attributes, angles), float32: The map from attributes to angles.",
        "loss_history_": "list of float: Mean loss of a pair or a negative in each section of the training.",
    }
    by_attributes = True
    why_not = "its map is shared by all nodes, so more steps would move every vector; transform embeds new nodes"

    walks_per_node: int | None = whole(
        "Walks that start at each node; one place of each is a source. None: 40, or more in a small graph, for at "
        "least 150,000 walks in total.",
        default=None,
    )
    walk_length: int = whole("Nodes in a walk.", default=100, least=2)
    window: int = whole("Largest distance on the walk between a source and the nodes paired with it.", default=10)
    negatives: int = whole("Negatives for each pair, drawn in proportion to (visits of the walks) ** 0.75.", default=5)
    learning_rate: float = shared("learning_rate", default=0.01, about="Learning rate of Adam.")
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
        """Return the number of multiplications for all pairs and their negatives."""
        pairs = self._walks(sizes.nodes) * 2 * min(self.window, self.walk_length)
        return float(pairs * (1 + self.negatives) * 2 * padded(self.dim - self.dim // 2))

    def _walks(self, nodes: int) -> int:
        """Return the number of all walks."""
        if self.walks_per_node is not None:
            return nodes * self.walks_per_node
        return nodes * max(40, -(-FEWEST_WALKS // max(nodes, 1)))

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedAngles:
        links = proper_links(graph, "there are no pairs to learn from")  # A self-loop pairs a node with itself.
        attributes = unit(own_attributes(graph))
        own_seeds = two_seeds(seed)
        tables = bags.empty_tables(attributes.shape[1], len(graph), self.dim)
        maps, rng = tables.maps[:, : self.dim - self.dim // 2], np.random.default_rng(own_seeds[0])
        for rows in row_blocks(len(maps)):  # uniform in ±1 / (2 columns), like the authors' program
            shape = maps[rows].shape
            maps[rows] = (rng.random(shape, np.float32) - np.float32(0.5)) / np.float32(maps.shape[1])
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
                steps = bags.StepRange(self.learning_rate, at * STEPS_AT_ONCE, self.batch_size)
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
    """Yield the vectors of nodes with these attributes, some at a time: cosines, then sines."""
    for rows in row_blocks(attributes.shape[0]):
        angles = unit(attributes[rows]) @ maps
        yield np.hstack([np.cos(angles), np.sin(angles[:, : dim - maps.shape[1]])])


def unit(attributes: sparse.csr_array) -> sparse.csr_array:
    """Return attributes with rows of length one, float32; an empty row stays empty."""
    lengths = np.sqrt((attributes.astype(np.float64) ** 2).sum(axis=1))
    scales = np.repeat(1 / np.where(lengths > 0, lengths, 1), np.diff(attributes.indptr))
    values = (attributes.data * scales).astype(np.float32)
    return sparse.csr_array((values, attributes.indices, attributes.indptr), shape=attributes.shape)


def places_of(walks: np.ndarray, seed: int, step: int) -> np.ndarray:
    """Return one random place (k,) on each walk (k, length), before the end of the walk."""
    chances = np.random.default_rng([seed, step]).random(len(walks))
    return (chances * (walks >= 0).sum(axis=1)).astype(np.int64)
