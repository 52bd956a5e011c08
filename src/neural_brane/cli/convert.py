"""`brane convert`: a file of vectors into another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.console import echo


def convert(
    vectors: Annotated[Path, Argument(help="A file of vectors, in any format that 'brane --help' lists.")],
    output: o.Output,
    ids: Annotated[Path | None, Option(help="File with one id per line, for vectors in an .npy file.")] = None,
) -> None:
    """Write a file of VECTORS again, in the format that the name of the output says.

    Vectors and ids stay the same, to the last bit. What the new format has no place for is said, and the old file
    stays: ids that it cannot hold are refused. Parquet has one column 'vector'; a name that ends in .columns.parquet
    asks for a column per number.

    \b
    brane convert vectors.npz -o vectors.parquet       for DuckDB, Arrow, pandas
    brane convert vectors.npz -o vectors.bin           for gensim
    brane convert vectors.npz -o vectors.pgvector      for PostgreSQL
    brane convert vectors.npz -o vectors.projector     for TensorBoard
    """
    from neural_brane.embedding import BLOCK_ROWS, Embedding
    from neural_brane.io import VectorFile
    from neural_brane.io.atomic import check_distinct

    file = VectorFile(output)
    inputs = {"VECTORS": vectors, "--ids": ids}
    for one in file.files:
        check_distinct({"--output": one}, inputs)
    found = Embedding.load(vectors, ids)
    file.check_ids(found.ids)
    file.check_size(found.ids, found.dim)
    blocks = [found.vectors[at : at + BLOCK_ROWS] for at in range(0, len(found), BLOCK_ROWS)]
    known: dict[str, Any] = {"provenance": found.provenance, "layer": found.layer, "made_from": found.made_from}
    file.write(found.ids, blocks, dim=found.dim, **known)
    echo(f"wrote {len(found):,} x {found.dim} vectors to {output}")
    if lost := file.lost(**known):
        echo(f"not kept, for want of a place in this format: {', '.join(lost)}; .npz keeps everything", err=True)
    if usage := file.usage(found.ids, found.dim):
        echo(usage)
