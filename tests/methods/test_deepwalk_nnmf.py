import numpy as np
import pytest

from neural_brane import NNMF, DeepWalk, DeepWalkNNMF
from neural_brane.errors import ParameterError

GOLDEN = [25.74512, 11.26874]
QUICK = {"walks_per_node": 2, "walk_length": 10, "learning_rate": 0.1}


def test_it_is_both_side_by_side(small_graph):
    both = DeepWalkNNMF(dim=7, nnmf_epochs=30, seed=3, **QUICK).fit_transform(small_graph).vectors
    np.testing.assert_array_equal(both[:, :3], DeepWalk(dim=3, seed=3, **QUICK).fit_transform(small_graph).vectors)
    np.testing.assert_array_equal(both[:, 3:], NNMF(dim=4, epochs=30, seed=3).fit_transform(small_graph).vectors)


def test_progress_is_that_of_the_whole(small_graph):
    seen = []
    DeepWalkNNMF(dim=4, nnmf_epochs=30, seed=3, progress=seen.append, **QUICK).fit(small_graph)
    assert (seen[-1].epoch, seen[-1].done, seen[-1].total, seen[-1].unit) == (2, 100, 100, "percent")
    assert 50 in [progress.done for progress in seen if progress.epoch == 1]
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)


def test_golden_value(small_graph):
    vectors = DeepWalkNNMF(dim=4, seed=0, **QUICK).fit_transform(small_graph).vectors
    assert np.abs(vectors[:, :2]).sum() == pytest.approx(GOLDEN[0], rel=1e-3)
    assert np.abs(vectors[:, 2:]).sum() == pytest.approx(GOLDEN[1], rel=1e-3)


def test_there_must_be_a_number_for_each_of_the_two(small_graph):
    with pytest.raises(ParameterError, match="dim=1 makes no sense; give 2 or more"):
        DeepWalkNNMF(dim=1).fit(small_graph)
