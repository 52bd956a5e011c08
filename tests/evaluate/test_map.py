import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate import map_2d


@pytest.fixture(scope="module")
def clouds():
    """Two far clouds of thirty nodes each."""
    rng = np.random.default_rng(0)
    return np.repeat([[1, 0, 0, 0], [0, 1, 0, 0]], 30, axis=0) + 0.05 * rng.normal(size=(60, 4))


@pytest.mark.parametrize("how", ["tsne", "pca"])
def test_clouds_stay_apart_and_the_map_can_be_made_again(how, clouds):
    points = map_2d(clouds, how=how)
    left, right = points[:30], points[30:]
    apart = np.linalg.norm(left.mean(axis=0) - right.mean(axis=0))
    assert points.shape == (60, 2)
    assert points.dtype == np.float32
    assert apart > 2 * max(left.std(axis=0).max(), right.std(axis=0).max())
    np.testing.assert_array_equal(points, map_2d(clouds, how=how))


def test_an_embedding_is_taken_as_its_vectors(clouds):
    embedding = Embedding(clouds, range(60))
    np.testing.assert_array_equal(map_2d(embedding, how="pca"), map_2d(embedding.vectors, how="pca"))


def test_pca_is_the_two_main_axes(clouds):
    directions = clouds / np.linalg.norm(clouds, axis=1, keepdims=True)
    centred = directions - directions.mean(axis=0)
    lengths = np.linalg.svd(centred, compute_uv=False)[:2]
    np.testing.assert_allclose(np.linalg.norm(map_2d(clouds, how="pca"), axis=0), lengths, rtol=1e-4)


def test_vectors_all_alike_lie_in_one_place():
    assert not map_2d(np.ones((9, 3))).any()


def test_what_cannot_be_laid_out_is_described():
    with pytest.raises(EmbeddingError, match="five nodes and two dimensions"):
        map_2d(np.eye(4))
    with pytest.raises(EmbeddingError, match="9 of 9 vectors hold NaN"):
        map_2d(np.full((9, 2), np.nan))
    with pytest.raises(ParameterError, match="how='umap' makes no sense"):
        map_2d(np.eye(6), how="umap")
