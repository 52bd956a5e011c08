import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from neural_brane import NNMF, AttributedGraph, DeepWalkNNMF, synthetic
from neural_brane.errors import GraphError
from neural_brane.files.checkpoints import Stages
from neural_brane.methods import nnmf
from neural_brane.methods.training import Loop
from neural_brane.progress import Meter

GOLDEN = [0.0, 1.155020, 0.0, 0.229823]


def scikit_learns(graph, *, seed, dim, epochs, **settings):
    """Return W and H of scikit-learn's NMF from the same initial values."""
    links, words = normalize(graph.adjacency), TfidfTransformer().fit_transform(graph.attributes)
    matrix = sparse.hstack([links, words], format="csr").astype(np.float32)
    nodes, parts = nnmf.start(matrix, dim, seed)
    model = NMF(dim, init="custom", max_iter=epochs, tol=0, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that it stops at max_iter, which is intended
        return matrix, model.fit_transform(matrix, W=nodes, H=np.ascontiguousarray(parts.T)), model.components_


def test_it_takes_scikit_learns_steps():
    graph = synthetic(200, seed=5)
    ours = NNMF(dim=12, epochs=25, seed=4).fit(graph)
    _, nodes, parts = scikit_learns(graph, seed=4, dim=12, epochs=25, solver="mu")
    lengths = np.linalg.norm(parts, axis=1)
    np.testing.assert_allclose(ours.vectors_, nodes * lengths, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(ours.parts_, parts, rtol=1e-3, atol=1e-5)


def five_steps():
    return Loop(Stages().stage("factors"), Meter(None, 5, "steps"), 5)


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_of_rows_and_threads_change_no_bit(threads):
    matrix = nnmf.stacked(synthetic(200, seed=5))
    whole = nnmf.factorise(matrix, 12, 4, five_steps(), 1)
    pieces = nnmf.factorise(matrix, 12, 4, five_steps(), threads, block_rows=37)  # the last block is shorter
    for one, other in zip(whole, pieces, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    again = nnmf.factorise(matrix, 12, 4, five_steps(), 3 - threads, block_rows=37)
    for one, other in zip(pieces, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_ends_as_near_as_scikit_learns_other_solver():
    graph = synthetic(200, seed=5)
    ours = NNMF(dim=12, seed=4).fit(graph)
    matrix, nodes, parts = scikit_learns(graph, seed=4, dim=12, epochs=200, solver="cd")
    exact = matrix.toarray()
    product = (ours.vectors_ / np.linalg.norm(ours.parts_, axis=1)) @ ours.parts_
    errors = [np.linalg.norm(exact - given) for given in (product, nodes @ parts)]
    assert errors[0] == pytest.approx(errors[1], rel=0.01)


def test_amounts_are_never_negative_and_nothing_is_held_of_nothing(small_graph):
    embedding = NNMF(dim=4, seed=0).fit_transform(small_graph)
    assert (embedding.vectors >= 0).all()
    assert embedding["ann"].any()


def test_golden_value(small_graph):
    vectors = NNMF(dim=4, seed=0).fit_transform(small_graph).vectors
    np.testing.assert_allclose(vectors[0], GOLDEN, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("method", [NNMF, DeepWalkNNMF])
def test_attributes_below_zero_are_refused(method):
    bags = {"ann": {"age": 2.0}, "bob": {"age": 1.0, "debt": -3.5}}
    graph = AttributedGraph.from_edges([("ann", "bob")], attributes=bags)
    with pytest.raises(GraphError, match=r"attribute 'debt'.*'bob'"):
        method(dim=2).fit(graph)
