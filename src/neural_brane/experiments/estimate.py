"""Estimate memory and time of a training before it begins, from a graph or from its sizes alone."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from neural_brane.distributed.estimate import PROGRAM_BYTES as RANK_BYTES
from neural_brane.distributed.estimate import RankEstimate, estimate_rank
from neural_brane.errors import GraphError, ParameterError
from neural_brane.files.datasets import SYNTHETIC, synthetic_nodes
from neural_brane.files.graphs.parts import MANIFEST, open_shards
from neural_brane.files.npz import open_npz
from neural_brane.files.reading import npz_headers
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes, available, show_size, used
from neural_brane.graph.synthetic import ENTRY_BYTES, default_attributes, synthetic
from neural_brane.methods import METHODS, find_method
from neural_brane.methods.base import Embedder
from neural_brane.methods.training import largest, widest

# The time of a training on this machine. No figure of another machine is used, and none is kept.

MINIATURE = 5_000  # nodes of the graph that a trial of a method learns from


def seconds_of(method: Embedder, sizes: Sizes) -> dict[str, float]:
    """Return the seconds of each part of a training that goes to its last epoch.

    Where the method cannot time its parts, a short training on a small graph of the same shape is timed instead, and
    the method's own measure of work says how much more the whole is.
    """
    if (parts := method.seconds(sizes)) is not None:
        return parts
    graph = miniature(sizes)
    short = type(method)(**method.get_params(deep=False) | method.trial | {"seed": 0, "progress": None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a training learns little
        short.fit(miniature(sizes, 200))  # compiles the kernels, or loads them
        seconds = timed(lambda: short.fit(graph))
    return {"training": seconds * method.work(sizes) / short.work(Sizes.from_graph(graph))}


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
        nodes = synthetic_nodes(name)
        entries, few = nodes * ATTRIBUTES_PER_NODE, min(max(nodes, 2), TRIAL)
        sizes = Sizes(
            nodes=nodes, edges=nodes * DEGREE // 2, attributes=default_attributes(nodes),
            attribute_entries=entries, text_bytes=4 * nodes,
        )  # fmt: skip
        seconds = timed(lambda: synthetic(few)) * nodes / few
        return Source(sizes, ENTRY_BYTES * (nodes * DEGREE + entries) - sizes.graph_bytes, seconds)
    if name.endswith(".npz") and Path(source).is_file():
        found = _archive(Path(source))
        if found is not None:
            return found
    if (Path(source) / MANIFEST).is_file():
        told = open_shards(Path(source))
        known = {"nodes": told.nodes, "edges": told.edges, "attributes": told.attributes}
        return Source(Sizes(**known, attribute_entries=told.entries, weighted=told.weighted, amounts=told.amounts))
    start = time.perf_counter()
    graph = read()
    return Source(Sizes.from_graph(graph), reading_seconds=time.perf_counter() - start, graph=graph)


def _archive(path: Path) -> Source | None:
    """The sizes that an archive's headers announce; None where it is no graph, which its reader will say."""
    headers = npz_headers(path, GraphError)
    adjacency, attributes = headers.get("adj_data"), headers.get("attr_data")
    if adjacency is None or "adj_shape" not in headers:
        return None
    try:
        with open_npz(path, GraphError, "a graph") as archive:
            nodes, _ = archive["adj_shape"].tolist()
            _, columns = archive["attr_shape"].tolist() if "attr_shape" in archive else (0, 0)
    except (GraphError, ValueError):
        return None
    texts = [headers[name] for name in ("ids", "attribute_names", "labels") if name in headers]
    sizes = Sizes(
        nodes=nodes,
        edges=adjacency[0][0] // 2,
        attributes=columns,
        attribute_entries=attributes[0][0] if attributes else 0,
        text_bytes=sum(math.prod(shape) * kind.itemsize for shape, kind in texts if kind.kind == "U"),
    )
    return Source(sizes, 16 * max(sizes.links, sizes.attribute_entries))


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
        can = f"{show_size(self.available)} can be had"
        if (several := self.several) is not None:
            copy, ranges = several.here(self.available, self.peak, self.memory["graph"]) if self.fits else (0, 0)
            here = f"room for {copy:,} such ranks with one copy of the graph, for {ranges:,} by node range"
            change = "no number of ranks would fit"
            if several.fitting_ranks:
                change = f"ranks={several.fitting_ranks} would fit"
            return f"fits: {can} here, {here}" if self.fits else f"does not fit: {can} here; {change}"
        change = f"dim={self.fitting_dim} would fit" if self.fitting_dim else "no dim would fit; try another method"
        return f"fits: {can}" if self.fits else f"does not fit: {can}; {change}"

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
    sizes = source if isinstance(source, Sizes) else Sizes.from_graph(source)
    in_force = model.parameters_in_force() if isinstance(source, Sizes) else model.parameters_for(source)
    chosen = type(model)(**in_force)
    if room is None and (free := available()) is not None:
        room = free + used()
    several = None
    if ranks is not None:
        several, moment, memory = _of_ranks(source, sizes, chosen, ranks, room)
    else:
        moment, parts = largest({**chosen.memory(sizes), "reading": {"reading": reading_bytes}})
        memory = {"program": PROGRAM_BYTES, "graph": sizes.graph_bytes} | parts
    fits = room is None or sum(memory.values()) <= room
    seconds = dim = None
    if several is None and fits and time:
        seconds = {"reading": reading_seconds} | seconds_of(chosen, sizes)
    if several is None and not fits:
        dim = widest(chosen, sizes, cast(int, room) - memory["program"] - memory["graph"])
    counts_triplets = chosen.work_unit == "triplets" and sizes.nodes > 0
    return Estimate(
        method=chosen.title,
        parameters=chosen.deciding_parameters(),
        sizes=sizes,
        moment=moment,
        memory=memory,
        available=room,
        seconds=seconds,
        triplets_per_node=round(chosen.work(sizes) / sizes.nodes, 1) if counts_triplets else None,
        output_bytes=-(-4 * sizes.nodes * chosen.dim // (ranks or 1)),
        fitting_dim=dim,
        several=several,
    )


def _of_ranks(
    source: AttributedGraph | Sizes, sizes: Sizes, method: Embedder, ranks: int, room: int | None
) -> tuple[Several, str, dict[str, int]]:
    """What several ranks take, the moment at which one of them takes most, and its memory then."""
    if not method.distributes:
        others = " or ".join(name for name, one in METHODS.items() if one.distributes)
        raise ParameterError(
            f"ranks is {ranks}, and {method.title} trains in one process; leave ranks out, or estimate {others}"
        )
    if ranks < 1:
        raise ParameterError(f"ranks is {ranks}; give at least 1")
    settings = cast(Any, method)._settings_for(sizes)
    found = estimate_rank(source, sizes, settings, ranks)
    moment, memory = _rank_memory(found)
    fitting, more = None, ranks
    if room is not None and sum(memory.values()) > room:
        while fitting is None and more < MOST_RANKS:
            more *= 2
            if sum(_rank_memory(estimate_rank(sizes, sizes, settings, more))[1].values()) <= room:
                fitting = more
    several = Several(
        ranks=ranks,
        moments={name: dict(parts) for name, parts in found.moments.items()},
        host=found.host,
        batch=found.batch._asdict(),
        counted=found.counted,
        traffic={name: round(count) for name, count in found.traffic._asdict().items()},
        steps=settings["epochs"] * settings["batches_per_epoch"] if found.batch.triplets else 0,
        fitting_ranks=fitting,
    )
    return several, moment, memory


def _rank_memory(found: RankEstimate) -> tuple[str, dict[str, int]]:
    """The moment at which a rank takes most, and what it takes then."""
    moment, parts = largest(found.moments)
    return moment, {"program": RANK_BYTES, "graph": found.graph} | parts
