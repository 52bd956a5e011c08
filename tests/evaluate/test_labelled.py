import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.evaluate import Repeats, match

IDS, LABELS = np.array([3, 1, 2]), np.array(["c", "a", "b"])


def embedding(ids):
    """Return an embedding in which the vector of node 7 is [7]."""
    return Embedding(np.array(ids, dtype=np.float32)[:, None], ids)


def test_nodes_are_matched_by_id_in_the_order_of_the_labels():
    for order in ([1, 2, 3], [2, 3, 1]):
        found = match(embedding(order), IDS, LABELS)
        assert found.vectors.ravel().tolist() == [3, 1, 2]
        assert found.labels.tolist() == ["c", "a", "b"]
        assert (found.unlabelled.tolist(), found.missing.tolist()) == ([], [])


def test_integers_match_the_strings_that_spell_them():
    found = match(embedding([1, 2, 3]), IDS.astype(str), LABELS)
    assert found.vectors.ravel().tolist() == [3, 1, 2]
    with pytest.raises(EmbeddingError, match="id in common"):
        match(embedding([1, 2, 3]), np.array(["01", "02"]), LABELS[:2])


def test_nodes_without_a_label_are_left_out_and_counted():
    found = match(embedding([9, 1, 2, 3]), IDS, np.array(["c", "", "b"]))
    assert found.vectors.ravel().tolist() == [3, 2]
    assert found.unlabelled.tolist() == [9, 1]


def test_labels_without_a_vector_are_refused_unless_allowed():
    with pytest.raises(EmbeddingError, match=r"1.*3.*nodes.*3"):
        match(embedding([1, 2]), IDS, LABELS)
    found = match(embedding([1, 2]), IDS, LABELS, allow_missing=True)
    assert found.vectors.ravel().tolist() == [1, 2]
    assert found.missing.tolist() == [3]


@pytest.mark.parametrize(
    ("ids", "labels", "message"),
    [
        ([8, 9], ["a", "b"], "vectors.* 1, 2.*labelled nodes.* 8, 9.*id"),
        ([1, 2], ["", ""], "no node has a label"),
        ([1, 2, 1], ["a", "b", "b"], "a node has several labels"),
    ],
)
def test_invalid_labels_are_described(ids, labels, message):
    with pytest.raises(EmbeddingError, match=message):
        match(embedding([1, 2]), np.array(ids), np.array(labels))


def test_mean_and_deviation_are_those_of_the_sample():
    score = Repeats((0.4, 0.6))
    assert score.mean == pytest.approx(0.5)
    assert score.sd == pytest.approx(0.02**0.5)
    assert score.as_dict("splits") == {"mean": score.mean, "sd": score.sd, "splits": [0.4, 0.6]}


def test_one_value_has_no_deviation():
    assert (Repeats((0.4,)).mean, Repeats((0.4,)).sd) == (0.4, 0.0)
