"""Estimate memory and time of a training before it begins, from a graph or from its sizes alone."""

from __future__ import annotations

import hashlib
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.distributed.estimate import PROGRAM_BYTES as RANK_BYTES
from neural_brane.distributed.estimate import Ranks, ranks_of
from neural_brane.errors import GraphError, ParameterError
from neural_brane.files.datasets import SYNTHETIC, synthetic_nodes
from neural_brane.files.graphs.parts import MANIFEST, open_shards
from neural_brane.files.npz import Npz, open_npz
from neural_brane.files.reading import npz_headers
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes, available, show_size, used
from neural_brane.graph.synthetic import ENTRY_BYTES, default_attributes, synthetic
from neural_brane.kernels import cpu
from neural_brane.kernels.model import Bags, Model, padded, zeros
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.linalg.eigenvectors import ITERATIONS
from neural_brane.linalg.tables import OnCPU
from neural_brane.methods import find_method
from neural_brane.methods.base import Embedder
from neural_brane.methods.neural_brane import layer
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.methods.training import largest, spectral_width, widest
from neural_brane.sampling.triplets import TripletSampler

# The speed of Neural-Brane's parts here: each is run for a moment on tables as large as the training's.
#
# Large tables lie outside the processor's caches, which makes the same kernel several times slower; so the tables of a
# trial have their true sizes, up to `MOST_NODES` rows, and only the work is little.

MOST_NODES = 500_000
ENTRIES = 1_000_000  # multiplied in a trial, or drawn at random and repeated
PATIENCE = 0.15  # seconds for each trial
REPEATS = 3  # at least: the first one compiles kernels or loads them
PASSES = 12  # over all vectors, to join both parts and give them their length


