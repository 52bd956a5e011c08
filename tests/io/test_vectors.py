import tracemalloc

import numpy as np
import polars
import pytest

from neural_brane.errors import EmbeddingError
from neural_brane.io.vectors import check_target, read_vectors, write_vectors

SUFFIXES = [".npz", ".txt", ".w2v", ".tsv", ".parquet"]
PROVENANCE = {"method": "neural-brane", "parameters": {"dim": 4, "seed": None}, "data": {"name": "é"}}


def awkward(nodes, dim=4):
    """Floats of every size, where a careless text format loses digits."""
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(nodes, dim)) * 10.0 ** rng.integers(-30, 30, (nodes, dim))).astype(np.float32)
    vectors[0] = [0.1, 1 / 3, np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal]
    return vectors


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_every_format_gives_back_what_it_was_given(suffix, kind, tmp_path):
    vectors = awkward(500)
    ids = np.arange(500)[::-1] - 7 if kind == "integers" else np.array([f"módulo.{i}" for i in range(500)])
    path = tmp_path / f"v{suffix}"
    write_vectors(path, ids, np.array_split(vectors, 7), dim=4, provenance=PROVENANCE)
    again = read_vectors(path)
    np.testing.assert_array_equal(again.vectors, vectors)
    np.testing.assert_array_equal(again.ids, ids)
    assert again.ids.dtype.kind == ("i" if kind == "integers" else "U")
    assert again.provenance == (PROVENANCE if suffix in (".npz", ".parquet") else {})


def test_word2vec_text_begins_with_nodes_and_dim(tmp_path):
    write_vectors(tmp_path / "v.txt", ["a", "b"], [np.array([[0.5, -1], [0.1, 2]])], dim=2)
    assert (tmp_path / "v.txt").read_text() == "2 2\na 0.5 -1.0\nb 0.1 2.0\n"


def test_tsv_has_a_header_and_holds_spaces_and_quotes(tmp_path):
    write_vectors(tmp_path / "v.tsv", ['the "New" York', "x,y"], [np.eye(2)], dim=2)
    assert (tmp_path / "v.tsv").read_text() == 'id\td0\td1\nthe "New" York\t1.0\t0.0\nx,y\t0.0\t1.0\n'
    assert read_vectors(tmp_path / "v.tsv").ids.tolist() == ['the "New" York', "x,y"]


def test_parquet_has_plain_columns(tmp_path):
    write_vectors(tmp_path / "v.parquet", [5, 6], [np.eye(2)], dim=2)
    assert polars.read_parquet(tmp_path / "v.parquet").to_dict(as_series=False) == {
        "id": [5, 6],
        "d0": [1.0, 0.0],
        "d1": [0.0, 1.0],
    }


