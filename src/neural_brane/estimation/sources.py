"""The sizes of a graph by its name or file, without loading it where that is possible."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neural_brane.datasets import SYNTHETIC, synthetic, synthetic_nodes
from neural_brane.datasets.synthetic import ENTRY_BYTES, default_attributes
from neural_brane.errors import GraphError
from neural_brane.estimation.seconds import timed
from neural_brane.graph import AttributedGraph
from neural_brane.graph.sizes import Sizes
from neural_brane.io.claims import npz_headers
from neural_brane.io.npz import Npz, open_npz
from neural_brane.shards import open_shards
from neural_brane.shards.manifest import MANIFEST

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
