import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.search.index import load_index

pytest.importorskip("faiss", reason="install faiss-cpu to build an index")


@pytest.fixture(scope="module")
def clustered():
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((40, 16))
    vectors = centres[rng.integers(0, 40, 4000)] + 0.4 * rng.standard_normal((4000, 16))
    return Embedding(vectors, [f"n{at}" for at in range(4000)], {"method": "by hand"})


@pytest.fixture(scope="module")
def index(clustered):
    return clustered.index(recall=0.99, seed=3)


def test_the_index_finds_the_promised_share_of_nodes(clustered, index):
    asked = clustered.ids[::50].tolist()
    exact, found = clustered.nearest(asked), index.nearest(asked)
    shares = [len({a for a, _ in one} & {b for b, _ in other}) / 10 for one, other in zip(exact, found, strict=True)]
    assert np.mean(shares) > 0.97
    assert index.recall >= 0.99
    assert index.lists.nprobe < index.lists.nlist


def test_answers_have_the_form_of_exact_ones(clustered, index):
    best = index.nearest("n7", k=3)
    assert best[0] == (clustered.nearest("n7", k=1)[0][0], pytest.approx(clustered.nearest("n7", k=1)[0][1], abs=1e-5))
    assert "n7" not in dict(best)
    assert len(best) == 3
    assert index.nearest(clustered["n7"] * 5, k=1) == [("n7", pytest.approx(1, abs=1e-6))]
    assert [len(one) for one in index.nearest(["n1", "n2"], k=4)] == [4, 4]
    with pytest.raises(EmbeddingError, match="node 'gone'"):
        index.nearest("gone")
    with pytest.raises(EmbeddingError, match="k=0"):
        index.nearest("n7", k=0)


def test_the_same_seed_gives_the_same_index(clustered, index, tmp_path):
    index.save(tmp_path / "one.faiss")
    clustered.index(recall=0.99, seed=3).save(tmp_path / "again.faiss")
    assert (tmp_path / "one.faiss").read_bytes() == (tmp_path / "again.faiss").read_bytes()
    clustered.index(recall=0.99, seed=4).save(tmp_path / "other.faiss")
    assert (tmp_path / "one.faiss").read_bytes() != (tmp_path / "other.faiss").read_bytes()


def test_few_nodes_and_vectors_of_zeros():
    few = Embedding([[1, 0], [0, 0], [1, 1]], [3, 1, 2])
    assert few.index().nearest(3) == few.nearest(3)
    assert few.index().nearest(1) == [(3, 0.0), (2, 0.0)]


@pytest.mark.parametrize("options", [{"recall": 0}, {"recall": 1.5}, {"lists": 0}, {"lists": 99_999}])
def test_options_that_make_no_sense(clustered, options):
    with pytest.raises(ParameterError, match=f"{next(iter(options))}={next(iter(options.values()))}"):
        clustered.index(**options)
    with pytest.raises(ParameterError, match="no vectors"):
        clustered[:0].index()


@pytest.mark.parametrize("check", [True, False])
def test_a_saved_index_answers_as_before(clustered, index, tmp_path, check):
    path = tmp_path / "v.faiss"
    index.save(path)
    again = load_index(path, check=check)
    asked = clustered.ids[::100].tolist()
    assert again.nearest(asked) == index.nearest(asked)
    assert (again.provenance, again.recall, len(again)) == (index.provenance, index.recall, 4000)
    assert repr(again) == repr(index)


def test_a_damaged_index_is_refused_before_faiss_sees_it(index, tmp_path):
    path = tmp_path / "v.faiss"
    index.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in [0, 5, len(whole) - 1, len(whole) - 30, len(whole) - 130, *rng.integers(0, len(whole), 40)]:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        with pytest.raises(EmbeddingError, match=r"v\.faiss: .*index"):
            load_index(path)
    for length in (0, 10, 200, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(EmbeddingError, match="cut off"):
            load_index(path)
    path.write_bytes(whole[100:])
    with pytest.raises(EmbeddingError, match=r"v\.faiss: .*bytes"):
        load_index(path, check=False)


def test_a_missing_index_and_a_wrong_suffix_are_refused(index, tmp_path):
    with pytest.raises(EmbeddingError, match=r"v\.faiss.*file"):
        load_index(tmp_path / "v.faiss")
    with pytest.raises(EmbeddingError, match=r"v\.bin.*\.faiss"):
        index.save(tmp_path / "v.bin")
