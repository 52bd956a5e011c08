"""Matrices of features as input of the method that learns from attributes alone."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from neural_brane import METHODS, Attributes, SmoothedAttributes
from neural_brane.errors import GraphError

NUMBERS = (np.random.default_rng(0).random((30, 8)) < 0.4).astype(float)
NUMBERS[:, 0] += NUMBERS.sum(axis=1) == 0  # no row is empty


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame], ids=["array", "sparse", "frame"])
def test_features_alone_are_learned_from_and_new_rows_placed_alike(form):
    model = Attributes(dim=4, seed=0).fit(form(NUMBERS))
    assert model.n_features_in_ == 8
    assert model.embedding_.vectors.shape == (30, 4)
    placed = model.transform(form(NUMBERS[:5]))
    assert isinstance(placed, np.ndarray)
    np.testing.assert_allclose(placed, model.embedding_.vectors[:5], atol=1e-4)
    np.testing.assert_array_equal(Attributes(dim=4, seed=0).fit_transform(form(NUMBERS)), model.embedding_.vectors)


def test_a_square_matrix_is_features_where_links_are_not_read_and_links_where_they_are():
    square = NUMBERS[:8] + NUMBERS[:8].T
    assert Attributes(dim=2, seed=0).fit(square).n_features_in_ == 8
    assert SmoothedAttributes(dim=2, seed=0).fit(square).n_features_in_ == 0


def test_columns_of_a_frame_are_found_by_name():
    frame = pd.DataFrame(NUMBERS, columns=list("abcdefgh"))
    model = Attributes(dim=4, seed=0).fit(frame)
    turned = model.transform(frame[list("hgfedcba")])
    np.testing.assert_allclose(turned, model.embedding_.vectors, atol=1e-4)


def test_columns_of_other_names_are_refused_and_columns_without_go_by_their_order():
    frame = pd.DataFrame(NUMBERS, columns=list("abcdefgh"))
    model, plain = Attributes(dim=4, seed=0).fit(frame), Attributes(dim=4, seed=0).fit(NUMBERS)
    with pytest.raises(GraphError, match=r"feature names should match .*: unseen then \['z'\], missing now \['a'\]"):
        model.transform(frame.rename(columns={"a": "z"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Attributes was fitted with"):
        by_order = model.transform(NUMBERS)
    with pytest.warns(UserWarning, match="X has feature names, but Attributes was fitted without"):
        also = plain.transform(frame)
    np.testing.assert_allclose(by_order, model.embedding_.vectors, atol=1e-4)
    np.testing.assert_array_equal(by_order, also)


def test_what_numpy_makes_a_matrix_of_is_one_and_lists_are_where_links_are_not_read():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return NUMBERS

    expected = Attributes(dim=4, seed=0).fit_transform(NUMBERS)
    for form in (Tensor(), NUMBERS.tolist(), list(NUMBERS)):
        np.testing.assert_array_equal(Attributes(dim=4, seed=0).fit_transform(form), expected)
    with pytest.raises(GraphError, match="list of 30"):
        SmoothedAttributes(dim=4, seed=0).fit(NUMBERS.tolist())
    assert SmoothedAttributes(dim=1, seed=0).fit([(1, 2), (2, 3)]).embedding_.ids.tolist() == [1, 2, 3]  # edges
    with pytest.raises(GraphError, match="give rows of one length"):
        Attributes(dim=4, seed=0).fit([[1, 2], [3]])


def test_a_sparse_frame_stays_sparse(monkeypatch):
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(NUMBERS))
    monkeypatch.setattr(pd.DataFrame, "to_numpy", lambda *given: pytest.fail("made dense"))
    np.testing.assert_array_equal(
        Attributes(dim=4, seed=0).fit_transform(frame), Attributes(dim=4, seed=0).fit_transform(NUMBERS)
    )


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (NUMBERS[:1], GraphError, "X has 1 sample"),
        (NUMBERS[0], GraphError, r"X has shape \(8,\).* Reshape your data: X.reshape\(1, -1\) if it is one node"),
        (NUMBERS * np.nan, GraphError, "NaN"),
        (np.array([[{}, 1], [1, 0]]), TypeError, "argument must be a string or a real number"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused_in_words_that_scikit_learn_uses(given, error, message):
    with pytest.raises(error, match=message):
        Attributes(dim=1, seed=0).fit(given)


def test_another_width_is_refused_and_so_is_a_method_that_needs_links():
    with pytest.raises(ValueError, match="X has 7 features, but Attributes is expecting 8 features as input"):
        Attributes(dim=4, seed=0).fit(NUMBERS).transform(NUMBERS[:, :7])
    with pytest.raises(GraphError, match="30 x 8 is no adjacency"):
        METHODS["tadw"](dim=4, seed=0).fit(NUMBERS)
