"""Which files can be read piece by piece, and how: tables of text, Parquet, and lines of words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from neural_brane.errors import GraphError, ShardError
from neural_brane.io.compressed import STANDARD_INPUT, Unpacked
from neural_brane.io.content import recognise
from neural_brane.io.edge_table import PACKED
from neural_brane.io.edges import is_separated
from neural_brane.io.frames import stem, table_suffix
from neural_brane.io.graph_files import exchange_suffix
from neural_brane.io.text_blocks import HEAD
from neural_brane.shards.bags import Bags, bag_lines, bag_table
from neural_brane.shards.lines import EdgeLines
from neural_brane.shards.manifest import is_shards
from neural_brane.shards.pairs import Pairs, parquet_pairs, text_pairs

Kind = Literal["lines", "table", "parquet"]
TABLES = (".parquet", ".csv", ".tsv")


class EdgeSource(NamedTuple):
    """Files of edges of one kind, and how their columns are to be read."""

    kind: Kind
    files: tuple[Path, ...]
    options: dict[str, Any]
    total: int  # bytes of text, or rows of Parquet: what `Pairs.size` counts

    @property
    def name(self) -> str:
        """What messages and the manifest call the graph."""
        return stem(self.files[0]) if len(self.files) == 1 else self.files[0].parent.name

    def read(self) -> tuple[Iterator[Pairs], EdgeLines | None]:
        """The edges, and the reader of lines where they are such."""
        if self.kind == "lines":
            lines = EdgeLines(self.files[0])
            return lines.pairs(), lines
        read = parquet_pairs if self.kind == "parquet" else text_pairs
        return read(self.files, self.options), None


def find_edges(source: str | Path, options: dict[str, Any]) -> EdgeSource | None:
    """How the edges of a file, or of a folder of tables, can be read piece by piece; None where they cannot.

    options: `source`, `target`, `weight` and `header`, as `neural_brane.io.read_graph` takes them.
    """
    path, given = Path(source), any(value is not None for value in options.values())
    if str(source) == STANDARD_INPUT or not path.exists() or exchange_suffix(path):
        return None
    if path.is_dir():
        return _find_folder(path, options)
    if path.suffix.lower() in (".npz", ".cites", ".brane"):
        return None
    kind, size = _look(path, given)
    if kind == "lines" and given:
        raise GraphError(f"{path}: columns are those of a table, and the graph file is text")
    return None if kind is None else EdgeSource(kind, (path,), options, size)


def _find_folder(folder: Path, options: dict[str, Any]) -> EdgeSource:
    if is_shards(folder):
        raise ShardError(f"{folder}: is a graph in parts already; give the files that it was made of")
    for suffix in TABLES:
        if files := sorted(path for path in folder.iterdir() if table_suffix(path) == suffix and path.is_file()):
            found = [_look(path, True) for path in files]
            if None in (kinds := {kind for kind, _ in found}) or len(kinds) > 1:
                raise GraphError(f"{folder}: its {suffix} files are not all of one kind; give tables of one kind")
            kind = "parquet" if kinds == {"parquet"} else "table"
            return EdgeSource(kind, tuple(files), options, sum(size for _, size in found))  # type: ignore[arg-type]
    raise GraphError(f"{folder}: has no file that ends in {', '.join(TABLES)}; give a folder of tables of edges")


def _look(path: Path, given: bool) -> tuple[Kind | None, int]:
    """The kind of a file, and the total of what is counted while it is read."""
    with Unpacked(path, "graph file", streamed=True) as file:
        content = recognise(file.head(HEAD))
        packed, size = bool(file.packing), file.size
    if content.kind == "parquet" and not packed:
        return "parquet", count_rows(path)
    if content.kind != "text":
        return None, size
    return "table" if given or is_separated(path, content.text) else "lines", size * (PACKED if packed else 1)


def count_rows(path: Path) -> int:
    """The rows of a Parquet file, from its footer."""
    import polars as pl

    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0][:200]
        raise GraphError(f"{path}: cannot be read as Parquet ({reason}); write the file again") from None


def find_attributes(path: Path) -> tuple[Iterator[Bags], int]:
    """The attributes of a file, and the total of what is counted while they are read."""
    with Unpacked(path, "attribute file", streamed=True) as file:
        kind, size = recognise(file.head(HEAD)).kind, file.size * (PACKED if file.packing else 1)
    return (bag_table(path), count_rows(path)) if kind == "parquet" else (bag_lines(path), size)
