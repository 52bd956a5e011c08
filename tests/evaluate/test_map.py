import matplotlib.image
import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate import map, map_2d


@pytest.fixture(scope="module")
def clouds():
    """Two distant clouds of thirty nodes each."""
    rng = np.random.default_rng(0)
    return np.repeat([[1, 0, 0, 0], [0, 1, 0, 0]], 30, axis=0) + 0.05 * rng.normal(size=(60, 4))


@pytest.mark.parametrize("how", ["tsne", "pca"])
def test_clouds_stay_separate_and_the_map_is_reproducible(how, clouds):
    points = map_2d(clouds, how=how)
    left, right = points[:30], points[30:]
    apart = np.linalg.norm(left.mean(axis=0) - right.mean(axis=0))
    assert points.shape == (60, 2)
    assert points.dtype == np.float32
    assert apart > 2 * max(left.std(axis=0).max(), right.std(axis=0).max())
    np.testing.assert_array_equal(points, map_2d(clouds, how=how))


def test_an_embedding_is_mapped_like_its_vectors(clouds):
    embedding = Embedding(clouds, range(60))
    np.testing.assert_array_equal(map_2d(embedding, how="pca"), map_2d(embedding.vectors, how="pca"))


def test_pca_is_the_two_main_axes(clouds):
    directions = clouds / np.linalg.norm(clouds, axis=1, keepdims=True)
    centred = directions - directions.mean(axis=0)
    lengths = np.linalg.svd(centred, compute_uv=False)[:2]
    np.testing.assert_allclose(np.linalg.norm(map_2d(clouds, how="pca"), axis=0), lengths, rtol=1e-4)


def test_equal_vectors_become_one_point():
    assert not map_2d(np.ones((9, 3))).any()


def test_invalid_vectors_are_described():
    with pytest.raises(EmbeddingError, match="five nodes and two dimensions"):
        map_2d(np.eye(4))
    with pytest.raises(EmbeddingError, match=r"9.*9 vectors"):
        map_2d(np.full((9, 2), np.nan))
    with pytest.raises(ParameterError, match=r"how='umap'.*'pca'"):
        map_2d(np.eye(6), how="umap")


@pytest.fixture(scope="module")
def embedded(clouds):
    return Embedding(clouds, [f"node{i}" for i in range(60)])


def test_a_picture_shows_each_class_in_its_colour(embedded, tmp_path):
    labels = np.repeat(["text", "net"], 30)
    labels[0] = ""
    map.plot(embedded, tmp_path / "p.png", labels=labels, names=["node3"], title="clouds")
    image = matplotlib.image.imread(tmp_path / "p.png")[:, :, :3]
    assert image.shape == (1050, 1500, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["p.png"]
    # Dots have an opacity of 85 % on white.
    for colour in map.COLOURS[:2]:
        rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        assert (np.abs(image - (0.85 * rgb + 0.15)).max(axis=2) < 0.02).sum() > 100
    assert (np.abs(image - (0.85 * 0xBB / 255 + 0.15)).max(axis=2) < 0.02).sum() > 10


def test_many_nodes_are_sampled_and_named_ones_kept():
    rows = map.sample_rows(1000, np.array([999, 0]), seed=0, most=20)
    assert 20 <= len(rows) <= 22
    assert {0, 999} <= set(rows.tolist())
    assert map.sample_rows(20, np.array([3]), seed=0, most=20).tolist() == list(range(20))


def test_more_classes_than_names_share_one_grey_entry():
    rng = np.random.default_rng(0)
    labels = np.array([f"class {i % 30}" for i in range(90)])
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    map.draw_dots(axes, rng.normal(size=(90, 2)), labels)
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert len(texts) == map.NAMED + 1
    assert texts[0] == "10 more classes"


def test_invalid_input_of_a_picture_is_described(embedded, tmp_path):
    with pytest.raises(EmbeddingError, match="five nodes and two dimensions"):
        map.plot(Embedding(np.eye(4), range(4)), tmp_path / "p.png")
    with pytest.raises(EmbeddingError, match="NaN"):
        map.plot(Embedding(np.full((9, 2), np.nan), range(9)), tmp_path / "p.png")
    with pytest.raises(EmbeddingError, match=r"labels.*\(1,\).*vectors"):
        map.plot(embedded, tmp_path / "p.png", labels=np.array(["a"]))
    with pytest.raises(EmbeddingError, match=r"p\.jpg.*format"):
        map.plot(embedded, tmp_path / "p.jpg")
    with pytest.raises(EmbeddingError, match="no node 'nobody' here"):
        map.plot(embedded, tmp_path / "p.png", names=["nobody"])
    assert list(tmp_path.iterdir()) == []
