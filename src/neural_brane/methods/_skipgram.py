"""What the skip-gram methods share: tables, the falling learning rate, progress."""

import secrets
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.kernels import cpu
from neural_brane.kernels.model import padded, zeros
from neural_brane.kernels.sgns import cpu as sgns
from neural_brane.methods.base import Embedder, require
from neural_brane.progress import Progress, Reporter
from neural_brane.sampling.buckets import CellSorter

CHUNK_PAIRS = 500_000  # drawn, sorted and trained at a time: enough for many in each cell, little to keep
PAIRS_PER_ROW = 16  # in a chunk, where there are cells: with more, a row would see one bucket for too long
MIXED_PAIRS = 2_000_000  # of walks, drawn at a time and spread over chunks
BLOCK_ROWS = 65_536  # filled with random numbers at a time


class Corpus(NamedTuple):
    """Where pairs come from: `draw(first, count)` gives the pairs (k, 2) of some walks or edges of an endless row.

    An epoch takes `total` of them.
    """

    draw: Callable[[int, int], np.ndarray]
    total: int
    pairs: float  # that one of them gives, about


class SkipGram:
    """A source and a target table, trained on pairs with negatives from frequency ** 0.75.

    sources, targets: how often each occurs, about: work is shared out, and negatives are drawn, accordingly. Source
    rows start small and random and stay so where no pair has them; targets start at zero. With `one_table`, sources
    and targets are the same vectors. With `shares`, the source table is another SkipGram's, of the same sources and
    buckets.
    """

    def __init__(
        self,
        sources: np.ndarray,
        targets: np.ndarray,
        *,
        dim: int,
        negatives: int,
        seed: int,
        one_table: bool = False,
        buckets: int | None = None,
        shares: "SkipGram | None" = None,
    ):
        first, second = (int(part) for part in np.random.SeedSequence(seed).generate_state(2, np.uint64))
        self.dim = dim
        self.drawn = 0
        self.sorter = CellSorter(
            sources.astype(np.float64),
            targets.astype(np.float64),
            negatives=negatives,
            one_table=one_table,
            buckets=buckets,
            seed=first,
        )
        self.source: np.ndarray = shares.source if shares else self._random(len(sources), second)
        self.target = self.source if one_table else zeros(len(targets), padded(dim))

    def _random(self, rows: int, seed: int) -> np.ndarray:
        """Uniform in ±1 / (2 dim), as word2vec's."""
        table = zeros(rows, padded(self.dim))
        rng = np.random.default_rng(seed)
        place = self.sorter.sources.place
        for start in range(0, rows, BLOCK_ROWS):
            some = place[start : start + BLOCK_ROWS]
            table[some, : self.dim] = (rng.random((len(some), self.dim), np.float32) - np.float32(0.5)) / self.dim
        return table

    def train(self, pairs: np.ndarray, first_rate: float, last_rate: float) -> None:
        """One step per pair, at a rate that falls evenly; chunk by chunk, neighbouring pairs in different chunks.

        A walk has many pairs of the same few nodes. Sorted into cells all at once, they would pull a vector to
        and fro.
        """
        chunks = max(1, -(-len(pairs) // self.chunk))
        rates = np.linspace(first_rate, last_rate, chunks + 1)
        for chunk in range(chunks):
            some = np.ascontiguousarray(pairs[chunk::chunks])
            cells = self.sorter.sort(some, self.drawn)
            sgns.train(self.source, self.target, *cells, rates[chunk], rates[chunk + 1])
            self.drawn += len(some)

    @property
    def chunk(self) -> int:
        """How many pairs to train at a time."""
        return CHUNK_PAIRS if self.sorter.buckets == 1 else min(CHUNK_PAIRS, PAIRS_PER_ROW * len(self.source))

    @property
    def vectors(self) -> np.ndarray:
        """The source table, (sources, dim), in the order of the sources."""
        return self.source[self.sorter.sources.place, : self.dim]


class SkipGramEmbedder(Embedder):
    """What such methods do alike: draw a seed where none is given, learn on some threads, keep the source vectors."""

    seed: int | None
    threads: int | None

    def _fit(self, graph: AttributedGraph) -> None:
        require(self.seed is None or 0 <= self.seed < 2**63, "seed", self.seed, "a whole number from 0, or None")
        self.seed_ = secrets.randbits(63) if self.seed is None else self.seed
        with cpu.threads(self.threads):
            self.vectors_ = self._vectors(graph)

    @abstractmethod
    def _vectors(self, graph: AttributedGraph) -> np.ndarray:
        """Check the other parameters and learn: (nodes, dim) float32."""

    def _blocks(self) -> Iterator[np.ndarray]:
        yield self.vectors_


def train(
    parts: Sequence[tuple[Corpus, SkipGram]],
    *,
    learning_rate: float,
    epochs: int = 1,
    unit: str,
    progress: Reporter | None,
) -> None:
    """Train all parts side by side, some pairs of each in turn, while the rate falls evenly to nothing."""
    chunks = max(
        1,
        *(
            int(np.ceil(corpus.total * corpus.pairs / (MIXED_PAIRS if corpus.pairs > 1 else model.chunk)))
            for corpus, model in parts
        ),
    )
    total = sum(corpus.total for corpus, _ in parts)
    steps = chunks * epochs
    for step in range(steps):
        begun = time.perf_counter()
        rates = learning_rate * (1 - step / steps), learning_rate * (1 - (step + 1) / steps)
        epoch, chunk = divmod(step, chunks)
        for corpus, model in parts:
            first, last = (epoch * corpus.total + corpus.total * at // chunks for at in (chunk, chunk + 1))
            model.train(corpus.draw(first, last - first), *rates)
        if progress:
            done = total * (step + 1) // chunks
            rate = total / chunks / (time.perf_counter() - begun)
            progress(Progress(1 + epoch, epochs, done, total * epochs, None, rate, unit))
    for _, model in parts:
        if not np.isfinite(model.source).all():
            raise ParameterError(
                f"training diverged: some vectors are no longer numbers; lower learning_rate={learning_rate}"
            )


def check(*, counts: dict[str, int], rates: dict[str, float]) -> None:
    """Refuse counts below 1 and rates not above 0, one clear message each."""
    for name, count in counts.items():
        require(isinstance(count, int) and count >= 1, name, count, "a whole number from 1")
    for name, rate in rates.items():
        require(0 < rate < np.inf, name, rate, "a number above 0")


def default_samples(entries: int) -> int:
    """How many edges to draw: each a hundred times, and enough for a small graph to learn."""
    return max(100 * entries, 3_000_000)
