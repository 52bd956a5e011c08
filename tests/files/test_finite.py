"""Every reader of vectors refuses numbers that float32 cannot hold, after the cast."""

import h5py
import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from neural_brane import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.files.npz import RowBlocks, write_npz
from neural_brane.files.vectors.formats import FORMATS, read_vectors
from neural_brane.files.vectors.parts import write_parts


def write_h5ad(path, table):
    with h5py.File(path, "w") as file:
        file["X"], file["obs/_index"] = table, np.array(["a", "b", "c"], object)


def write_projector(path, table):
    path.mkdir()
    (path / "vectors.tsv").write_text("".join("\t".join(map(repr, row)) + "\n" for row in table.tolist()))
    (path / "metadata.tsv").write_text("a\nb\nc\n")
    (path / "projector_config.pbtxt").write_text('tensor_path: "vectors.tsv"\nmetadata_path: "metadata.tsv"\n')


def write_text(path, table, line, head=""):
    rows = zip("abc", table.tolist(), strict=True)
    path.write_text(head + "".join(line(node, list(map(repr, row))) for node, row in rows))


def word2vec(path, table):
    write_text(path, table, lambda node, row: f"{node} {' '.join(row)}\n", "3 2\n")


def binary(path, table):
    rows = zip("abc", table.astype("<f4"), strict=True)
    path.write_bytes(b"3 2\n" + b"".join(node.encode() + b" " + row.tobytes() for node, row in rows))


WRITERS = {
    ".npz": lambda path, table: np.savez(path, vectors=table, ids=np.arange(3)),
    ".npy": np.save,
    ".safetensors": lambda path, table: save_file({"embeddings": table}, path),
    ".h5ad": write_h5ad,
    ".parquet": lambda path, table: pl.DataFrame({"id": list("abc"), "vector": table.tolist()}).write_parquet(path),
    ".columns.parquet": lambda path, table: pl.DataFrame(
        {"id": list("abc"), "d0": table[:, 0], "d1": table[:, 1]}
    ).write_parquet(path),
    ".projector": write_projector,
    ".pgvector": lambda path, table: write_text(path, table, lambda node, row: f"{node}\t[{','.join(row)}]\n"),
    ".csv": lambda path, table: write_text(path, table, lambda node, row: f"{node},{','.join(row)}\n"),
    ".tsv": lambda path, table: write_text(path, table, lambda node, row: "\t".join([node, *row]) + "\n"),
    ".bin": binary,
    **dict.fromkeys((".txt", ".w2v", ".vec", ".emb"), word2vec),
}


def test_every_format_is_tested():
    assert WRITERS.keys() == FORMATS.keys()


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")  # of the test, for .bin
@pytest.mark.parametrize("number", [1e300, -1e39, np.inf, np.nan])
@pytest.mark.parametrize("suffix", WRITERS)
def test_numbers_that_float32_cannot_hold_are_refused(suffix, number, tmp_path):
    table = np.array([[1, 2], [3, number], [5, 6]], np.float64)
    path = tmp_path / f"v{suffix}"
    WRITERS[suffix](path, table)
    with pytest.raises(EmbeddingError, match=rf"v(\.projector/vectors)?{suffix}: vector 2 "):
        read_vectors(path)


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_a_mapped_file_and_a_folder_of_parts_are_checked_too(number, tmp_path):
    table = np.array([[1, 2], [3, number]], np.float32)
    arrays = {"vectors": RowBlocks([table], table.shape), "ids": np.arange(2), "provenance": np.array("{}")}
    write_npz(tmp_path / "v.npz", arrays)
    with pytest.raises(EmbeddingError, match=r"v\.npz: vector 2 .*float32"):
        Embedding.load(tmp_path / "v.npz", mmap=True)
    write_parts(tmp_path / "parts", np.arange(2), table, parts=2)
    with pytest.raises(EmbeddingError, match=r"parts: vector 2 .*float32"):
        read_vectors(tmp_path / "parts")