def test_the_same_vectors_give_the_same_npz_byte_for_byte(tmp_path):
    for name, parts in (("a.npz", 1), ("b.npz", 5)):
        write_vectors(tmp_path / name, range(50), np.array_split(awkward(50), parts), dim=4, provenance=PROVENANCE)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_writing_never_holds_the_whole_table(suffix, tmp_path):
    rows, dim = 160_000, 20
    blocks = (np.full((1000, dim), i, dtype=np.float32) for i in range(rows // 1000))
    write_vectors(tmp_path / f"warm{suffix}", range(10), [np.zeros((10, dim))], dim=dim)  # imports are not counted
    tracemalloc.start()
    write_vectors(tmp_path / f"v{suffix}", np.arange(rows), blocks, dim=dim)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < rows * dim * 4 / 2


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([np.zeros((2, 3))], r"shape \(2, 3\); \(rows, 2\) was announced"),
        ([np.zeros((2, 2))], "2 vectors were given for 3 ids"),
        ([np.zeros((3, 2)), np.zeros((1, 2))], "more vectors were given than the 3 ids"),
    ],
)
def test_blocks_that_do_not_fit_leave_no_file(suffix, blocks, message, tmp_path):
    with pytest.raises(EmbeddingError, match=message):
        write_vectors(tmp_path / f"v{suffix}", [1, 2, 3], blocks, dim=2)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_file_that_was_there(tmp_path):
    path = tmp_path / "v.npz"
    write_vectors(path, [1], [np.ones((1, 2))], dim=2)
    with pytest.raises(EmbeddingError):
        write_vectors(path, [1, 2], [np.ones((1, 2))], dim=2)
    assert read_vectors(path).ids.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "ids", "message"),
    [
        ("v.txt", ["New York"], r"cannot hold id 'New York'; write \.tsv, \.npz or \.parquet instead"),
        ("v.w2v", [""], "cannot hold id ''"),
        ("v.tsv", ["a\tb"], r"a \.tsv file cannot hold id 'a\\tb'; write \.npz or \.parquet instead"),
        ("v.csv", ["a"], r"cannot tell its format; name a file ending in \.npz, \.txt or \.w2v"),
        ("file/v.npz", ["a"], "file' is not a folder that can be written to"),
        ("folder.npz", ["a"], "is a folder; name a file in it"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_any_work(name, ids, message, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(EmbeddingError, match=message):
        check_target(tmp_path / name, np.array(ids))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.txt", "a 1 2\n", r"v\.txt:1: the first line must be 'nodes dim'"),
        ("v.txt", "2 2\na 1 2\n", "announces 2 nodes, 1 follow; is it cut off"),
        ("v.txt", "1 2\na 1 2 3\n", r"v\.txt:2: 3 numbers after id 'a', 2 were expected"),
        ("v.txt", "1 2\na 1 two\n", r"v\.txt:2: could not convert string to float: 'two'"),
        ("v.txt", "2 1\na 1\na 2\n", r"v\.txt: id 'a' stands for several vectors"),
        ("v.tsv", "id d0\n", r"v\.tsv:1: a line must be an id and its numbers, separated by tabs"),
        ("v.tsv", "id\td0\na\t1\nb\t1\t2\n", r"v\.tsv:3: 2 numbers after id 'b', 1 were expected"),
        ("v.npz", "not a zip", r"v\.npz: not a readable \.npz of vectors"),
        ("v.parquet", "not parquet", r"v\.parquet: not a readable Parquet file"),
        ("v.csv", "", "cannot tell its format"),
    ],
)
def test_a_damaged_file_is_described(name, content, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(EmbeddingError, match=message):
        read_vectors(tmp_path / name)


def test_other_damage_is_described(tmp_path):
    with pytest.raises(EmbeddingError, match=r"gone\.npz: no such file"):
        read_vectors(tmp_path / "gone.npz")
    np.savez(tmp_path / "x.npz", x=1)
    with pytest.raises(EmbeddingError, match="arrays 'vectors' and 'ids' were expected"):
        read_vectors(tmp_path / "x.npz")
    np.savez(tmp_path / "graph.npz", adj_indptr=np.zeros(1))
    with pytest.raises(EmbeddingError, match="is a graph, not vectors; make them with 'brane embed"):
        read_vectors(tmp_path / "graph.npz")
    np.savez(tmp_path / "pickled.npz", vectors=np.eye(1), ids=np.array([None], dtype=object))
    with pytest.raises(EmbeddingError, match="not a readable"):
        read_vectors(tmp_path / "pickled.npz")
    (tmp_path / "latin.txt").write_bytes(b"1 1\n\xe9 1\n")
    with pytest.raises(EmbeddingError, match="not a text file in UTF-8"):
        read_vectors(tmp_path / "latin.txt")
    polars.DataFrame({"id": [1], "d0": ["x"]}).write_parquet(tmp_path / "text.parquet")
    with pytest.raises(EmbeddingError, match="column 'd0' holds String, not numbers"):
        read_vectors(tmp_path / "text.parquet")


@pytest.mark.parametrize("text", ["a\t1\t2\n", "\t0\t1\na\t1\t2\n", "node\tx\ty\r\na\t1\t2\r\n\n"])
def test_tab_separated_files_made_elsewhere_are_read(text, tmp_path):
    (tmp_path / "v.tsv").write_bytes(text.encode())
    found = read_vectors(tmp_path / "v.tsv")
    assert found.ids.tolist() == ["a"]
    assert found.vectors.tolist() == [[1, 2]]


def test_ids_that_only_look_like_integers_stay_strings(tmp_path):
    (tmp_path / "v.txt").write_text("2 1\n007 1 \n8 2 \n")
    assert read_vectors(tmp_path / "v.txt").ids.tolist() == ["007", "8"]


@pytest.mark.parametrize("keys", [["json", "asyncio", "New York"], ["7", "11", "3"]])
@pytest.mark.parametrize("suffix", [".txt", ".vec", ".emb", ".w2v"])
def test_word2vec_text_as_gensim_writes_it(keys, suffix, tmp_path):
    vectors = awkward(3)
    models = pytest.importorskip("gensim.models")
    written = models.KeyedVectors(4)
    written.add_vectors(keys, vectors)
    written.save_word2vec_format(str(tmp_path / f"v{suffix}"))
    found = read_vectors(tmp_path / f"v{suffix}")
    assert found.ids.astype(str).tolist() == keys
    np.testing.assert_array_equal(found.vectors, vectors)


def test_word2vec_binary_as_gensim_writes_it(tmp_path):
    vectors = awkward(3)
    models = pytest.importorskip("gensim.models")
    written = models.KeyedVectors(4)
    written.add_vectors(["a", "módulo", "7"], vectors)
    written.save_word2vec_format(str(tmp_path / "v.bin"), binary=True)
    found = read_vectors(tmp_path / "v.bin")
    assert found.ids.tolist() == ["a", "módulo", "7"]
    np.testing.assert_array_equal(found.vectors, vectors)


def test_words_before_the_numbers_belong_to_the_id(tmp_path):
    (tmp_path / "v.txt").write_text("2 2\nNew York 1 2 \nb 3 4\n")
    assert read_vectors(tmp_path / "v.txt").ids.tolist() == ["New York", "b"]


@pytest.mark.parametrize("end", ["", "\n"])
def test_word2vec_binary_with_and_without_line_ends(end, tmp_path):
    rows = [name.encode() + b" " + np.array([x, 2], "<f4").tobytes() + end.encode() for name, x in (("a", 1), ("b", 3))]
    (tmp_path / "v.bin").write_bytes(b"2 2\n" + b"".join(rows))
    found = read_vectors(tmp_path / "v.bin")
    assert found.ids.tolist() == ["a", "b"]
    assert found.vectors.tolist() == [[1, 2], [3, 2]]
    (tmp_path / "v.bin").write_bytes(b"3 2\n" + b"".join(rows))
    with pytest.raises(EmbeddingError, match="announces 3 nodes, 2 follow; is it cut off"):
        read_vectors(tmp_path / "v.bin")
    (tmp_path / "v.bin").write_bytes(b"\x80\x04nonsense")
    with pytest.raises(EmbeddingError, match="first line must be 'nodes dim'"):
        read_vectors(tmp_path / "v.bin")


def test_a_bare_array_has_ids_beside_it_or_row_numbers(tmp_path):
    np.save(tmp_path / "v.npy", np.eye(3))
    assert read_vectors(tmp_path / "v.npy").ids.tolist() == [0, 1, 2]
    (tmp_path / "ids.txt").write_text("New York\nb\n7\n")
    assert read_vectors(tmp_path / "v.npy", ids=tmp_path / "ids.txt").ids.tolist() == ["New York", "b", "7"]
    (tmp_path / "ids.txt").write_text("30\r\n20\r\n10")
    assert read_vectors(tmp_path / "v.npy", ids=tmp_path / "ids.txt").ids.tolist() == [30, 20, 10]


def test_a_bare_array_that_cannot_be_used_is_described(tmp_path):
    np.save(tmp_path / "v.npy", np.eye(3))
    (tmp_path / "ids.txt").write_text("a\nb\n")
    with pytest.raises(EmbeddingError, match=r"v\.npy has 3 rows, .*ids\.txt 2 lines; give one id per row"):
        read_vectors(tmp_path / "v.npy", ids=tmp_path / "ids.txt")
    with pytest.raises(EmbeddingError, match=r"there is no file of ids .*gone"):
        read_vectors(tmp_path / "v.npy", ids=tmp_path / "gone")
    write_vectors(tmp_path / "v.txt", ["a", "b"], [np.eye(2)], dim=2)
    with pytest.raises(EmbeddingError, match=r"holds its own ids; leave out .*ids\.txt"):
        read_vectors(tmp_path / "v.txt", ids=tmp_path / "ids.txt")
    np.save(tmp_path / "flat.npy", np.ones(3))
    with pytest.raises(EmbeddingError, match=r"save one array of shape \(nodes, dim\)"):
        read_vectors(tmp_path / "flat.npy")
    (tmp_path / "text.npy").write_text("1 2 3")
    with pytest.raises(EmbeddingError, match=r"text\.npy: not a readable \.npy file"):
        read_vectors(tmp_path / "text.npy")
    np.save(tmp_path / "pickled.npy", np.array([[None]]), allow_pickle=True)
    with pytest.raises(EmbeddingError, match=r"pickled\.npy: not a readable \.npy file"):
        read_vectors(tmp_path / "pickled.npy")
