"""A graph as a folder of parts, each a range of nodes: mapped into memory part by part, for graphs larger than it."""

from neural_brane.shards.external import Plan, shard_files
from neural_brane.shards.folder import Shards, open_shards
from neural_brane.shards.manifest import Manifest
from neural_brane.shards.parts import MemoryShards, Part, Rows, parts_of
from neural_brane.shards.sources import find_edges
from neural_brane.shards.write import write_shards

__all__ = [
    "Manifest",
    "MemoryShards",
    "Part",
    "Plan",
    "Rows",
    "Shards",
    "find_edges",
    "open_shards",
    "parts_of",
    "shard_files",
    "write_shards",
]
