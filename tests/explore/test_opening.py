import numpy as np
import pytest

from neural_brane.explore import opening
from neural_brane.explore.layout import pca
from neural_brane.explore.opening import Making
from neural_brane.progress import Progress


@pytest.fixture
def slow_tsne(monkeypatch):
    """Replace t-SNE by a quick function that reports once; return the list of its reports."""
    reports = []

    def make(vectors, *, seed=0, progress=None):
        step = Progress(1, 1, 30, 60, None, 1.0, "iterations")
        reports.append(step)
        progress(step)
        return pca(vectors) + seed

    monkeypatch.setattr(opening, "tsne", make)
    return reports


def test_a_map_in_the_making_is_added_when_it_is_ready(small_view, slow_tsne):
    states = []
    making = Making(small_view, seed=1, report=lambda _: states.append(making.state()))
    assert making.state()["share"] == 0
    making.start()
    making.thread.join()
    assert states == [{"layout": "tsne", "words": "small: 30 of 60 iterations", "share": 0.5}]
    assert making.state() is None
    assert list(small_view.runs[0].points) == ["pca", "tsne"]
    np.testing.assert_allclose(small_view.points(0, "tsne"), small_view.points(0, "pca"), atol=1e-5)


def test_a_map_that_cannot_be_made_leaves_the_first_and_says_why(small_view, monkeypatch):
    monkeypatch.setattr(opening, "tsne", lambda *_, **__: 1 / 0)
    making = Making(small_view)
    making.start()
    making.thread.join()
    assert "division by zero" in making.state()["failed"]
    assert list(small_view.runs[0].points) == ["pca"]


def test_a_map_in_the_making_can_be_left_off(small_view, slow_tsne):
    making = Making(small_view)
    making.stop()
    making.start()
    making.thread.join()
    assert len(slow_tsne) == 1
    assert list(small_view.runs[0].points) == ["pca"]
