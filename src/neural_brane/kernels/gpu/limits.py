"""The thresholds that decide how a step is launched. They change its speed and its memory, never its meaning."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Thresholds measured on an H200. Tests pass smaller ones to reach every path on small graphs."""

    large_batch: int = 1024  # triplets: from here on a batch takes the launches of `large`
    nodes_per_slot: float = 0.75  # with fewer nodes per slot, a large batch computes each node's vector once (`nodes`)
    group_steps: int = 100  # steps that are planned together and captured in one CUDA graph
    group_slots: int = 2**22  # slots in such a group: its plan takes memory

    hub_rows: int = 1024  # rows: a longer bag is a hub's, cut into pieces and pooled once per step
    hub_rows_at_large_batches: int = 256  # lower, because a large batch meets the same hub many times
    most_hubs: int = 16_384  # longest bags of each table that are cut: each takes memory
    hub_piece: int = 128  # rows in a piece of a hub's bag

    node_piece: int = 64  # slots of one node whose gradients one program adds up

    hot_slots: int = 128  # slots that share a table row: with more, `gather` uses wider programs
    crowded_slots: int = 4096  # slots that share a table row: with more, `scatter` adds up within a tile first
    frequent_wins: int = 3  # wins in the sample from which on a row is added up first
    strip_cache: int = 2**24  # bytes of the GPU's cache that one strip of a table's columns may fill
    part_cache: int = 3 * 2**24  # bytes of the GPU's cache that one part of a table's rows may fill


DEFAULT = Limits()
