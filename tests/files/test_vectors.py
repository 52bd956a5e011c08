import tracemalloc

import numpy as np
import polars
import pytest

from neural_brane.errors import EmbeddingError
from neural_brane.files.vectors.formats import FORMATS, VectorFile, read_vectors

SUFFIXES = list(FORMATS)
PROVENANCE = {"method": "neural-brane", "parameters": {"dim": 4, "seed": None}, "data": {"name": "é"}}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_every_format_reads_back_the_same_vectors_and_ids(awkward, suffix, kind, tmp_path):
    vectors = awkward(500)
    ids = np.arange(500)[::-1] - 7 if kind == "integers" else np.array([f"módulo.{i}" for i in range(500)])
    path = tmp_path / f"v{suffix}"
    VectorFile(path).write(ids, np.array_split(vectors, 7), dim=4, provenance=PROVENANCE)
    again = read_vectors(path)
    np.testing.assert_array_equal(again.vectors, vectors)
    np.testing.assert_array_equal(again.ids, ids)
    assert again.ids.dtype.kind == ("i" if kind == "integers" else "U")
    assert again.provenance == (PROVENANCE if "provenance" in FORMATS[suffix].keeps else {})


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_writing_never_holds_the_whole_table(suffix, tmp_path):
    rows, dim = 160_000, 20
    blocks = (np.full((1000, dim), i, dtype=np.float32) for i in range(rows // 1000))
    VectorFile(tmp_path / f"warm{suffix}").write(range(10), [np.zeros((10, dim))], dim=dim)  # imports are not counted
    tracemalloc.start()
    VectorFile(tmp_path / f"v{suffix}").write(np.arange(rows), blocks, dim=dim)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows * dim * 4 / 2


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([np.zeros((2, 3))], r"shape \(2, 3\).*\(rows, 2\)"),
        ([np.zeros((2, 2))], "2 vectors.* 3 ids"),
        ([np.zeros((3, 2)), np.zeros((1, 2))], "more vectors.* 3 ids"),
    ],
)
def test_blocks_that_do_not_fit_leave_no_file(suffix, blocks, message, tmp_path):
    with pytest.raises(EmbeddingError, match=message):
        VectorFile(tmp_path / f"v{suffix}").write([1, 2, 3], blocks, dim=2)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_file_that_was_there(tmp_path):
    path = tmp_path / "v.npz"
    VectorFile(path).write([1], [np.ones((1, 2))], dim=2)
    with pytest.raises(EmbeddingError):
        VectorFile(path).write([1, 2], [np.ones((1, 2))], dim=2)
    assert read_vectors(path).ids.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "ids", "message"),
    [
        ("v.txt", ["New York"], "'New York'"),
        ("v.w2v", [""], "''"),
        ("v.tsv", ["a\tb"], r"'a\\tb'"),
    ],
)
def test_ids_that_the_format_cannot_hold_are_refused_before_any_work(name, ids, message, tmp_path):
    target = VectorFile(tmp_path / name)
    with pytest.raises(EmbeddingError, match=message):
        target.check_ids(np.array(ids))
    with pytest.raises(EmbeddingError, match=message):
        target.write(ids, [np.zeros((1, 2))], dim=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("v.json", r"format.*\.npz"),
        ("file/v.npz", "file' is not a folder that can be written to"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_at_once(name, message, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EmbeddingError, match=message):
        VectorFile(tmp_path / name)


class CountedIds(np.ndarray):
    """Ids that count how often they are read."""

    read = 0

    def tolist(self):
        CountedIds.read += 1
        return super().tolist()


def test_ids_that_were_checked_before_the_work_are_not_checked_again(tmp_path):
    ids = np.array(["a", "b"]).view(CountedIds)
    target = VectorFile(tmp_path / "v.txt")
    target.check_ids(ids)
    target.check_ids(ids)
    assert CountedIds.read == 1
    target.check_ids(ids.copy())
    assert CountedIds.read == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", "a 1 2\n", r"v\.txt:1: the first line must be 'nodes dim'"),
        ("v.txt", "2 2\na 1 2\n", "2 nodes.* 1"),
        ("v.txt", "1 2\na 1 2 3\n", r"v\.txt:2: 3 numbers.*'a'.* 2"),
        ("v.txt", "1 2\na 1 two\n", r"v\.txt:2: 'two'.*number"),
        ("v.tsv", "id d0\n", r"v\.tsv:1: .*tabs"),
        ("v.tsv", "id\td0\na\t1\nb\t1\t2\n", r"v\.tsv:3: 2 numbers.*'b'.* 1"),
        ("v.npz", "not a zip", r"v\.npz: .*\.npz file"),
        ("v.parquet", "not parquet", r"v\.parquet: .*Parquet file"),
        ("v.json", "", "format"),
    ],
)
def test_the_error_for_a_damaged_file_says_what_is_wrong(name, content, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(EmbeddingError, match=message):
        read_vectors(tmp_path / name)


def test_other_damage_is_described(tmp_path):
    with pytest.raises(EmbeddingError, match=r"gone\.npz: no such file"):
        read_vectors(tmp_path / "gone.npz")
    np.savez(tmp_path / "x.npz", x=1)
    with pytest.raises(EmbeddingError, match=r"arrays 'vectors'.*'ids'"):
        read_vectors(tmp_path / "x.npz")
    np.savez(tmp_path / "graph.npz", adj_indptr=np.zeros(1))
    with pytest.raises(EmbeddingError, match="is a graph, not vectors; make them with 'brane embed"):
        read_vectors(tmp_path / "graph.npz")
    np.savez(tmp_path / "pickled.npz", vectors=np.eye(1), ids=np.array([None], dtype=object))
    with pytest.raises(EmbeddingError, match="array 'ids'"):
        read_vectors(tmp_path / "pickled.npz")
    np.savez(tmp_path / "floats.npz", vectors=np.eye(1), ids=np.ones(1))
    with pytest.raises(EmbeddingError, match=r"floats\.npz.*ids"):
        read_vectors(tmp_path / "floats.npz")
    (tmp_path / "latin.txt").write_bytes(b"1 1\n\xe9 1\n")
    with pytest.raises(EmbeddingError, match="not a text file in UTF-8"):
        read_vectors(tmp_path / "latin.txt")
    polars.DataFrame({"id": [1], "d0": ["x"]}).write_parquet(tmp_path / "text.parquet")
    with pytest.raises(EmbeddingError, match="column 'd0'"):
        read_vectors(tmp_path / "text.parquet")
