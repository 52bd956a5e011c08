"""The score of a pair of nodes by the ReLU layer of the paper's model."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from neural_brane import Attributes, Embedding, NeuralBrane, load
from neural_brane.errors import EmbeddingError
from neural_brane.evaluate import hold_out_edges, predict_links
from neural_brane.kernels import reference

SHORT = {"recipe": "paper", "dim": 16, "seed": 0, "epochs": 4, "weight_std": 0.1}


@pytest.fixture(scope="module")
def held_out():
    return hold_out_edges(load("stdlib"), seed=1)


def auc(scores, held_out):
    return roc_auc_score(np.repeat([1, 0], len(held_out.positives)), scores)


def test_held_out_edges_score_higher(held_out):
    embedding = NeuralBrane(**SHORT).fit_transform(held_out.graph)
    pairs = held_out.graph.ids[np.concatenate([held_out.positives, held_out.negatives])]
    scores = embedding.score(pairs)
    assert auc(scores, held_out) > 0.75
    np.testing.assert_allclose(scores, embedding.score(pairs[:, ::-1]), rtol=1e-5)


def test_a_layer_folded_into_centred_vectors_scores_as_the_model_does(small_graph):
    model = NeuralBrane(dim=10, spectral_dim=0, length=0, epochs=2, batches_per_epoch=20, batch_size=30, seed=3).fit(
        small_graph
    )
    nodes = np.arange(len(small_graph))
    hidden = reference.hide(model.model_, reference.embed(model.model_, *model.bags_, nodes, model.kernel_settings_))
    expected = (hidden[0] * hidden[1:]).sum(axis=1)
    pairs = [(small_graph.ids[0], other) for other in small_graph.ids[1:]]
    np.testing.assert_allclose(model.embedding_.score(pairs), expected, rtol=1e-3, atol=1e-6)


def test_a_file_keeps_the_layer(held_out, tmp_path):
    embedding = NeuralBrane(**SHORT).fit_transform(held_out.graph)
    embedding.save(tmp_path / "v.npz")
    embedding.save(tmp_path / "v.tsv")
    pairs = [("json", "json.decoder"), ("json", "tkinter")]
    kept = Embedding.load(tmp_path / "v.npz")
    np.testing.assert_array_equal(kept.score(pairs), embedding.score(pairs))
    found = predict_links(kept, held_out)
    assert found.own_auc == pytest.approx(predict_links(embedding, held_out).own_auc)
    with pytest.raises(EmbeddingError, match="layer"):
        Embedding.load(tmp_path / "v.tsv").score(pairs)


def test_a_method_without_a_score_has_none(held_out):
    assert predict_links(Attributes(dim=8, seed=0).fit_transform(held_out.graph), held_out).own_auc is None


def test_unknown_nodes_and_odd_pairs_are_refused(small_graph):
    short = {"recipe": "paper", "epochs": 1, "batches_per_epoch": 2, "batch_size": 3}
    embedding = NeuralBrane(dim=10, seed=3, **short).fit_transform(small_graph)
    with pytest.raises(EmbeddingError, match="'zoe'"):
        embedding.score([("ann", "zoe")])
    with pytest.raises(EmbeddingError, match="pairs"):
        embedding.score(["ann", "bob"])
