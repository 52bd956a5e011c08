"""`brane convert`: vectors into another format, into a folder of parts, or out of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.terminal import counting, echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.progress import Meter


def convert(
    vectors: Annotated[Path, Argument(help="A file or folder of vectors, in any format that 'brane --help' lists.")],
    output: o.Output,
    ids: Annotated[Path | None, Option(help="File with one id per line, for vectors in an .npy file.")] = None,
    parts: Annotated[int | None, Option(help="Write a folder of so many parts instead of a file.")] = None,
    part_format: Annotated[
        Literal["npy", "parquet"], Option(help="What parts are: arrays that can be memory-mapped, or Parquet.")
    ] = "npy",
) -> None:
    """Write a file or folder of VECTORS again, in the format that the name of the output says.

    Vectors and ids stay the same, to the last bit. What the new format has no place for is said, and the old file
    stays: ids that it cannot hold are refused. Parquet has one column 'vector'; a name that ends in .columns.parquet
    asks for a column per number.

    A folder of parts is merged block by block: its vectors are never in memory as a whole, and its ids only for .npz
    and .safetensors. Files are read as a whole.

    \b
    brane convert vectors.npz -o vectors.parquet       for DuckDB, Arrow, pandas
    brane convert vectors.npz -o vectors.bin           for gensim
    brane convert vectors.npz -o vectors.pgvector      for PostgreSQL
    brane convert vectors.npz -o vectors.projector     for TensorBoard
    brane convert folder -o vectors.parquet            merge a folder of parts
    brane convert vectors.npz -o folder --parts 4      split into such a folder
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
        meter = start_meter(report, len(found), "vectors")
        known: dict[str, Any] = {"provenance": found.provenance, "layer": found.layer, "made_from": found.made_from}
        write_parts(output, found.ids, found.vectors, parts=parts, kind=part_format, tell=meter.advance, **known)
    echo(f"wrote {len(found):,} x {found.dim} vectors to {output}, in {parts} {'part' if parts == 1 else 'parts'}")


def check_output(vectors: Path, ids: Path | None, output: Path, parts: int | None) -> None:
    """Refuse an output before the work: one that is read too, and one whose name does not say what it shall be."""
    from neural_brane.files.manifest import MANIFEST
    from neural_brane.files.storage import check_distinct
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
    """The vectors of a file, read, or those of a folder of parts, which stay there; both checked."""
    from neural_brane.embedding import Embedding
    from neural_brane.files.vectors.parts import is_parts, open_parts

    if not is_parts(path) or ids is not None:
        return Embedding.load(path, ids)
    found = open_parts(path)
    with counting("comparing checksums") as report:
        found.check(start_meter(report, sum(about["bytes"] for about in found.files.values()), "bytes").advance)
    return found


def merge(source: Path, found: Any, output: Path) -> None:
    """Write vectors, block by block, to the file that the output names."""
    from neural_brane.files.vectors.formats import VectorFile, write_blocks

    file = VectorFile(output)
    with counting("writing") as report:
        write_blocks(file, source, found, tell=start_meter(report, len(found), "vectors").advance)
    echo(f"wrote {len(found):,} x {found.dim} vectors to {output}")
    if lost := file.lost(found.provenance, found.layer, found.made_from):
        echo(f"not kept, for want of a place in this format: {', '.join(lost)}; .npz keeps everything", err=True)
    if usage := file.usage(found.ids, found.dim):
        echo(usage)


def start_meter(report: Any, total: int, unit: str) -> Meter:
    """What counts the work that is done."""
    from neural_brane.progress import Meter

    return Meter(report, total, unit)
