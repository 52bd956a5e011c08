"""`brane convert`: write vectors in another format, split them into parts, or merge parts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from neural_brane.cli import options as o
from neural_brane.cli.terminal import counting, echo
from neural_brane.errors import ParameterError
from neural_brane.progress import Meter


def convert(
    vectors: o.Vectors,
    output: o.Output,
    ids: o.Ids = None,
    parts: Annotated[int | None, Option(metavar="<whole>", help="Write a folder of N parts.")] = None,
    part_format: Annotated[
        Literal["npy", "parquet"], Option(metavar="<npy|parquet>", help="Format of the parts.")
    ] = "npy",
) -> None:
    """Write vectors in another format, or as a folder of parts.

    Vectors and ids stay the same, to the last bit; ids that the new format
    cannot hold are refused, and what else it cannot hold is listed. A folder of
    parts is merged block by block, without loading all vectors.

    \b
    brane convert vectors.npz -o vectors.parquet       for DuckDB or pandas
    brane convert vectors.npz -o vectors.bin           for gensim
    brane convert vectors.npz -o vectors.pgvector      for PostgreSQL
    brane convert folder -o vectors.parquet            merge a folder of parts
    brane convert vectors.npz -o folder --parts 4      split into parts
    """
    check_output(vectors, ids, output, parts)
    found = open_source(vectors, ids)
    if parts is None:
        merge(vectors, found, output)
        return
    from neural_brane.files.storage import check_space
    from neural_brane.files.vectors.parts import write_parts

    check_space(output / "part", len(found) * (4 * found.dim + found.ids.dtype.itemsize), ParameterError)
    with counting("writing parts") as report:
        meter = Meter(report, len(found), "vectors")
        known: dict[str, Any] = {"provenance": found.provenance, "layer": found.layer, "made_from": found.made_from}
        write_parts(output, found.ids, found.vectors, parts=parts, kind=part_format, tell=meter.advance, **known)
    echo(f"wrote {len(found):,} x {found.dim} vectors to {output}, in {parts} {'part' if parts == 1 else 'parts'}")


def check_output(vectors: Path, ids: Path | None, output: Path, parts: int | None) -> None:
    """Refuse an output that is also read, or whose name does not say its format."""
    from neural_brane.files.storage import MANIFEST, check_distinct
    from neural_brane.files.vectors.formats import NAMES, VectorFile, find_format
    from neural_brane.files.vectors.parts import check_folder, is_parts, open_parts

    if parts is None and find_format(output) is None:
        raise ParameterError(
            f"{output}: cannot tell its format; name a file ending in {NAMES}, or give --parts N to write a folder"
        )
    files = VectorFile(output).files if parts is None else [check_folder(output, parts)]
    read = [vectors]
    if is_parts(vectors):
        read += [vectors / name for name in (MANIFEST, *open_parts(vectors).files)]
    for one in files:
        check_distinct({"--output": one}, {"--ids": ids})
        for path in read:
            check_distinct({"--output": one}, {"VECTORS": path})


def open_source(path: Path, ids: Path | None) -> Any:
    """Read the vectors of a file, or open those of a folder of parts; both are checked."""
    from neural_brane.embedding import Embedding
    from neural_brane.files.vectors.parts import is_parts, open_parts

    if not is_parts(path) or ids is not None:
        return Embedding.load(path, ids)
    found = open_parts(path)
    with counting("comparing checksums") as report:
        found.check(Meter(report, sum(about["bytes"] for about in found.files.values()), "bytes").advance)
    return found


def merge(source: Path, found: Any, output: Path) -> None:
    """Write vectors, block by block, to the file that the output names."""
    from neural_brane.files.vectors.formats import VectorFile, write_blocks

    file = VectorFile(output)
    with counting("writing") as report:
        write_blocks(file, source, found, tell=Meter(report, len(found), "vectors").advance)
    echo(f"wrote {len(found):,} x {found.dim} vectors to {output}")
    if lost := file.lost(found.provenance, found.layer, found.made_from):
        echo(f"this format has no place for {', '.join(lost)}; .npz keeps everything", err=True)
    if usage := file.usage(found.ids, found.dim):
        echo(usage)
