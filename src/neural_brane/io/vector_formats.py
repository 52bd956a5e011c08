"""The formats of vectors, each declared once: how it is read and written, what it keeps, which ids it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.io.vector_arrays import ids_beside, read_npy, read_npz, write_npy, write_npz
from neural_brane.io.vector_h5ad import import_h5py, read_h5ad, write_h5ad
from neural_brane.io.vector_parquet import read_parquet, write_columns, write_parquet
from neural_brane.io.vector_pgvector import load_lines, read_pgvector, write_pgvector
from neural_brane.io.vector_projector import projector_files, read_projector, write_projector
from neural_brane.io.vector_safetensors import read_safetensors, write_safetensors
from neural_brane.io.vector_table import VectorTable
from neural_brane.io.vector_text import (
    read_csv,
    read_tsv,
    read_word2vec,
    read_word2vec_binary,
    write_csv,
    write_tsv,
    write_word2vec,
    write_word2vec_binary,
)

if TYPE_CHECKING:
    import numpy as np

    from neural_brane.io.vector_parts import StoredColumn

PROVENANCE, LAYER, MADE_FROM = "the provenance", "the layer that scores pairs", "what each vector was made from"
ALL = frozenset((PROVENANCE, LAYER, MADE_FROM))


def _alone(path: Path) -> list[Path]:
    return [path]


@dataclass(frozen=True, slots=True)
class VectorFormat:
    """A format of vectors.

    `write` takes the content and a path for each of `files`; `holds` tells whether an id that is a string can stand in
    the format, and `limit` is the beginning of the sentence that says it cannot.
    """

    read: Callable[[Path], VectorTable]
    write: Callable[..., None]
    keeps: frozenset[str] = frozenset()  # besides vectors and ids
    holds: Callable[[str], bool] | None = None  # None: any id
    limit: str = ""
    number_bytes: float = 12  # that a number takes, about
    id_bytes: int = 0  # that an id takes besides its characters
    files: Callable[[Path], list[Path]] = _alone  # the last is what readers look for
    folder: bool = False
    usage: Callable[[Path, Any, int], str] | None = None  # what to do with the file, for people
    require: Callable[[], object] | None = None  # raises where an optional package is missing


def _is_word(node: str) -> bool:
    return node.split() == [node]


def _lacks(*characters: str) -> Callable[[str], bool]:
    return lambda node: not any(character in node for character in characters)


def _is_field(node: str) -> bool:
    return bool(node) and _lacks("\t", "\n", "\r")(node)


def _show_projector(path: Path, ids: np.ndarray | StoredColumn, dim: int) -> str:
    return f"look at it with: tensorboard --logdir '{path}'"


_WORD2VEC = VectorFormat(read_word2vec, write_word2vec, holds=_is_word, limit="word2vec text separates by spaces and")
FORMATS: dict[str, VectorFormat] = {
    ".npz": VectorFormat(read_npz, write_npz, ALL, number_bytes=4),
    ".parquet": VectorFormat(read_parquet, write_parquet, frozenset((PROVENANCE, MADE_FROM)), number_bytes=5),
    ".columns.parquet": VectorFormat(read_parquet, write_columns, frozenset((PROVENANCE,)), number_bytes=4),
    ".safetensors": VectorFormat(read_safetensors, write_safetensors, ALL, number_bytes=4),
    ".h5ad": VectorFormat(
        read_h5ad,
        write_h5ad,
        ALL,
        holds=_lacks("\0"),
        limit="HDF5 ends strings at the character 0 and",
        number_bytes=4,
        id_bytes=32,
        require=import_h5py,
    ),
    ".txt": _WORD2VEC,
    ".w2v": _WORD2VEC,
    ".vec": _WORD2VEC,
    ".emb": _WORD2VEC,
    ".bin": VectorFormat(
        read_word2vec_binary,
        write_word2vec_binary,
        holds=lambda node: bool(node) and _lacks(" ", "\n")(node),
        limit="word2vec's binary form ends ids at a space and",
        number_bytes=4,
    ),
    ".tsv": VectorFormat(read_tsv, write_tsv, holds=_is_field, limit="a .tsv file"),
    ".csv": VectorFormat(read_csv, write_csv),
    ".npy": VectorFormat(
        read_npy,
        write_npy,
        holds=_lacks("\n", "\r"),
        limit="the file of ids, one on each line,",
        number_bytes=4,
        files=lambda path: [ids_beside(path), path],
    ),
    ".pgvector": VectorFormat(read_pgvector, write_pgvector, holds=_lacks("\0"), limit="PostgreSQL", usage=load_lines),
    ".projector": VectorFormat(
        read_projector,
        write_projector,
        frozenset((PROVENANCE,)),
        holds=_is_field,
        limit="the projector's table of ids",
        files=projector_files,
        folder=True,
        usage=_show_projector,
    ),
}
NAMES = (
    ".npz, .parquet, .safetensors, .h5ad, .csv, .tsv, .txt .w2v .vec .emb (word2vec text), .bin (word2vec binary), "
    ".npy, .pgvector or .projector"
)


def find_format(path: Path) -> VectorFormat | None:
    """The format that a name says; None where it says none."""
    return FORMATS.get("".join(path.suffixes[-2:])) or FORMATS.get(path.suffix)
