"""A matrix of features alone, for methods that do without links."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from neural_brane import METHODS, Attributes, NeuralBrane, SmoothedAttributes
from neural_brane.errors import GraphError

NUMBERS = (np.random.default_rng(0).random((30, 8)) < 0.4).astype(float)
NUMBERS[:, 0] += NUMBERS.sum(axis=1) == 0  # no row is empty


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, pd.DataFrame], ids=["array", "sparse", "frame"])
@pytest.mark.parametrize("method", [Attributes, SmoothedAttributes, NeuralBrane])
def test_features_alone_are_learned_from_and_new_rows_placed_alike(method, form):
    model = method(dim=4, seed=0).fit(form(NUMBERS))
    assert model.n_features_in_ == 8
    assert model.embedding_.vectors.shape == (30, 4)
    placed = model.transform(form(NUMBERS[:5]))
    assert isinstance(placed, np.ndarray)
    np.testing.assert_allclose(placed, model.embedding_.vectors[:5], atol=1e-4)
    np.testing.assert_array_equal(method(dim=4, seed=0).fit_transform(form(NUMBERS)), model.embedding_.vectors)


def test_a_square_matrix_is_features_where_links_are_not_read_and_links_where_they_are():
    square = NUMBERS[:8] + NUMBERS[:8].T
    assert Attributes(dim=2, seed=0).fit(square).n_features_in_ == 8
    assert SmoothedAttributes(dim=2, seed=0).fit(square).n_features_in_ == 0


def test_columns_of_a_frame_are_found_by_name():
    frame = pd.DataFrame(NUMBERS, columns=list("abcdefgh"))
    model = Attributes(dim=4, seed=0).fit(frame)
    turned = model.transform(frame[list("hgfedcba")])
    np.testing.assert_allclose(turned, model.embedding_.vectors, atol=1e-4)


def test_another_width_is_refused_and_so_is_a_method_that_needs_links():
    with pytest.raises(ValueError, match="X has 7 features, but Attributes is expecting 8 features as input"):
        Attributes(dim=4, seed=0).fit(NUMBERS).transform(NUMBERS[:, :7])
    with pytest.raises(GraphError, match="give a square matrix"):
        METHODS["tadw"](dim=4, seed=0).fit(NUMBERS)
