import mmap

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError


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
    with pytest.raises(EmbeddingError, match=r"node 3.*'a'.*'b'"):
        small[3]
    with pytest.raises(EmbeddingError, match="no node 'c' here"):
        small.nearest("c")


@pytest.mark.parametrize(
    ("vectors", "ids", "message"),
    [
        (np.zeros(3), [1, 2, 3], "one row per node"),
        (np.array([["x"]]), [1], "table of numbers"),
        (np.zeros((2, 2)), [1], "2 vectors.* 1 ids"),
        (np.zeros((2, 2)), ["a", "a"], "id 'a'"),
        (np.zeros((2, 2)), [0.5, 1.5], "integers or .*strings"),
        (np.zeros((2, 2)), [["a"], ["b"]], "integers or .*strings"),
    ],
)
def test_wrong_vectors_or_ids_are_refused(vectors, ids, message):
    with pytest.raises(EmbeddingError, match=message):
        Embedding(vectors, ids)


def test_a_vector_of_another_width_is_refused(small):
    with pytest.raises(EmbeddingError, match=r"vector.*2"):
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
    with pytest.raises(EmbeddingError, match=r"v\.txt.*id 'a'"):
        Embedding.load(tmp_path / "v.txt")
    np.savez(tmp_path / "v.npz", vectors=np.array([["x"]]), ids=np.array([1]))
    with pytest.raises(EmbeddingError, match=r"v\.npz.*vectors"):
        Embedding.load(tmp_path / "v.npz")


@pytest.mark.parametrize("k", [-3, 0, 2.5, "3", None, True, float("nan")])
def test_a_number_of_neighbours_that_makes_no_sense_is_refused(small, k):
    with pytest.raises(EmbeddingError, match=r"k=.*.*number.*1.*k=10"):
        small.nearest("a", k=k)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("gone", r"no node 'gone' here; ids are strings, such as 'a'"),
        ([float("nan"), 1], r"vector.*NaN"),
        ([1, float("inf")], r"vector.*NaN"),
        (float("nan"), "nan is neither a node's id nor a vector of 2 numbers"),
        (["a", "y"], "no node 'y' here"),
        ([["x"], ["y"]], "neither a node's id nor a vector of 2 numbers"),
        ([[1, 2], [1]], "neither a node's id nor a vector of 2 numbers"),
        (None, "None is neither a node's id nor a vector"),
    ],
)
def test_a_target_that_is_neither_a_node_nor_a_vector_is_refused(small, target, message):
    with pytest.raises(EmbeddingError, match=message):
        small.nearest(target)


def test_a_path_that_cannot_be_written_is_refused(small, tmp_path):
    with pytest.raises(EmbeddingError, match=r"v\.json.*format"):
        small.save(tmp_path / "v.json")
    assert list(tmp_path.iterdir()) == []


def test_an_embedding_converts_to_the_array_of_its_vectors(small):
    assert np.asarray(small) is small.vectors
    assert np.array(small, copy=True) is not small.vectors
    assert np.asarray(small, dtype=np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.asarray(small, dtype=np.float64), small.vectors)
    with pytest.raises(ValueError, match=r"float32.*float64"):
        small.__array__(np.float64, copy=False)
    assert np.mean(small, axis=0).shape == (2,)


def test_indexing_with_several_nodes_returns_an_embedding(small):
    some = small[["back", "a"]]
    assert (some.ids.tolist(), some["a"].tolist(), some.provenance) == (["back", "a"], [3, 4], small.provenance)
    assert small[1:3].ids.tolist() == ["b", "zero"]
    assert np.shares_memory(small[1:3].vectors, small.vectors)
    assert small[small.vectors[:, 0] > 3].ids.tolist() == ["b", "side"]
    assert small[[]].vectors.shape == (0, 2)
    numbered = Embedding(np.eye(3), [30, 10, 20], made_from=np.array(["known", "links", "nothing"]))
    assert numbered[np.array([20, 30])].made_from.tolist() == ["nothing", "known"]
    assert numbered[np.int32(10)].tolist() == [0, 1, 0]


def test_indexing_with_unknown_or_repeated_nodes_is_refused(small):
    with pytest.raises(EmbeddingError, match="no node 'c' here"):
        small[["a", "c"]]
    with pytest.raises(EmbeddingError, match="id 'a'"):
        small[["a", "a"]]
    with pytest.raises(EmbeddingError, match=r"mask.*5 nodes"):
        small[[True, False]]


def test_an_unknown_node_that_looks_like_known_ones():
    names = Embedding(np.eye(4), ["json", "ast", "json.tool", "jason"])
    with pytest.raises(EmbeddingError, match=r"node 'jsom'.*'json'.*'jason'"):
        names["jsom"]


