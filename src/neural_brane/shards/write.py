"""A graph in memory to a folder of parts, and how the files of a part are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import ShardError
from neural_brane.graph import AttributedGraph
from neural_brane.io.atomic import atomic, check_writable
from neural_brane.progress import Meter, Reporter
from neural_brane.shards.folder import Shards, open_shards
from neural_brane.shards.manifest import (
    IDS,
    MANIFEST,
    NAMES,
    Manifest,
    describe_files,
    is_shards,
    part_files,
    part_folder,
)
from neural_brane.shards.parts import MemoryShards, Rows, parts_of

if TYPE_CHECKING:
    import polars as pl


def write_shards(
    graph: AttributedGraph, folder: str | Path, parts: int = 1, *, report: Reporter | None = None
) -> Shards:
    """Write a graph as a folder of `parts` parts, and open it. Nodes and attributes keep their numbers.

    The folder must not hold anything yet. Labels are not kept.
    """
    folder, shards = Path(folder), parts_of(graph, parts)
    check_vacant(folder)
    meter = Meter(report, parts, "parts")
    write_names(folder / NAMES, "name", graph.attribute_names)
    files = describe_files(folder, [NAMES])
    for number in range(parts):
        _write_part(shards, number, folder)
        own = part_files(number, weighted=shards.weighted, amounts=shards.amounts)
        files |= describe_files(folder, own)
        meter.advance()
    _manifest(shards, files).write(folder)
    return open_shards(folder)


def check_vacant(folder: Path) -> None:
    """Refuse a folder that holds something, or cannot be written to."""
    if folder.exists() and not folder.is_dir():
        raise ShardError(f"{folder}: is a file; name a folder that is empty or does not exist")
    if is_shards(folder):
        raise ShardError(f"{folder}: holds a graph in parts already; choose another folder, or remove this one")
    if folder.is_dir() and any(folder.iterdir()):
        raise ShardError(f"{folder}: is not empty; name a folder that is empty or does not exist")
    check_writable(folder / MANIFEST, ShardError)


def _write_part(shards: MemoryShards, number: int, folder: Path) -> None:
    part, home = shards.part(number), folder / part_folder(number)
    write_rows(home, "adjacency", part.adjacency, "weights")
    write_rows(home, "attributes", part.attributes, "amounts")
    write_names(home / IDS, "id", shards.ids(number))


def write_rows(home: Path, matrix: str, rows: Rows, data: str) -> None:
    """Write the arrays of one matrix of a part."""
    arrays = {"indptr": rows.indptr, "indices": rows.indices} | ({} if rows.data is None else {data: rows.data})
    for name, array in arrays.items():
        with atomic(home / f"{matrix}.{name}.npy") as draft:
            np.save(draft, array)


def write_names(path: Path, column: str, names: np.ndarray) -> None:
    """Write ids or names as a Parquet file of one column."""
    import polars as pl

    kind = pl.Int64() if names.dtype.kind == "i" else pl.String()
    write_series(path, column, kind, iter([pl.Series(names, dtype=kind)]))


def write_series(path: Path, column: str, kind: pl.DataType, series: Iterator[pl.Series]) -> None:
    """Write names that come some at a time as a Parquet file of one column, through Polars' streaming engine."""
    import polars as pl
    from polars.io.plugins import register_io_source

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        for names in series:
            yield pl.DataFrame({column: names.cast(kind)})

    # An open file, not its name: given a name, Polars makes the file from a thread of its own, even after a failure.
    with atomic(path) as draft, draft.open("wb") as file:
        register_io_source(frames, schema={column: kind}).sink_parquet(file)


def _manifest(shards: MemoryShards, files: dict[str, dict[str, int]]) -> Manifest:
    return Manifest(
        name=shards.name,
        nodes=shards.nodes,
        edges=shards.edges,
        attributes=shards.attributes,
        entries=shards.entries,
        parts=len(shards),
        bounds=shards.bounds.tolist(),
        weighted=shards.weighted,
        amounts=shards.amounts,
        ids="integer" if shards.graph.ids.dtype.kind == "i" else "string",
        files=files,
    )
