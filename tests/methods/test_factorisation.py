import numpy as np
import pytest

from neural_brane import METHODS, AttributedGraph
from neural_brane.methods.factorisation import Factorisation

FACTORISATIONS = [name for name, method in METHODS.items() if issubclass(method, Factorisation)]
pytestmark = pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_a_graph_without_attributes_gives_numbers(name, small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    vectors = METHODS[name](dim=4, seed=0).fit_transform(bare).vectors
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_a_width_beyond_the_data_gives_numbers(name, small_graph):
    vectors = METHODS[name](dim=31, seed=0).fit_transform(small_graph).vectors
    assert vectors.shape == (12, 31)
    assert np.isfinite(vectors).all()
