"""Estimate memory and time of a training before it begins, from a graph or only its sizes."""

from __future__ import annotations

import math
import os
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
from neural_brane.files.graphs.shards import open_shards
from neural_brane.files.npz import open_npz
from neural_brane.files.reading import npz_headers
from neural_brane.files.vectors.parts import is_parts
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes, available, show_size, used
from neural_brane.graph.synthetic import ENTRY_BYTES, default_attributes, synthetic
from neural_brane.methods import METHODS, find_method
from neural_brane.methods.base import Embedder
from neural_brane.methods.training import largest, widest

MINIATURE = 5_000  # nodes of the small graph for timing


def seconds_of(method: Embedder, sizes: Sizes) -> dict[str, float]:
    """Return the seconds of each part of a whole training, if need be from a training on a small graph."""
    if (parts := method.seconds(sizes)) is not None:
        return parts
    graph = miniature(sizes)
    short = type(method)(**method.get_params(deep=False) | method.trial | {"seed": 0, "progress": None})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short training may warn that it learned little
        short.fit(miniature(sizes, 200))  # compiles or loads the kernels
        seconds = timed(lambda: short.fit(graph))
    return {"training": seconds * method.work(sizes) / short.work(Sizes.from_graph(graph))}


def miniature(sizes: Sizes, nodes: int = MINIATURE) -> AttributedGraph:
    """Return a small synthetic graph with as many edges and attributes per node."""
    small = max(min(nodes, sizes.nodes), 20)
    degree = min(max(round(sizes.links / max(sizes.nodes, 1)), 1), small // 4)
    per_node = round(sizes.attribute_entries / max(sizes.nodes, 1))
    attributes = max(round(small * sizes.attributes / max(sizes.nodes, 1)), 2 * per_node, 10)
    return synthetic(small, degree=degree, attributes=attributes, attributes_per_node=per_node, classes=2)


def timed(task: Callable[[], Any]) -> float:
    """Return the seconds that a task takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


TRIAL = 20_000  # nodes of the synthetic graph that measures how fast this machine makes one
DEGREE = ATTRIBUTES_PER_NODE = 20  # defaults of synthetic graphs


@dataclass(frozen=True, slots=True)
class Source:
    """The sizes of a graph, the extra memory and time of reading it, and the graph itself if it was read."""

    sizes: Sizes
    reading_bytes: int = 0
    reading_seconds: float = 0.0
    graph: AttributedGraph | None = None


def find_sizes(source: str | Path, read: Callable[[], AttributedGraph]) -> Source:
    """Return a graph's sizes: from `synthetic:NODES`, an .npz header or a manifest of shards, else by `read()`."""
    name = str(source)
    if name.startswith(SYNTHETIC):
        nodes = synthetic_nodes(name)
        entries, trial = nodes * ATTRIBUTES_PER_NODE, min(max(nodes, 2), TRIAL)
        sizes = Sizes(
            nodes=nodes, edges=nodes * DEGREE // 2, attributes=default_attributes(nodes),
            attribute_entries=entries, text_bytes=4 * nodes,
        )  # fmt: skip
        seconds = timed(lambda: synthetic(trial)) * nodes / trial
        return Source(sizes, ENTRY_BYTES * (nodes * DEGREE + entries) - sizes.graph_bytes, seconds)
    if name.endswith(".npz") and os.path.isfile(source):
        found = _archive(Path(source))
        if found is not None:
            return found
    if is_parts(source):
        shards = open_shards(Path(source))
        counts = {"nodes": shards.nodes, "edges": shards.edges, "attributes": shards.attributes}
        sizes = Sizes(**counts, attribute_entries=shards.entries, weighted=shards.weighted, amounts=shards.amounts)
        return Source(sizes)
    start = time.perf_counter()
    graph = read()
    return Source(Sizes.from_graph(graph), reading_seconds=time.perf_counter() - start, graph=graph)


def _archive(path: Path) -> Source | None:
    """Return the sizes in an archive's headers, or None if it is no graph; its reader then raises the error."""
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
        nodes=nodes, edges=adjacency[0][0] // 2, attributes=columns,
        attribute_entries=attributes[0][0] if attributes else 0,
        text_bytes=sum(math.prod(shape) * kind.itemsize for shape, kind in texts if kind.kind == "U"),
    )  # fmt: skip
    return Source(sizes, 16 * max(sizes.links, sizes.attribute_entries))


PROGRAM_BYTES = 220_000_000  # memory of Python, its libraries and compiled kernels during a training
MOST_RANKS = 65_536  # largest number of ranks to try


