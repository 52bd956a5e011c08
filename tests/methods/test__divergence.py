import numpy as np
import pytest
from scipy import sparse

from neural_brane import PTE, TADW, NeuralBrane
from neural_brane.errors import ParameterError
from neural_brane.files.checkpoints import Stages
from neural_brane.methods import nnmf
from neural_brane.methods.training import diverged, require_finite
from neural_brane.progress import Meter


def test_what_is_finite_passes():
    require_finite({"W": np.ones((3, 2)), "counts": np.arange(4), "none": np.zeros((0, 2))}, "epoch 1")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_is_named_with_what_to_change(bad):
    arrays = {"W": np.ones(3), "H": np.array([1, bad]), "Z": np.array([bad])}
    with pytest.raises(ParameterError) as error:
        require_finite(arrays, "epoch 3", "raise rho=5", learning_rate=0.5)
    assert str(error.value) == (
        "training diverged in epoch 3: H and Z no longer hold numbers; lower learning_rate=0.5 or raise rho=5"
    )


def test_several_settings_can_be_lowered():
    with pytest.raises(ParameterError, match=r"diverged now; lower learning_rate=100000 or lower batch_size=65536$"):
        diverged("now", learning_rate=1e5, batch_size=65536)


def test_the_advice_of_a_sum_is_to_take_the_mean(small_graph):
    settings = {"loss": "sum", "recipe": "paper", "l2": 0.0, "learning_rate": 1e20, "weight_std": 1.0}
    with pytest.raises(ParameterError, match=r"lower learning_rate=1e\+20 or set loss='mean', which divides by the"):
        NeuralBrane(dim=4, seed=1, table_std=1.0, threads=1, **settings).fit(small_graph)


def test_a_score_of_vectors_too_long_is_told(small_graph):
    with pytest.raises(
        ParameterError, match=r"diverged in step \d+: .*score.* no longer hold numbers; lower length=1e\+20"
    ):
        NeuralBrane(dim=4, seed=1, epochs=1, length=1e20, threads=1).fit(small_graph)


def test_skip_gram_of_edges_is_told(small_graph):
    with pytest.raises(ParameterError, match=r"diverged in step 1 of 1: vectors .*; lower learning_rate=1e\+30"):
        PTE(dim=4, samples=1_000, learning_rate=1e30, seed=1).fit(small_graph)


def test_parts_that_overflow_are_told():
    matrix = sparse.csr_array(np.full((4, 3), 3e38, np.float32))
    with (
        np.errstate(all="ignore"),
        pytest.raises(ParameterError, match=r"in epoch 1: .*squares of H .*; scale the weights"),
    ):
        nnmf.factorise(matrix, 2, 3, 0, 1, Meter(None, 3, "steps"), Stages().stage("factors"))


@pytest.mark.parametrize("squares", [np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_equations_without_a_solution_are_told(squares):
    with pytest.raises(ParameterError, match=r"diverged in epoch 4: W .*; raise l2=0\.2, which keeps the equations"):
        TADW()._solve(squares, np.ones((5, 2)), 3)