class Probes:
    """Trials of a method, with its parameters as given, for a graph of some sizes."""

    def __init__(self, method: Any, sizes: Sizes):
        self.sizes, self.settings, self.threads = sizes, method._settings_for(sizes), method.threads
        self.nodes = min(sizes.nodes, MOST_NODES)
        self.attributes = max(min(sizes.attributes, MOST_NODES), 1)
        self.random = np.random.default_rng(0)

    def seconds(self) -> dict[str, float]:
        """The seconds of each part, if training goes to its last epoch."""
        found = {}
        with cpu.threads(self.threads):
            if self.settings["spectral_dim"]:
                found["spectral part"] = self.spectral()
            if self.settings["spectral_dim"] < self.settings["dim"] and self.sizes.edges:
                found["training"] = self.training()
            if self.settings["length"] and self.settings["score_steps"] and self.sizes.edges:
                found["scores of pairs"] = self.settings["score_steps"] * self.score_step()
        return found | {"vectors": self.vectors()}

    def spectral(self) -> float:
        """Products with entries of both matrices, hop by hop, and products of the basis with itself."""
        links, words, hops = self.sizes.links, self.sizes.attribute_entries, len(self.settings["hop_weights"])
        linked = 1 if self.settings["link_weight"] else 0
        width = spectral_width(self.sizes.nodes, self.settings["spectral_dim"])
        passes = ITERATIONS + 0.5  # the last one goes half the way
        from_nodes = passes * (2 * (hops - 1) * links + hops * (words + 2 * linked * links))
        from_attributes = passes * hops * words
        slabs = width // SLAB_COLUMNS
        products = slabs * (from_nodes * self.gather(self.nodes) + from_attributes * self.gather(self.attributes))
        return products + (ITERATIONS + 1) * self.sizes.nodes * self.rotation(width)

    def gather(self, rows: int) -> float:
        """Seconds for an entry of a sparse matrix times a slab of a table with so many rows."""
        each = 20
        indices = self.random.integers(rows, size=ENTRIES, dtype=np.int32)
        indptr = np.arange(0, ENTRIES + 1, each)
        matrix = sparse.csr_array((np.ones(ENTRIES, np.float32), indices, indptr), shape=(ENTRIES // each, rows))
        table = np.ones((rows, SLAB_COLUMNS), np.float32)
        product = OnCPU(self.threads).matrix(matrix)
        return repeat(lambda: product @ table) / ENTRIES

    def rotation(self, width: int) -> float:
        """Seconds for a row of the basis: its inner products, and its turn."""
        tables, table = OnCPU(self.threads), np.ones((32_768, width), np.float32)
        rotation = np.eye(width)
        return repeat(lambda: tables.rotate(table, rotation) is tables.gram(table)) / len(table)

    def training(self) -> float:
        """Drawing triplets and taking steps with them."""
        s, own = self.settings, self.settings["attribute_dim"]
        learned = s["dim"] - s["spectral_dim"]
        neighbours = self.bags(self.sizes.links, self.nodes)
        words = self.bags(self.sizes.attribute_entries, self.attributes)
        model = Model(
            ones(self.attributes, own), ones(self.nodes, learned - own), ones(s["hidden"], learned)[:, :learned],
            np.zeros(s["hidden"], np.float32),
        )  # fmt: skip
        batch = s["batch_size"]
        steps = max(1, 20_000 // batch)
        triplets = self.random.integers(self.nodes, size=(steps, batch, 3), dtype=np.int32)
        trainer = cpu.Trainer(model, words, neighbours, kernel_settings(s), batch)
        step = repeat(lambda: trainer(triplets)) / (steps * batch)
        return s["epochs"] * s["batches_per_epoch"] * batch * (step + self.draw(neighbours))

    def draw(self, neighbours: Bags) -> float:
        """Seconds to draw a triplet."""
        data = np.ones(len(neighbours.indices), np.float32)
        adjacency = sparse.csr_array((data, neighbours.indices, neighbours.indptr), shape=(self.nodes, self.nodes))
        sampler = TripletSampler(adjacency, negative_power=self.settings["negative_power"])
        return repeat(lambda: sampler.draw(0, 50_000)) / 50_000

    def score_step(self) -> float:
        """Seconds for a step of the layer that scores pairs."""
        dim, nodes = self.settings["dim"], min(self.nodes, 100_000)
        own = Bags(np.arange(nodes + 1, dtype=np.int64), np.arange(nodes, dtype=np.int32))
        none = Bags(np.zeros(nodes + 1, np.int64), np.empty(0, np.int32))
        model = Model(ones(nodes, dim), zeros(nodes, 0), ones(dim, dim)[:, :dim], np.zeros(dim, np.float32))
        trainer = cpu.Trainer(model, own, none, layer._settings(dim), layer.BATCH)
        triplets = self.random.integers(nodes, size=(2, layer.BATCH, 3), dtype=np.int32)
        return repeat(lambda: trainer(triplets)) / 2

    def vectors(self) -> float:
        """Joining the parts, the digest of the graph, and writing."""
        some = np.ones(1 << 22, np.float32)
        passes = PASSES * repeat(lambda: np.multiply(some, some)) / some.nbytes
        digest = repeat(lambda: hashlib.sha256(some.data).digest()) / some.nbytes
        table = 4 * self.sizes.nodes * self.settings["dim"]
        return table * (passes + digest) + self.sizes.graph_bytes * digest

    def bags(self, entries: int, rows: int) -> Bags:
        """Bags of the mean size for all nodes; what they hold is drawn at random, and repeats itself."""
        each = round(entries / max(self.sizes.nodes, 1))
        drawn = np.sort(self.random.integers(rows, size=(max(ENTRIES // max(each, 1), 1), each), dtype=np.int32))
        indices = np.resize(drawn.ravel(), self.nodes * each)
        return Bags(np.arange(self.nodes + 1, dtype=np.int64) * each, indices)


def ones(rows: int, width: int) -> np.ndarray:
    """A table that is in memory, unlike one of zeros, of which the system keeps no pages."""
    table = zeros(rows, padded(width))
    table[:, :width] = 0.01
    return table


def repeat(task: Callable[[], Any]) -> float:
    """The least seconds of a task that is run for a moment: other programs only ever make it slower."""
    times: list[float] = []
    end = time.perf_counter() + PATIENCE
    while len(times) < REPEATS or time.perf_counter() < end:
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


# How long a training takes here: parts of its work are done for a moment, and what there is of them is counted.
#
# No figure of another machine is used, and none is kept.

MINIATURE = 5_000  # nodes of the graph on which other methods are tried
# What a trial of a method does less of; its own measure of work says how much less.
SHORTER = {
    "walks_per_node": 1,
    "samples": 200_000,
    "nnmf_epochs": 3,
}
SHORTER_EPOCHS = {"ep": 2} | dict.fromkeys(("nnmf", "graph2gauss", "sdne", "dngr", "dgi", "cca-ssg", "graphmae"), 3)


def seconds_of(method: Embedder, sizes: Sizes) -> dict[str, float]:
    """The seconds of each part of a training, if it goes to its last epoch."""
    if method.title == "neural-brane":
        return Probes(method, sizes).seconds()
    return {"training": _scaled_up(method, sizes)}


def _scaled_up(method: Embedder, sizes: Sizes) -> float:
    """The time of a short training on a small graph of the same shape, times how much more work there is."""
    graph = miniature(sizes)
    values = method.get_params(deep=False) | {"seed": 0, "progress": None}
    values |= {name: value for name, value in SHORTER.items() if name in values}
    if method.title in SHORTER_EPOCHS:
        values["epochs"] = SHORTER_EPOCHS[method.title]
    short = type(method)(**values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a training learns little
        short.fit(miniature(sizes, 200))  # compiles the kernels, or loads them
        seconds = timed(lambda: short.fit(graph))
    return seconds * method.work(sizes) / short.work(Sizes.of(graph))


def miniature(sizes: Sizes, nodes: int = MINIATURE) -> AttributedGraph:
    """A small graph with as many edges and attributes a node."""
    few = max(min(nodes, sizes.nodes), 20)
    degree = min(max(round(sizes.links / max(sizes.nodes, 1)), 1), few // 4)
    each = round(sizes.attribute_entries / max(sizes.nodes, 1))
    attributes = max(round(few * sizes.attributes / max(sizes.nodes, 1)), 2 * each, 10)
    return synthetic(few, degree=degree, attributes=attributes, attributes_per_node=each, classes=2)


def timed(task: Callable[[], Any]) -> float:
    """The seconds that a task takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


# The sizes of a graph by its name or file, without loading it where that is possible.

TRIAL = 20_000  # nodes that are made to learn how fast that is here
DEGREE = ATTRIBUTES_PER_NODE = 20  # of synthetic graphs, unless others are asked for


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of a graph: its sizes, what reading it takes besides, and itself where it was read."""

    sizes: Sizes
    reading_bytes: int = 0
    reading_seconds: float = 0.0
    graph: AttributedGraph | None = None


def look_at(source: str | Path, read: Callable[[], AttributedGraph]) -> Source:
    """The sizes of `synthetic:NODES`, .npz files and folders of parts as announced; of anything else after `read()`."""
    name = str(source)
    if name.startswith(SYNTHETIC):
        return _synthetic(synthetic_nodes(name))
    if name.endswith(".npz") and Path(source).is_file():
        found = _archive(Path(source))
        if found is not None:
            return found
    if (Path(source) / MANIFEST).is_file():
        return Source(_in_parts(Path(source)))
    start = time.perf_counter()
    graph = read()
    return Source(Sizes.of(graph), reading_seconds=time.perf_counter() - start, graph=graph)


def _synthetic(nodes: int) -> Source:
    entries = nodes * ATTRIBUTES_PER_NODE
    sizes = Sizes(
        nodes=nodes,
        edges=nodes * DEGREE // 2,
        attributes=default_attributes(nodes),
        attribute_entries=entries,
        text_bytes=4 * nodes,
    )
    few = min(max(nodes, 2), TRIAL)
    seconds = timed(lambda: synthetic(few)) * nodes / few
    return Source(sizes, ENTRY_BYTES * (nodes * DEGREE + entries) - sizes.graph_bytes, seconds)


def _in_parts(folder: Path) -> Sizes:
    """The sizes that a folder of parts has in its manifest."""
    shards = open_shards(folder)
    return Sizes(
        nodes=shards.nodes,
        edges=shards.edges,
        attributes=shards.attributes,
        attribute_entries=shards.entries,
        weighted=shards.weighted,
        amounts=shards.amounts,
    )


def _archive(path: Path) -> Source | None:
    """The sizes that an archive's headers announce; None where it is no graph, which its reader will say."""
    headers = npz_headers(path, GraphError)
    adjacency, attributes = headers.get("adj_data"), headers.get("attr_data")
    if adjacency is None or "adj_shape" not in headers:
        return None
    try:
        with open_npz(path, GraphError, "a graph") as archive:
            rows, columns = _shape(archive, "adj"), _shape(archive, "attr")
    except (GraphError, ValueError):
        return None
    texts = [headers[name] for name in ("ids", "attribute_names", "labels") if name in headers]
    text = sum(math.prod(shape) * kind.itemsize for shape, kind in texts if kind.kind == "U")
    sizes = Sizes(
        nodes=rows[0],
        edges=adjacency[0][0] // 2,
        attributes=columns[1],
        attribute_entries=attributes[0][0] if attributes else 0,
        text_bytes=text,
    )
    return Source(sizes, 16 * max(sizes.links, sizes.attribute_entries))


def _shape(archive: Npz, prefix: str) -> tuple[int, int]:
    rows, columns = archive[f"{prefix}_shape"].tolist() if f"{prefix}_shape" in archive else (0, 0)
    return rows, columns


# Memory and time of a training, from a graph or from its sizes alone.

PROGRAM_BYTES = 220_000_000  # of Python, its libraries and compiled kernels, once a training runs
MOST_RANKS = 65_536  # that are tried where fewer do not fit


@dataclass(frozen=True, slots=True)
class Several:
    """What there is to say besides, where several ranks train together.

    moments: bytes of a rank by moment and part, besides the program and the graph. host: bytes that the ranks of one
    host share where it has a copy of the graph, instead of each its own range. batch: what a rank's share of a batch
    names, by kind; `counted` on triplets drawn from the graph, or by its sizes as if all nodes had equally many
    neighbours. traffic: bytes that a rank sends in a step, by kind; it gets as many. fitting_ranks: how many would
    fit, where these do not.
    """

    ranks: int
    moments: dict[str, dict[str, int]]
    host: dict[str, int]
    batch: dict[str, float]
    counted: bool
    traffic: dict[str, int]
    steps: int
    fitting_ranks: int | None

    def here(self, room: int, peak: int, graph: int) -> tuple[int, int]:
        """How many ranks a machine with so much room holds: with one copy of the graph, and each with its range."""
        return max(room - sum(self.host.values()), 0) // (peak - graph), room // peak


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a training takes; where several ranks train together, what one of them takes.

    memory: bytes by part at `moment`, when it takes most; the program and the graph are two of them. available: the
    bytes that this process may take in all; None where the system does not say. seconds: by part, if training goes to
    its last epoch; None where it was not asked for, where the training does not fit, and for several ranks, whose time
    a trial of one does not tell.
    """

    method: str
    parameters: dict[str, Any]
    sizes: Sizes
    moment: str
    memory: dict[str, int]
    available: int | None
    seconds: dict[str, float] | None
    triplets_per_node: float | None
    output_bytes: int
    fitting_dim: int | None  # a width that fits, where the one asked for does not and another does
    several: Several | None = None

    @property
    def peak(self) -> int:
        """The memory that is taken at most, in bytes."""
        return sum(self.memory.values())

    @property
    def total_seconds(self) -> float | None:
        """The time of all parts."""
        return None if self.seconds is None else sum(self.seconds.values())

    @property
    def fits(self) -> bool:
        """Whether the memory can be had."""
        return self.available is None or self.peak <= self.available

    @property
    def verdict(self) -> str:
        """Whether it fits and, where it does not, what to change."""
        if self.available is None:
            return "this system does not say how much memory there is"
        if self.several is not None:
            return self._verdict_of_ranks(self.several, self.available)
        if self.fits:
            return f"fits: {show_size(self.available)} can be had"
        change = f"dim={self.fitting_dim} would fit" if self.fitting_dim else "no dim would fit; try another method"
        return f"does not fit: {show_size(self.available)} can be had; {change}"

    def _verdict_of_ranks(self, several: Several, room: int) -> str:
        can = f"{show_size(room)} can be had here"
        if self.fits:
            copy, ranges = several.here(room, self.peak, self.memory["graph"])
            return f"fits: {can}, room for {copy:,} such ranks with one copy of the graph, for {ranges:,} by node range"
        ranks = several.fitting_ranks
        return f"does not fit: {can}; " + (f"ranks={ranks} would fit" if ranks else "no number of ranks would fit")

    def as_dict(self) -> dict[str, Any]:
        """All of it, fit for JSON."""
        derived = {name: getattr(self, name) for name in ("peak", "total_seconds", "fits", "verdict")}
        return asdict(self) | derived


def estimate(
    source: AttributedGraph | Sizes,
    method: str | Embedder = "neural-brane",
    *,
    time: bool = True,
    room: int | None = None,
    reading_bytes: int = 0,
    reading_seconds: float = 0.0,
    ranks: int | None = None,
    **parameters: Any,
) -> Estimate:
    """What training `method` on a graph, or on one of these sizes, takes on this machine.

    Memory follows from formulas. Time is measured: parts of the work are done for a moment, on tables as large as the
    training's. room: the bytes that may be taken in all, this process included; what the system allows unless given.
    reading_bytes, reading_seconds: what reading the graph takes, besides the bytes of the graph itself. ranks: how many
    processes train together past one machine; the estimate is then of one of them, and names no time.

    Examples
    --------
    >>> from neural_brane import estimate
    >>> from neural_brane.graph.memory import Sizes
    >>> sizes = Sizes(nodes=1_000_000, edges=10_000_000, attributes=100_000, attribute_entries=20_000_000)
    >>> found = estimate(sizes, time=False, room=1_000_000_000)
    >>> found.fits, found.triplets_per_node
    (False, 300.2)
    >>> one = estimate(sizes, ranks=16, room=1_000_000_000)
    >>> one.fits, one.seconds
    (True, None)
    """
    model = find_method(method)(**parameters) if isinstance(method, str) else method
    sizes = source if isinstance(source, Sizes) else Sizes.of(source)
    in_force = model.parameters_in_force() if isinstance(source, Sizes) else model.parameters_for(source)
    chosen = type(model)(**in_force)
    if room is None and (free := available()) is not None:
        room = free + used()
    if ranks is not None:
        return _of_ranks(source, sizes, chosen, ranks, room)
    moments = {**chosen.memory(sizes), "reading": {"reading": reading_bytes}}
    moment, parts = largest(moments)
    memory = {"program": PROGRAM_BYTES, "graph": sizes.graph_bytes} | parts
    fits = room is None or sum(memory.values()) <= room
    dim = None if fits or room is None else widest(chosen, sizes, room - memory["program"] - memory["graph"])
    return Estimate(
        method=chosen.title,
        parameters=chosen.deciding_parameters(),
        sizes=sizes,
        moment=moment,
        memory=memory,
        available=room,
        seconds={"reading": reading_seconds} | seconds_of(chosen, sizes) if time and fits else None,
        triplets_per_node=_triplets_per_node(chosen, sizes),
        output_bytes=4 * sizes.nodes * chosen.dim,
        fitting_dim=dim,
    )


def _of_ranks(
    source: AttributedGraph | Sizes, sizes: Sizes, method: Embedder, ranks: int, room: int | None
) -> Estimate:
    """What one of several ranks takes."""
    if method.title != "neural-brane":
        raise ParameterError(
            f"ranks is {ranks}, and {method.title} trains in one process; leave ranks out, or estimate neural-brane"
        )
    if ranks < 1:
        raise ParameterError(f"ranks is {ranks}; give at least 1")
    settings = method._settings_for(sizes)
    found = ranks_of(source, sizes, settings, ranks)
    moment, memory = _rank_memory(found)
    fits = room is None or sum(memory.values()) <= room
    return Estimate(
        method=method.title,
        parameters=method.deciding_parameters(),
        sizes=sizes,
        moment=moment,
        memory=memory,
        available=room,
        seconds=None,
        triplets_per_node=_triplets_per_node(method, sizes),
        output_bytes=-(-4 * sizes.nodes * method.dim // ranks),
        fitting_dim=None,
        several=Several(
            ranks=ranks,
            moments={name: dict(parts) for name, parts in found.moments.items()},
            host=found.host,
            batch=found.batch._asdict(),
            counted=found.counted,
            traffic={name: round(count) for name, count in found.traffic._asdict().items()},
            steps=settings["epochs"] * settings["batches_per_epoch"] if found.batch.triplets else 0,
            fitting_ranks=None if fits or room is None else _fitting(sizes, settings, ranks, room),
        ),
    )


def _rank_memory(found: Ranks) -> tuple[str, dict[str, int]]:
    """The moment at which a rank takes most, and what it takes then."""
    moment, parts = largest(found.moments)
    return moment, {"program": RANK_BYTES, "graph": found.graph} | parts


def _fitting(sizes: Sizes, settings: dict[str, Any], ranks: int, room: int) -> int | None:
    """The first of 2, 4, 8, … times so many ranks that fit; None where none do."""
    while ranks < MOST_RANKS:
        ranks *= 2
        if sum(_rank_memory(ranks_of(sizes, sizes, settings, ranks))[1].values()) <= room:
            return ranks
    return None


def _triplets_per_node(method: Embedder, sizes: Sizes) -> float | None:
    if method.title != "neural-brane" or sizes.nodes == 0:
        return None
    return round(method.work(sizes) / sizes.nodes, 1)