@dataclass(frozen=True, slots=True)
class RankDetails:
    """Details of a training by several ranks.

    moments: bytes of a rank by moment and part, without program and graph. host: bytes that the ranks of a host share
    if it has one copy of the graph, instead of a range per rank. batch: rows in a rank's share of a batch, by kind;
    `counted` on triplets drawn from the graph, or computed as if all nodes had equally many neighbours. traffic: bytes
    that a rank sends in a step, by kind; it receives as many. fitting_ranks: a number of ranks that would fit.
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
        """Return how many ranks fit into `room` bytes: with one shared copy of the graph, and with a range each."""
        return max(room - sum(self.host.values()), 0) // (peak - graph), room // peak


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated memory and time of a training, or of one rank if several ranks train together.

    memory: bytes by part at `moment`, the moment of the peak; the program and the graph are two of the parts.
    available: bytes that this process may use in total; None if the system does not report them. seconds: seconds by
    part for a training that runs all its epochs; None if it was not requested, if the training does not fit, and for
    several ranks, whose time cannot be measured with one process.
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
    fitting_dim: int | None  # a width that fits, if the given one does not and another does
    several: RankDetails | None = None

    @property
    def peak(self) -> int:
        """The peak memory in bytes."""
        return sum(self.memory.values())

    @property
    def total_seconds(self) -> float | None:
        """The seconds of all parts together, or None."""
        return None if self.seconds is None else sum(self.seconds.values())

    @property
    def fits(self) -> bool:
        """True if the memory suffices or is unknown."""
        return self.available is None or self.peak <= self.available

    @property
    def verdict(self) -> str:
        """A sentence that says whether the training fits and, if not, what to change."""
        if self.available is None:
            return "this system does not report how much memory is available"
        size = f"{show_size(self.available)} available"
        if (several := self.several) is not None:
            copy, ranges = several.here(self.available, self.peak, self.memory["graph"]) if self.fits else (0, 0)
            here = f"enough for {copy:,} ranks that share one copy of the graph, or {ranges:,} with a range each"
            change = "no number of ranks would fit"
            if several.fitting_ranks:
                change = f"ranks={several.fitting_ranks} would fit"
            return f"fits: {size} here, {here}" if self.fits else f"does not fit: {size} here; {change}"
        change = f"dim={self.fitting_dim} would fit" if self.fitting_dim else "no dim would fit; try another method"
        return f"fits: {size}" if self.fits else f"does not fit: {size}; {change}"

    def as_dict(self) -> dict[str, Any]:
        """Return all fields and derived values, for JSON."""
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
    """Return the estimated memory and time of training a method on this machine.

    Memory is computed by formulas. Time is measured by doing a small part of the work.

    Parameters
    ----------
    source
        A graph, or only its sizes.
    method
        Name of a method, or a method with its parameters.
    time
        False leaves out the time.
    room
        Bytes that this process may use in total. Default: what the system allows.
    reading_bytes, reading_seconds
        Memory and time of reading the graph, without the memory of the graph itself.
    ranks
        Number of processes that train together. The estimate is then for one of them, without time.
    **parameters
        Parameters of the method, if it is given by name.

    Examples
    --------
    >>> from neural_brane import estimate
    >>> from neural_brane.graph.memory import Sizes
    >>> sizes = Sizes(nodes=1_000_000, edges=10_000_000, attributes=100_000, attribute_entries=20_000_000)
    >>> found = estimate(sizes, time=False, room=1_000_000_000)
    >>> found.fits, found.triplets_per_node
    (False, 51.1)
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
        method=chosen.title, parameters=chosen.deciding_parameters(), sizes=sizes, moment=moment, memory=memory,
        available=room, seconds=seconds,
        triplets_per_node=round(chosen.work(sizes) / sizes.nodes, 1) if counts_triplets else None,
        output_bytes=-(-4 * sizes.nodes * chosen.dim // (ranks or 1)), fitting_dim=dim, several=several,
    )  # fmt: skip


def _of_ranks(
    source: AttributedGraph | Sizes, sizes: Sizes, method: Embedder, ranks: int, room: int | None
) -> tuple[RankDetails, str, dict[str, int]]:
    """Return the details for several ranks, the moment of a rank's peak memory, and its memory by part then."""
    if not method.distributes:
        others = " or ".join(name for name, one in METHODS.items() if one.distributes)
        raise ParameterError(f"ranks={ranks}, but {method.title} trains in one process; leave it out, or take {others}")
    if ranks < 1:
        raise ParameterError(f"ranks={ranks}: must be at least 1")
    settings = cast(Any, method)._settings_for(sizes)
    found = estimate_rank(source, sizes, settings, ranks)
    moment, memory = _rank_memory(found)
    fitting, more = None, ranks
    if room is not None and sum(memory.values()) > room:
        while fitting is None and more < MOST_RANKS:
            more *= 2
            if sum(_rank_memory(estimate_rank(sizes, sizes, settings, more))[1].values()) <= room:
                fitting = more
    several = RankDetails(
        ranks=ranks, moments={name: dict(parts) for name, parts in found.moments.items()}, host=found.host,
        batch=found.batch._asdict(), counted=found.counted,
        traffic={name: round(count) for name, count in found.traffic._asdict().items()},
        steps=settings["epochs"] * settings["batches_per_epoch"] if found.batch.triplets else 0,
        fitting_ranks=fitting,
    )  # fmt: skip
    return several, moment, memory


def _rank_memory(found: RankEstimate) -> tuple[str, dict[str, int]]:
    """Return the moment of a rank's peak memory, and its memory by part then."""
    moment, parts = largest(found.moments)
    return moment, {"program": RANK_BYTES, "graph": found.graph} | parts
