import numpy as np
import polars as pl
import pytest

from neural_brane.errors import EmbeddingError
from neural_brane.files.vectors.formats import VectorFile, read_vectors


def test_word2vec_text_begins_with_nodes_and_dim(tmp_path):
    VectorFile(tmp_path / "v.txt").write(["a", "b"], [np.array([[0.5, -1], [0.1, 2]])], dim=2)
    assert (tmp_path / "v.txt").read_text() == "2 2\na 0.5 -1.0\nb 0.1 2.0\n"


def test_tsv_has_a_header_and_holds_spaces_and_quotes(tmp_path):
    VectorFile(tmp_path / "v.tsv").write(['the "New" York', "x,y"], [np.eye(2)], dim=2)
    assert (tmp_path / "v.tsv").read_text() == 'id\td0\td1\nthe "New" York\t1.0\t0.0\nx,y\t0.0\t1.0\n'
    assert read_vectors(tmp_path / "v.tsv").ids.tolist() == ['the "New" York', "x,y"]


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
def test_word2vec_text_as_gensim_writes_it(awkward, keys, suffix, tmp_path):
    vectors = awkward(3)
    models = pytest.importorskip("gensim.models")
    written = models.KeyedVectors(4)
    written.add_vectors(keys, vectors)
    written.save_word2vec_format(str(tmp_path / f"v{suffix}"))
    found = read_vectors(tmp_path / f"v{suffix}")
    assert found.ids.astype(str).tolist() == keys
    np.testing.assert_array_equal(found.vectors, vectors)


def test_word2vec_binary_as_gensim_writes_it(awkward, tmp_path):
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
    with pytest.raises(EmbeddingError, match=r"3 nodes.*2"):
        read_vectors(tmp_path / "v.bin")
    (tmp_path / "v.bin").write_bytes(b"1 2\n" + b"".join(rows))
    with pytest.raises(EmbeddingError, match=r"v\.bin: \d+ bytes follow the 1 nodes"):
        read_vectors(tmp_path / "v.bin")
    (tmp_path / "v.bin").write_bytes(b"\x80\x04nonsense")
    with pytest.raises(EmbeddingError, match="first line must be 'nodes dim'"):
        read_vectors(tmp_path / "v.bin")


@pytest.mark.parametrize("titles", ["age,d0,d1", "d0,d1,age", "d0,age2,d1", "0,1,age", "dim_1,dim_2,age"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".columns.parquet"])
def test_a_column_that_is_no_dimension_is_named(titles, suffix, tmp_path):
    words = ["id", *titles.split(",")]
    if suffix.endswith(".parquet"):
        pl.DataFrame({word: [1.0, 2.0] if word != "id" else ["a", "b"] for word in words}).write_parquet(
            tmp_path / f"v{suffix}"
        )
    else:
        separator = "," if suffix == ".csv" else "\t"
        (tmp_path / f"v{suffix}").write_text(f"{separator.join(words)}\n{separator.join('a123')}\n")
    with pytest.raises(EmbeddingError, match=rf"v{suffix}: .*'{'age2' if 'age2' in titles else 'age'}'.*remove"):
        read_vectors(tmp_path / f"v{suffix}")


@pytest.mark.parametrize("titles", ["d0,d1,d2", "x,y,z", "0,1,2", "x1,y1,x2", "dim_1,dim_2,dim_10"])
def test_columns_that_belong_together_are_the_vector(titles, tmp_path):
    (tmp_path / "v.csv").write_text(f"id,{titles}\na,1,2,3\n")
    assert read_vectors(tmp_path / "v.csv").vectors.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("e.csv", "source,target,weight\nann,bob,1\n", r"e\.csv:1: 'source' and 'target'.*edges"),
        ("e.csv", "Source,Target\n1,2\n", r"e\.csv:1: 'Source' and 'Target'.*edges"),
        ("e.csv", "ann,bob\nbob,cat\n", r"e\.csv:2: 'cat'.*number"),
        ("e.tsv", "id\ttown\tage\nann\tOslo\t31\n", r"e\.tsv:2: 'Oslo'.*number"),
        ("e.txt", "ann bob\nbob cat\n", r"e\.txt:1: .*'nodes dim'"),
        ("e.txt", "7 11\n7 13\n", r"e\.txt:2: 1 numbers.*'7'.* 11"),
    ],
)
def test_the_error_for_a_file_that_looks_like_a_graph_says_so(name, text, says, tmp_path):
    (tmp_path / name).write_text(text)
    advice = rf"graph.*'brane embed {name} -o vectors\.npz'"
    with pytest.raises(EmbeddingError, match=f"{says}.*{advice}"):
        read_vectors(tmp_path / name)


def test_damaged_vectors_are_not_taken_for_a_graph(tmp_path):
    for name, text in [("v.csv", "id,d0,d1\na,1,x\n"), ("v.txt", "a 1 2\n"), ("v.txt", "1 2\na 1\n")]:
        (tmp_path / name).write_text(text)
        with pytest.raises(EmbeddingError) as caught:
            read_vectors(tmp_path / name)
        assert "graph" not in str(caught.value)
