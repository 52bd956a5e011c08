import json

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.files import npz, tensors
from neural_brane.files.vectors import safetensors
from neural_brane.files.vectors.formats import VectorFile, read_vectors

PROVENANCE = {"method": "neural-brane", "parameters": {"dim": 4, "seed": None}, "data": {"name": "é"}}


def test_the_same_vectors_give_the_same_npz_byte_for_byte(awkward, tmp_path):
    for name, parts in (("a.npz", 1), ("b.npz", 5)):
        VectorFile(tmp_path / name).write(range(50), np.array_split(awkward(50), parts), dim=4, provenance=PROVENANCE)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_arrays_of_earlier_versions_that_scored_pairs_are_ignored(suffix, tmp_path):
    layer = {"layer_weight": np.eye(3, 2, dtype=np.float32), "layer_bias": np.zeros(3, np.float32)}
    path, vectors, ids = tmp_path / f"v{suffix}", np.eye(4, 2, dtype=np.float32), np.arange(4)
    if suffix == ".npz":
        text = np.array(json.dumps(PROVENANCE))
        npz.write_npz(path, {"vectors": vectors, "ids": ids, "provenance": text} | layer)
    else:
        about = {"provenance": PROVENANCE}
        tensors.write(path, safetensors.KIND, about, {"embeddings": vectors, **layer, "ids": ids})
    found = Embedding.load(path)
    np.testing.assert_array_equal(found.vectors, vectors)
    assert (found.ids.tolist(), found.provenance, found.made_from) == (ids.tolist(), PROVENANCE, None)
    found.save(tmp_path / f"again{suffix}")
    assert (tmp_path / f"again{suffix}").stat().st_size < path.stat().st_size


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
    with pytest.raises(EmbeddingError, match=r"v\.npy.*3 rows.*2"):
        read_vectors(tmp_path / "v.npy", ids=tmp_path / "ids.txt")
    with pytest.raises(EmbeddingError, match=r"file of ids .*gone"):
        read_vectors(tmp_path / "v.npy", ids=tmp_path / "gone")
    VectorFile(tmp_path / "v.txt").write(["a", "b"], [np.eye(2)], dim=2)
    with pytest.raises(EmbeddingError, match=r"v\.txt: .*ids\.txt"):
        read_vectors(tmp_path / "v.txt", ids=tmp_path / "ids.txt")
    np.save(tmp_path / "flat.npy", np.ones(3))
    with pytest.raises(EmbeddingError, match=r"flat\.npy: .*shape \(3,\)"):
        read_vectors(tmp_path / "flat.npy")
    (tmp_path / "text.npy").write_text("1 2 3")
    with pytest.raises(EmbeddingError, match=r"text\.npy.*file"):
        read_vectors(tmp_path / "text.npy")
    np.save(tmp_path / "pickled.npy", np.array([[None]]), allow_pickle=True)
    with pytest.raises(EmbeddingError, match=r"pickled\.npy: .*Python objects"):
        read_vectors(tmp_path / "pickled.npy")
