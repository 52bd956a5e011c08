"""Memory and time of a training, from a graph or from its sizes alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from neural_brane.estimation.seconds import seconds_of
from neural_brane.graph import AttributedGraph
from neural_brane.graph.sizes import Sizes
from neural_brane.memory import available, show_size, used
from neural_brane.methods import find_method
from neural_brane.methods._memory import largest, widest
from neural_brane.methods.base import Embedder

PROGRAM_BYTES = 220_000_000  # of Python, its libraries and compiled kernels, once a training runs


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a training takes.

    memory: bytes by part at `moment`, when it takes most; the program and the graph are two of them. available: the
    bytes that this process may take in all; None where the system does not say. seconds: by part, if training goes to
    its last epoch; None where it was not asked for, or where the training does not fit.
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
        if self.fits:
            return f"fits: {show_size(self.available)} can be had"
        change = f"dim={self.fitting_dim} would fit" if self.fitting_dim else "no dim would fit; try another method"
        return f"does not fit: {show_size(self.available)} can be had; {change}"

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
    **parameters: Any,
) -> Estimate:
    """What training `method` on a graph, or on one of these sizes, takes on this machine.

    Memory follows from formulas. Time is measured: parts of the work are done for a moment, on tables as large as the
    training's. room: the bytes that may be taken in all, this process included; what the system allows unless given.
    reading_bytes, reading_seconds: what reading the graph takes, besides the bytes of the graph itself.

    Examples
    --------
    >>> from neural_brane import estimate
    >>> from neural_brane.graph.sizes import Sizes
    >>> sizes = Sizes(nodes=1_000_000, edges=10_000_000, attributes=100_000, attribute_entries=20_000_000)
    >>> found = estimate(sizes, time=False, room=1_000_000_000)
    >>> found.fits, found.triplets_per_node
    (False, 300.2)
    """
    model = find_method(method)(**parameters) if isinstance(method, str) else method
    sizes = source if isinstance(source, Sizes) else Sizes.of(source)
    in_force = model.parameters_in_force() if isinstance(source, Sizes) else model.parameters_for(source)
    chosen = type(model)(**in_force)
    if room is None and (free := available()) is not None:
        room = free + used()
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


def _triplets_per_node(method: Embedder, sizes: Sizes) -> float | None:
    if method.title != "neural-brane" or sizes.nodes == 0:
        return None
    return round(method.work(sizes) / sizes.nodes, 1)
