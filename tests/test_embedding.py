import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError


@pytest.fixture
def small():
    vectors = np.array([[3, 4], [6, 8], [0, 0], [-3, -4], [4, -3]], dtype=np.float64)
    return Embedding(vectors, ["a", "b", "zero", "back", "side"], {"method": "by hand"})


def test_vectors_are_found_by_id(small):
    np.testing.assert_array_equal(small["back"], [-3, -4])
    assert (len(small), small.dim) == (5, 2)
    assert small.vectors.dtype == np.float32
    assert "a" in small
    assert "c" not in small
    assert list(small) == ["a", "b", "zero", "back", "side"]


def test_integer_ids_stay_integers():
    embedding = Embedding(np.eye(2), np.array([7, 3], dtype=np.uint16))
    assert embedding.ids.dtype == np.int64
    assert embedding[3].tolist() == [0, 1]
    assert embedding.nearest(7) == [(3, 0.0)]


def test_nearest_orders_by_cosine_and_leaves_the_node_out(small):
    names, cosines = zip(*small.nearest("a"), strict=True)
    assert names == ("b", "zero", "side", "back")
    np.testing.assert_allclose(cosines, [1, 0, 0, -1], atol=1e-6)
    assert [name for name, _ in small.nearest("a", k=1)] == ["b"]


def test_nearest_to_a_vector_keeps_every_node(small):
    assert small.nearest([1, -1], k=1)[0][0] == "side"
    assert len(small.nearest(np.ones(2), k=99)) == 5


def test_nearest_to_a_vector_of_zeros_is_all_zeros(small):
    assert {cosine for _, cosine in small.nearest("zero")} == {0.0}


def test_unknown_node_is_named_with_examples(small):
    with pytest.raises(EmbeddingError, match="no node 3 here; ids are strings, such as 'a', 'b', 'zero'"):
        small[3]
    with pytest.raises(EmbeddingError, match="no node 'c' here"):
        small.nearest("c")


@pytest.mark.parametrize(
    ("vectors", "ids", "message"),
    [
        (np.zeros(3), [1, 2, 3], "one row per node"),
        (np.array([["x"]]), [1], "table of numbers"),
        (np.zeros((2, 2)), [1], "2 vectors and 1 ids"),
        (np.zeros((2, 2)), ["a", "a"], "id 'a' stands for several vectors"),
        (np.zeros((2, 2)), [0.5, 1.5], "integers or of strings"),
        (np.zeros((2, 2)), [["a"], ["b"]], "integers or of strings"),
    ],
)
def test_what_cannot_be_an_embedding_is_refused(vectors, ids, message):
    with pytest.raises(EmbeddingError, match=message):
        Embedding(vectors, ids)


def test_a_vector_of_another_width_is_refused(small):
    with pytest.raises(EmbeddingError, match="a vector of 2 numbers is needed"):
        small.nearest([1, 2, 3])


def test_save_and_load(small, tmp_path):
    small.save(tmp_path / "v.npz")
    again = Embedding.load(tmp_path / "v.npz")
    np.testing.assert_array_equal(again.vectors, small.vectors)
    assert again.ids.tolist() == small.ids.tolist()
    assert again.provenance == {"method": "by hand"}


def test_ids_of_a_bare_array_come_from_a_file(tmp_path):
    np.save(tmp_path / "v.npy", np.eye(2))
    (tmp_path / "ids.txt").write_text("ann\nbob\n")
    assert Embedding.load(tmp_path / "v.npy", tmp_path / "ids.txt").ids.tolist() == ["ann", "bob"]


def test_a_file_that_holds_no_embedding_is_named(tmp_path):
    (tmp_path / "v.txt").write_text("2 1\na 1\na 2\n")
    with pytest.raises(EmbeddingError, match=r"v\.txt: id 'a' stands for several vectors; give each node one vector"):
        Embedding.load(tmp_path / "v.txt")
    np.savez(tmp_path / "v.npz", vectors=np.array([["x"]]), ids=np.array([1]))
    with pytest.raises(EmbeddingError, match=r"v\.npz: vectors must be a table of numbers"):
        Embedding.load(tmp_path / "v.npz")


@pytest.mark.parametrize("k", [-3, 0, 2.5, "3", None, True, float("nan")])
def test_a_number_of_neighbours_that_makes_no_sense_is_refused(small, k):
    with pytest.raises(EmbeddingError, match=r"k=.* makes no sense; give a whole number from 1, as in k=10"):
        small.nearest("a", k=k)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("gone", r"no node 'gone' here; ids are strings, such as 'a'"),
        ([float("nan"), 1], "the vector holds NaN or infinity"),
        ([1, float("inf")], "the vector holds NaN or infinity"),
        (float("nan"), r"a vector of 2 numbers is needed, not shape \(\)"),
        (["x", "y"], r"\['x', 'y'\] is neither a node's id nor a vector of 2 numbers"),
        (None, "a vector of 2 numbers is needed|None is neither"),
    ],
)
def test_what_is_neither_a_node_nor_a_vector_has_no_neighbours(small, target, message):
    with pytest.raises(EmbeddingError, match=message):
        small.nearest(target)


def test_a_path_that_cannot_be_written_is_refused(small, tmp_path):
    with pytest.raises(EmbeddingError, match=r"v\.json: cannot tell its format"):
        small.save(tmp_path / "v.json")
    assert list(tmp_path.iterdir()) == []
