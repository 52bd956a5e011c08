"""Draw triplets on the GPU: for the same seed, the same triplets as `triplets` draws."""

from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from scipy import sparse

from neural_brane.sampling.tables import triplet_tables

PATIENCE = tl.constexpr(64)  # must equal `triplets.PATIENCE`
BLOCK = 128
_STEP = tl.constexpr(0x9E3779B97F4A7C15)


class GPUSamplingTables(NamedTuple):
    """The fields of `TripletTables` and `AliasTable`, as tensors on the GPU."""

    indptr: Any
    indices: Any
    cumulative: Any
    anchors: Any
    weights: Any
    keep: Any
    other: Any


class Counts(NamedTuple):
    """The numbers of triplets to draw, of candidates for u, and of nodes."""

    triplets: int
    anchors: int
    nodes: int


class Options(NamedTuple):
    """Compile-time options of the kernel."""

    weighted: bool  # whether edges have different weights
    allow_self: bool  # whether j may be u
    block: int  # triplets per program


class TripletSampler:
    """Draws like `triplets.TripletSampler`, into GPU memory; placed: bags of neighbours that are already there."""

    def __init__(
        self,
        adjacency: sparse.csr_array,
        *,
        negative_power: float = 0.75,
        allow_self_negative: bool = False,
        seed: int = 0,
        among: np.ndarray | None = None,
        device: str = "cuda",
        placed: Any = None,
    ):
        self.seed, self.allow_self_negative = seed, allow_self_negative
        parts = triplet_tables(
            adjacency, negative_power=negative_power, allow_self_negative=allow_self_negative, among=among
        )
        tables = {name: array for part in parts for name, array in part._asdict().items()}
        shared = placed._asdict() if placed else {}
        own = {name: torch.from_numpy(array).to(device) for name, array in tables.items() if name not in shared}
        self._tables = GPUSamplingTables(**own, **shared)

    def draw(self, first: int, count: int) -> torch.Tensor:
        """Return triplets first … first + count - 1, as (count, 3) int32."""
        tables = self._tables
        triplets = torch.empty((count, 3), dtype=torch.int32, device=tables.indptr.device)
        counts = Counts(count, len(tables.anchors), len(tables.weights))
        options = Options(len(tables.cumulative) > 0, self.allow_self_negative, BLOCK)
        # A fused multiply-add rounds once, the CPU twice; with it the GPU would sometimes draw another node.
        _draw[triton.cdiv(count, BLOCK),](
            tables, triplets, self.seed, first, counts, OPTIONS=options, enable_fp_fusion=False
        )
        return triplets


@triton.jit(do_not_specialize=["seed", "first"])
def _draw(tables, triplets, seed, first, counts, OPTIONS: tl.constexpr):
    """Write the triplets from number `first` on to triplets (counts.triplets, 3) int32; tables: `GPUSamplingTables`."""
    BLOCK: tl.constexpr = OPTIONS.block
    ALLOW_SELF: tl.constexpr = OPTIONS.allow_self
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = t < counts.triplets
    state = _mix(seed.to(tl.uint64) ^ _mix((first + t).to(tl.uint64) + _STEP))
    u = tl.load(tables.anchors + (_uniform(state) * counts.anchors).to(tl.int64), mask=live, other=0).to(tl.int64)
    state += _STEP
    start, stop = tl.load(tables.indptr + u), tl.load(tables.indptr + u + 1)

    if OPTIONS.weighted:
        target = _uniform(state) * tl.load(tables.cumulative + stop - 1, mask=live, other=0)
        low = _search(tables.cumulative, start, stop - 1, target, STRICT=True)
    else:
        low = start + (_uniform(state) * (stop - start)).to(tl.int64)
    i = tl.load(tables.indices + low, mask=live, other=0)

    j = tl.zeros([BLOCK], tl.int64)
    pending = live
    tries = 0
    while (tries < PATIENCE) & (tl.max(pending.to(tl.int32), 0) > 0):
        state += _STEP
        position = _uniform(state) * counts.nodes
        k = position.to(tl.int64)
        stay = position - k < tl.load(tables.keep + k)
        drawn = tl.where(stay, k, tl.load(tables.other + k))
        j = tl.where(pending, drawn, j)
        pending &= _excluded(tables.indices, start, stop, u, drawn, ALLOW_SELF)
        tries += 1
    if tl.max(pending.to(tl.int32), 0) > 0:
        _, total = _walk(tables, u, counts.nodes, float("inf"), ALLOW_SELF, BLOCK)
        target = _uniform(state + _STEP) * total
        exact, _ = _walk(tables, u, counts.nodes, target, ALLOW_SELF, BLOCK)
        j = tl.where(pending, exact, j)
    tl.store(triplets + 3 * t, u, mask=live)
    tl.store(triplets + 3 * t + 1, i, mask=live)
    tl.store(triplets + 3 * t + 2, j, mask=live)


@triton.jit
def _mix(x):
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


@triton.jit
def _uniform(state):
    """Return a float64 in [0, 1) for each state."""
    return (_mix(state) >> 11).to(tl.float64) * (1.0 / (1 << 53))


@triton.jit
def _search(values, low, high, target, STRICT: tl.constexpr):
    """Return the first place in low … high - 1 with a value ≥ target (STRICT: > target), or high if there is none."""
    while tl.max(high - low, 0) > 0:
        open_ = low < high
        middle = (low + high) // 2
        value = tl.load(values + middle, mask=open_, other=0)
        reached = value > target if STRICT else value >= target
        high = tl.where(open_ & reached, middle, high)
        low = tl.where(open_ & ~reached, middle + 1, low)
    return low


@triton.jit
def _excluded(indices, start, stop, u, node, ALLOW_SELF: tl.constexpr):
    """Return whether a node must not be j: a neighbour of u, or u itself unless ALLOW_SELF."""
    place = _search(indices, start, stop, node, STRICT=False)
    is_neighbour = tl.load(indices + place, mask=place < stop, other=-1) == node
    return is_neighbour if ALLOW_SELF else is_neighbour | (node == u)


@triton.jit
def _walk(tables, u, nodes, target, ALLOW_SELF: tl.constexpr, BLOCK: tl.constexpr):
    """Add up the weights of u's non-neighbours until the sum exceeds target; return the last node added and the sum."""
    start, stop = tl.load(tables.indptr + u), tl.load(tables.indptr + u + 1)
    total = tl.zeros([BLOCK], tl.float64)
    last = tl.full([BLOCK], -1, tl.int64)
    for k in range(nodes):
        node = tl.full([BLOCK], k, tl.int64)
        weight = tl.load(tables.weights + node)
        adding = (total <= target) & (weight > 0) & ~_excluded(tables.indices, start, stop, u, node, ALLOW_SELF)
        last = tl.where(adding, node, last)
        total += tl.where(adding, weight, 0.0)
    return last, total
