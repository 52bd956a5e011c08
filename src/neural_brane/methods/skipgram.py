"""Share parts of skip-gram methods: tables, and training at a learning rate that falls to zero."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels import cpu, sgns
from neural_brane.kernels.model import padded, zeros
from neural_brane.methods.base import VECTORS, Embedder, Vectors
from neural_brane.methods.parameters import shared, whole
from neural_brane.methods.training import SINGLE, Loop
from neural_brane.progress import Meter
from neural_brane.sampling.buckets import TileSorter
from neural_brane.sampling.walks import EdgeSampler, window_pairs

CHUNK_PAIRS = 500_000  # most pairs drawn, sorted and trained at a time
PAIRS_PER_ROW = 16  # pairs of a chunk per row if there are tiles; more would train a row on one bucket for too long
MIXED_PAIRS = 2_000_000  # pairs of walks drawn at a time and distributed over chunks
WALKS = 10_000  # walks counted at a time
BLOCK_ROWS = 65_536  # rows filled with random numbers at a time
CHECKED_ROWS = 1_024  # source rows of a step checked for NaN, which spreads quickly


class Corpus(NamedTuple):
    """A source of pairs, which come from an endless sequence of walks or edges."""

    draw: Callable[[int, int], np.ndarray]  # (first, count) -> pairs (k, 2) of these walks or edges
    total: int  # walks or edges in an epoch
    pairs: float  # approximate number of pairs per walk or edge


class SkipGram:
    """A source and a target table, trained on pairs, with negatives drawn in proportion to frequency ** 0.75.

    sources, targets: approximate frequency of each row; it decides how work is divided and negatives are drawn. If
    `sources` is another SkipGram, both share its source table and buckets. Without `targets`, one table serves as both.
    Source rows start small and random, target rows at zero.
    """

    def __init__(
        self,
        sources: "np.ndarray | SkipGram",
        targets: np.ndarray | None = None,
        *,
        dim: int,
        negatives: int,
        seed: int,
        buckets: int | None = None,
    ):
        first, second = two_seeds(seed)
        other = sources if isinstance(sources, SkipGram) else None
        self.frequency: np.ndarray = other.frequency if other else sources.astype(np.float64)  # type: ignore[union-attr]
        self.dim, self.drawn = dim, 0
        self.sorter: TileSorter = TileSorter(
            self.frequency, self.frequency if targets is None else targets.astype(np.float64), negatives=negatives,
            one_table=targets is None, buckets=other.sorter.buckets if other else buckets, seed=first,
        )  # fmt: skip
        self.source: np.ndarray = other.source if other else zeros(len(self.frequency), padded(dim))
        rng, place = np.random.default_rng(second), self.sorter.sources.place
        for start in range(0, 0 if other else len(place), BLOCK_ROWS):  # uniform in ±1 / (2 dim), like word2vec
            rows = place[start : start + BLOCK_ROWS]
            self.source[rows, :dim] = (rng.random((len(rows), dim), np.float32) - np.float32(0.5)) / dim
        self.target = self.source if targets is None else zeros(len(targets), padded(dim))

    def train(self, pairs: np.ndarray, first_rate: float, last_rate: float) -> None:
        """Take one step per pair (k, 2) with a falling rate; adjacent pairs go to different chunks."""
        chunks = max(1, -(-len(pairs) // self.chunk))
        rates = np.linspace(first_rate, last_rate, chunks + 1)
        for chunk in range(chunks):
            taken = np.ascontiguousarray(pairs[chunk::chunks])
            tiles = self.sorter.sort(taken, self.drawn)
            sgns.train(self.source, self.target, tiles, rates[chunk], rates[chunk + 1])
            self.drawn += len(taken)

    @property
    def chunk(self) -> int:
        """The number of pairs trained at a time."""
        return CHUNK_PAIRS if self.sorter.buckets == 1 else min(CHUNK_PAIRS, PAIRS_PER_ROW * len(self.source))

    @property
    def vectors(self) -> np.ndarray:
        """The source table (sources, dim), in the order of the sources."""
        return self.source[self.sorter.sources.place, : self.dim]


Walks = Callable[[int, int], np.ndarray]  # (first, count) -> walks (count, length)
Part = tuple[Corpus, SkipGram]  # a source of pairs, and the tables it trains


class SkipGramEmbedder(Embedder):
    """A method whose vectors are the source table of skip-gram; it cannot be prolonged, as its rate falls to zero."""

    learns = VECTORS
    why_not = "it keeps only the vectors, not the table of contexts of their training"

    checkpoint: str | Path | None = shared("checkpoint", default=None)
    learning_rate: float = shared(
        "learning_rate", default=0.025, about="First learning rate; it falls linearly to zero."
    )

    def _learn(self, graph: AttributedGraph, seed: int) -> Vectors:
        with cpu.threads(self.threads):
            return Vectors(self._vectors(graph, seed))

    def _tables(self, rows: int, targets: int) -> dict[str, int]:
        """Return the bytes of tables with `rows` and `targets` rows, and of the buckets of their rows."""
        return {"tables": SINGLE * padded(self.dim) * (rows + targets), "sampling": 24 * (rows + targets)}

    def _chunk(self, rows: int, negatives: int) -> dict[str, int]:
        """Return the bytes of the pairs of a chunk, as drawn and sorted into tiles with their negatives."""
        return {"batches": min(CHUNK_PAIRS, PAIRS_PER_ROW * rows) * (40 + 8 * negatives)}

    def _train(self, parts: Sequence[Part], unit: str, epochs: int = 1) -> None:
        """Train all parts in turn, a chunk of pairs each, while the learning rate falls linearly to zero."""
        pairs = [(text.total * text.pairs, MIXED_PAIRS if text.pairs > 1 else model.chunk) for text, model in parts]
        chunks = max(1, *(int(np.ceil(number / chunk)) for number, chunk in pairs))
        total, steps = sum(corpus.total for corpus, _ in parts), chunks * epochs
        loop = Loop(
            self._stages.stage("tables"), Meter(self.progress, total * epochs, unit, epochs=epochs), steps,
            per_epoch=chunks, units=lambda step: total * step // chunks, learning_rate=self.learning_rate,
        )  # fmt: skip
        loop.numbers["drawn"] = [0] * len(parts)

        def train(step: int) -> None:
            rates = self.learning_rate * (1 - step / steps), self.learning_rate * (1 - (step + 1) / steps)
            epoch, chunk = divmod(step, chunks)
            for at, (corpus, model) in enumerate(parts):
                first, last = (epoch * corpus.total + corpus.total * part // chunks for part in (chunk, chunk + 1))
                model.drawn = loop.numbers["drawn"][at]
                pairs = corpus.draw(first, last - first)
                model.train(pairs, *rates)
                loop.numbers["drawn"][at] = model.drawn
                checked = model.source[model.sorter.sources.place[pairs[-CHECKED_ROWS:, 0]]]
                loop.require_finite(step, vectors=checked)

        tables: dict[str, np.ndarray] = {}  # every table once, though parts may share some
        for at, (_, model) in enumerate(parts):
            for name, table in ((f"source {at}", model.source), (f"target {at}", model.target)):
                if not any(table is other for other in tables.values()):
                    tables[name] = table
        loop.run(tables, train)

    @abstractmethod
    def _vectors(self, graph: AttributedGraph, seed: int) -> np.ndarray:
        """Return the learned vectors, (nodes, dim) float32."""


def pairs_of_walks(walks: Walks, total: int, *, length: int, window: int, seed: int) -> Corpus:
    """Return the pairs of nodes within a window on `total` walks; every epoch uses the same walks."""

    def draw(first: int, count: int) -> np.ndarray:
        return window_pairs(walks(first % total, count), window=window, seed=seed, first=first)

    return Corpus(draw, total, pairs=length * (window + 1))


def count_visits(walks: Walks, total: int, nodes: int) -> np.ndarray:
    """Return how often `total` walks visit each node, (nodes,) int64."""
    visits = np.zeros(nodes, np.int64)
    for first in range(0, total, WALKS):
        block = walks(first, min(WALKS, total - first))
        visits += np.bincount(block[block >= 0], minlength=nodes)
    return visits


class EdgeSkipGram(SkipGramEmbedder):
    """A skip-gram method that draws its pairs from the entries of matrices, in proportion to their value."""

    small = {"samples": 20_000}
    trial = {"samples": 200_000}

    samples: int | None = whole("Entries drawn.", default=None)
    negatives: int = whole("Negatives for each entry, drawn in proportion to (weighted degree) ** 0.75.", default=5)

    def _samples(self, entries: int) -> int:
        """Return the number of entries to draw: as given, or 100 for each entry, at least 3 million."""
        return max(100 * entries, 3_000_000) if self.samples is None else self.samples

    def work(self, sizes: Sizes) -> float:
        """Return the number of multiplications for all drawn entries and their negatives."""
        drawn = self._samples(max(sizes.links, sizes.attribute_entries if "attributes" in self.uses else 0))
        return float(drawn * len(self.uses) * (1 + self.negatives) * padded(self.dim))


def two_seeds(seed: int) -> tuple[int, int]:
    """Return two independent seeds made from one."""
    first, second = (int(part) for part in np.random.SeedSequence(seed).generate_state(2, np.uint64))
    return first, second


def edges_of(matrix: sparse.csr_array, samples: int, seed: int) -> Corpus:
    """Return the entries of a matrix as pairs of row and column."""
    return Corpus(EdgeSampler(matrix, seed=seed).draw, samples, pairs=1)
