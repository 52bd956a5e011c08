import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from neural_brane import AttributedGraph, Attributes
from neural_brane.errors import GraphError


def test_it_is_scikit_learns_tfidf_and_svd_at_one_scale(small_graph):
    vectors = Attributes(dim=3, seed=0).fit_transform(small_graph).vectors
    weighted = TfidfTransformer().fit_transform(small_graph.attributes)
    expected = TruncatedSVD(3, algorithm="arpack", random_state=0).fit_transform(weighted)
    scale = np.sqrt(3 / (expected**2).sum(axis=1).mean())
    signs = np.sign((vectors * expected).sum(axis=0))
    np.testing.assert_allclose(vectors, expected * signs * scale, rtol=1e-5, atol=1e-6)
    assert (vectors**2).sum(axis=1).mean() == pytest.approx(3, rel=1e-5)


def test_columns_beyond_the_data_are_zero(small_graph):
    attributes = small_graph.attributes.shape[1]
    with pytest.warns(UserWarning, match=r"5.*10 columns.*'small'"):
        vectors = Attributes(dim=attributes + 5, seed=0).fit_transform(small_graph).vectors
    assert not vectors[:, attributes:].any()
    assert vectors[:, :attributes].any(axis=0).all()


def test_a_graph_without_attributes_is_refused(small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    with pytest.raises(GraphError, match=r"attribute.*links"):
        Attributes(dim=4).fit(bare)