def test_similarity_of_pairs_of_lists_and_of_each_with_each(small):
    assert small.similarity("a", "b") == pytest.approx(1)
    assert small.similarity("a", "zero") == 0
    np.testing.assert_allclose(small.similarity(["a", "b"], ["back", "side"]), [-1, 0], atol=1e-6)
    np.testing.assert_allclose(small.similarity("a", ["b", "back"]), [1, -1], atol=1e-6)
    np.testing.assert_allclose(
        small.similarity(["a", "zero"], ["b", "back", "a"], matrix=True), [[1, -1, 1], [0, 0, 0]]
    )
    assert small.similarity([3.0, 4.0], "a") == pytest.approx(1)
    with pytest.raises(ParameterError, match=r"2 nodes.*3"):
        small.similarity(["a", "b"], ["a", "b", "side"])


def test_nearest_to_several_nodes_is_a_list_for_each(small):
    assert small.nearest(["a", "side"], k=2) == [small.nearest("a", k=2), small.nearest("side", k=2)]
    assert small.nearest([[1.0, -1.0]], k=1)[0][0][0] == "side"
    numbered = Embedding(np.eye(2), [10, 20])
    assert numbered.nearest([10, 20], k=1) == [[(20, 0.0)], [(10, 0.0)]]
    assert numbered.nearest([0.0, 1.0], k=1) == [(20, 1.0)]


def test_centred_vectors_are_compared_by_how_they_differ_from_the_mean():
    far = Embedding(np.array([[100, 1], [100, -1], [100, 2], [100, -2]]), ["up", "down", "high", "low"])
    assert far.similarity("up", "down") > 0.99
    assert far.similarity("up", "down", center=True) == pytest.approx(-1)
    assert far.nearest("up", k=1, center=True) == far.centered().nearest("up", k=1) == [("high", 1.0)]
    assert far.centered().provenance == {"centered": True}


def test_data_frames_and_back(small):
    pandas = small.to_pandas()
    assert (pandas.index.name, pandas.columns.tolist()) == ("id", ["d0", "d1"])
    polars = small.to_polars()
    assert polars.columns == ["id", "d0", "d1"]
    for again in (Embedding.from_pandas(pandas), Embedding.from_polars(polars)):
        assert again.ids.tolist() == small.ids.tolist()
        np.testing.assert_array_equal(again.vectors, small.vectors)
    with pytest.raises(EmbeddingError, match="column 'name'"):
        Embedding.from_polars(polars, id="name")


def test_repr_and_html_are_short_and_escaped():
    made = Embedding(np.eye(9), [f"<b>{at}" for at in range(9)], {"method": "line", "data": {"name": "<i>"}})
    assert repr(made) == "Embedding(line of <i>: 9 × 9; ids '<b>0', '<b>1', '<b>2', …)"
    html = made._repr_html_()
    assert "&lt;b&gt;0" in html
    assert "line of &lt;i&gt;: 9 × 9" in html
    assert "<b>" not in html
    assert "<i>" not in html


def test_vectors_that_stay_in_their_file(small, tmp_path):
    small.save(tmp_path / "v.npz")
    for check in (True, False):
        mapped = Embedding.load(tmp_path / "v.npz", mmap=True, check=check)
        assert isinstance(mapped.vectors.base, np.memmap | mmap.mmap) or isinstance(mapped.vectors, np.memmap)
        assert mapped.vectors.flags.aligned
        assert mapped.nearest("a") == small.nearest("a")
        assert (mapped.ids.tolist(), mapped.provenance) == (small.ids.tolist(), small.provenance)


def test_files_that_cannot_be_mapped(small, tmp_path):
    np.savez_compressed(tmp_path / "packed.npz", vectors=small.vectors, ids=small.ids)
    with pytest.raises(EmbeddingError, match=r"packed\.npz.*vectors"):
        Embedding.load(tmp_path / "packed.npz", mmap=True)
    np.savez(tmp_path / "wide.npz", vectors=small.vectors.astype(np.float64), ids=small.ids)
    with pytest.raises(EmbeddingError, match=r"float64.*float32"):
        Embedding.load(tmp_path / "wide.npz", mmap=True)
    with pytest.raises(EmbeddingError, match=r"only \.npz files can be mapped"):
        Embedding.load(tmp_path / "v.csv", mmap=True)
    with pytest.raises(EmbeddingError, match=r"check=False.*mmap=True"):
        Embedding.load(tmp_path / "wide.npz", check=False)


def test_damage_to_a_mapped_file_is_found_unless_the_check_is_off(small, tmp_path):
    path = tmp_path / "v.npz"
    small.save(path)
    place = path.read_bytes().index(np.float32(3).tobytes() + np.float32(4).tobytes())
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(EmbeddingError, match=r"file.*'vectors'"):
        Embedding.load(path, mmap=True)
    assert len(Embedding.load(path, mmap=True, check=False)) == 5
