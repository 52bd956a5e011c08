"""Memory and time of a training, from a graph or from its sizes alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from neural_brane.errors import ParameterError
from neural_brane.estimation.ranks import PROGRAM_BYTES as RANK_BYTES
from neural_brane.estimation.ranks import Ranks, ranks_of
from neural_brane.estimation.seconds import seconds_of
from neural_brane.graph import AttributedGraph
from neural_brane.graph.sizes import Sizes
from neural_brane.memory import available, show_size, used
from neural_brane.methods import find_method
from neural_brane.methods._memory import largest, widest
from neural_brane.methods.base import Embedder

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
    >>> from neural_brane.graph.sizes import Sizes
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
