"""Which run the checkpoints of a job belong to: the settings, the seed, and the graph by its manifest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from neural_brane.checkpoint.identity import COMPUTING, identify
from neural_brane.shards import Manifest

FREE = ("epochs", "tolerance", "threads", "device")  # may change where a run goes on


def identify_run(manifest: Manifest, parameters: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What a run on a graph in parts is; the number of ranks is no part of it."""
    graph = {name: getattr(manifest, name) for name in ("name", "nodes", "edges", "attributes")}
    computing = tuple(sorted((*COMPUTING, "cluster", "shards")))
    return identify("neural-brane", parameters, seed, graph | {"digest": digest(manifest)}, computing=computing)


def digest(manifest: Manifest) -> str:
    """Sixteen hexadecimal digits of the checksums of a graph's files."""
    files = json.dumps(manifest.files, sort_keys=True)
    return hashlib.sha256(files.encode()).hexdigest()[:16]
