"""Vectors as TensorBoard's projector shows them: a folder with tables of numbers and of ids, and what says so.

`vectors.tsv` has a vector per line and `metadata.tsv` an id per line, neither under titles: the projector takes the
first line of a table with one column as data. `projector_config.pbtxt` names both. `provenance.json` is ours.
"""

from __future__ import annotations

import json
import re
from itertools import chain, zip_longest
from pathlib import Path

from neural_brane.errors import EmbeddingError
from neural_brane.files.reading import check_file
from neural_brane.files.vectors.table import (
    Content,
    VectorFormat,
    VectorTable,
    is_field,
    number_lines,
    parse_provenance,
)
from neural_brane.files.vectors.text import parse_rows

CONFIG = "projector_config.pbtxt"  # what TensorBoard looks for
VECTORS, METADATA, PROVENANCE = "vectors.tsv", "metadata.tsv", "provenance.json"
_FIELD = r'\b{}\s*:\s*"([^"\\\n\0]*)"'
LONGEST = 1 << 20  # bytes of a config: it has a few lines


def write_projector(content: Content, vectors: Path, metadata: Path, provenance: Path, config: Path) -> None:
    """Write the four files of the folder."""
    with (
        open(vectors, "w", encoding="utf-8", newline="\n") as numbers,
        open(metadata, "w", encoding="utf-8", newline="\n") as names,
    ):
        for ids, block in content.with_ids():
            numbers.writelines(f"{line}\n" for line in number_lines(block, "\t"))
            names.writelines(f"{node}\n" for node in ids.tolist())
    provenance.write_text(content.provenance + "\n", encoding="utf-8")
    fields = {"tensor_name": "vectors", "tensor_path": VECTORS, "metadata_path": METADATA}
    lines = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in fields.items())
    config.write_text(f"embeddings {{\n{lines}}}\n", encoding="utf-8")


def read_projector(path: Path) -> VectorTable:
    """Read the folder of a projector, ours or another program's: the first tables that its config names."""
    vectors, metadata = _named_tables(path)
    with open(metadata, encoding="utf-8") as file:
        named = [line.removesuffix("\n").split("\t") for line in file]
    titled = bool(named) and len(named[0]) > 1  # a table of several columns has titles, and ids in the first
    nodes = [line[0] for line in named[titled:]]
    with open(vectors, encoding="utf-8") as file:
        rows = ((line, text.split("\t")) for line, text in enumerate(file, 1) if not text.isspace())
        first = next(rows, None)
        joined = zip_longest(nodes, chain([] if first is None else [first], rows))
        lines = (_join(node, row, vectors, metadata) for node, row in joined)
        table = parse_rows(vectors, lines, 1 if first is None else len(first[1]))
    known = path / PROVENANCE
    return table._replace(provenance=parse_provenance(known, _text(known)) if known.is_file() else {})


def _join(node: str | None, row: tuple[int, list[str]] | None, vectors: Path, metadata: Path) -> tuple[int, list[str]]:
    if node is None or row is None:
        more, fewer = (metadata, vectors) if row is None else (vectors, metadata)
        raise EmbeddingError(f"{more} has more lines than {fewer}; give one id per vector")
    return row[0], [node, *row[1]]


def _named_tables(path: Path) -> tuple[Path, Path]:
    """The files of numbers and of ids that a config names."""
    config = path / CONFIG
    if not config.is_file():
        raise EmbeddingError(f"{path}: has no {CONFIG}; give a folder that 'brane embed … -o {path}' wrote")
    text, found = _text(config), []
    for field in ("tensor_path", "metadata_path"):
        match = re.search(_FIELD.format(field), text)
        if match is None:
            raise EmbeddingError(f'{config}: names no {field}; write it as in {field}: "vectors.tsv"')
        table = path / match[1]
        if not table.resolve().is_relative_to(path.resolve()):
            raise EmbeddingError(
                f"{config}: names '{match[1]}', which is not in its folder; only files beside it are read"
            )
        if not table.is_file():
            raise EmbeddingError(f"{config}: names '{match[1]}', and there is no such file; write the folder again")
        check_file(table, EmbeddingError)
        found.append(table)
    return found[0], found[1]


def _text(path: Path) -> str:
    if path.stat().st_size > LONGEST:
        raise EmbeddingError(f"{path}: has {path.stat().st_size:,} bytes, far more than it takes; write it again")
    return path.read_text(encoding="utf-8")


FORMAT = VectorFormat(
    ".projector",
    "a folder for TensorBoard's projector",
    read_projector,
    write_projector,
    keeps=("provenance",),
    refuses="that are empty, or with tabs or line ends",
    holds=is_field,
    files=lambda path: [path / name for name in (VECTORS, METADATA, PROVENANCE, CONFIG)],
    folder=True,
    usage=lambda path, ids, dim: f"look at it with: tensorboard --logdir '{path}'",
)
