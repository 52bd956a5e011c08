import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import DependencyError, EmbeddingError, ParameterError
from neural_brane.evaluate.map import map_2d
from neural_brane.explore import layout
from neural_brane.explore.layout import KeptLayout, fit_square, pca, read_layout, tsne
from neural_brane.explore.opening import check_tsne, kept_tsne, lay_out
from neural_brane.explore.view import Run


def blobs(nodes=120, dim=8, groups=3):
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(groups, dim))
    of = np.arange(nodes) % groups
    return (centres[of] + 0.1 * rng.normal(size=(nodes, dim))).astype(np.float32), of


def test_pca_is_that_of_the_library_but_for_signs():
    vectors, _ = blobs()
    ours, theirs = pca(vectors), map_2d(vectors, how="pca")
    for axis in range(2):
        assert abs(np.corrcoef(ours[:, axis], theirs[:, axis])[0, 1]) > 0.9999
        np.testing.assert_allclose(np.abs(ours[:, axis]), np.abs(theirs[:, axis]), atol=1e-4)


def test_pca_from_some_of_the_vectors_is_nearly_the_same():
    vectors, _ = blobs(3000)
    some = pca(vectors, sample=1000)
    assert np.corrcoef(pca(vectors)[:, 0], some[:, 0])[0, 1] > 0.99
    assert some.tobytes() == pca(vectors, sample=1000).tobytes()


@pytest.mark.parametrize("vectors", [np.zeros((4, 3)), np.ones((1, 3)), np.ones((5, 1)), np.zeros((0, 2))])
def test_pca_of_what_has_no_two_axes_is_finite(vectors):
    points = pca(vectors.astype(np.float32))
    assert points.shape == (len(vectors), 2)
    assert np.isfinite(points).all()


def test_tsne_keeps_groups_together_and_gives_the_same_bits_again():
    pytest.importorskip("openTSNE")
    vectors, of = blobs()
    reports = []
    points = tsne(vectors, seed=3, progress=reports.append)
    assert points.tobytes() == tsne(vectors, seed=3).tobytes()
    distances = np.linalg.norm(points[:, None] - points[None], axis=2) + 1e9 * np.eye(len(points))
    assert (of[distances.argmin(axis=1)] == of).all()
    assert {report.stage for report in reports} == {"nearest nodes", "t-SNE"}
    assert reports[-1].done == reports[-1].total == layout.EARLY + layout.LATE


@pytest.mark.parametrize("nodes", [1, 3, 5, 8])
def test_tsne_of_very_few_nodes(nodes):
    pytest.importorskip("openTSNE")
    assert np.isfinite(tsne(blobs(nodes)[0])).all()


def test_a_map_is_kept_for_its_vectors_and_seed_alone(tmp_path):
    vectors, _ = blobs()
    kept = KeptLayout(tmp_path / "v.npz", vectors, 0)
    assert kept.read() is None
    points = np.arange(240, dtype=np.float32).reshape(120, 2)
    assert kept.write(points)
    np.testing.assert_array_equal(KeptLayout(tmp_path / "v.npz", vectors, 0).read(), points)
    assert KeptLayout(tmp_path / "v.npz", vectors, 1).read() is None
    assert KeptLayout(tmp_path / "v.npz", vectors + 1, 0).read() is None
    kept.path.write_bytes(b"damaged")
    assert kept.read() is None


def test_a_kept_map_is_not_made_again(tmp_path, monkeypatch):
    vectors, _ = blobs()
    run = Run("v", vectors, path=tmp_path / "v.npz")
    made = []
    monkeypatch.setattr("neural_brane.explore.opening.tsne", lambda *_, **__: made.append(1) or pca(vectors))
    first, again = kept_tsne(run), kept_tsne(run)
    np.testing.assert_array_equal(first, again)
    assert made == [1]


def test_tsne_without_its_package_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openTSNE", None)
    with pytest.raises(DependencyError, match=r"neural-brane\[map\]"):
        tsne(blobs()[0])


def test_tsne_of_too_many_nodes_is_refused_before_the_work():
    pytest.importorskip("openTSNE")
    with pytest.raises(ParameterError, match="would take hours"):
        check_tsne(5_000_000)


def test_a_map_from_a_file_is_matched_by_id(tmp_path, small_view):
    ids = small_view.nodes.ids
    places = np.arange(2 * len(ids), dtype=np.float32).reshape(-1, 2)
    Embedding(places[::-1], ids[::-1].copy()).save(tmp_path / "umap.tsv")
    np.testing.assert_array_equal(read_layout(tmp_path / "umap.tsv", ids), places)
    lay_out(small_view, str(tmp_path / "umap.tsv"))
    assert list(small_view.runs[0].points) == ["pca", "umap"]
    Embedding(places[1:], ids[1:]).save(tmp_path / "short.tsv")
    with pytest.raises(EmbeddingError, match=r"1.*12 nodes.*'leo'"):
        read_layout(tmp_path / "short.tsv", ids)
    Embedding(np.zeros((12, 3)), ids).save(tmp_path / "wide.tsv")
    with pytest.raises(EmbeddingError, match="two numbers for each node"):
        read_layout(tmp_path / "wide.tsv", ids)


def test_points_fit_the_square_and_outliers_come_to_its_edge():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20_000, 2)) * (3, 1)
    points[7] = (1e9, 0)
    fitted = fit_square(points)
    assert np.abs(fitted).max() <= 1
    assert np.ptp(fitted[:, 0]) > 2 * np.ptp(fitted[np.arange(20_000) != 7, 1]) > 0.3
    assert (fit_square(np.ones((3, 2))) == 0).all()
