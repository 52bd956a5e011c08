import numpy as np

from neural_brane import load
from neural_brane.embedding import Embedding
from neural_brane.experiments.compute import Outcome, score


def test_vectors_that_tell_the_classes_apart_have_the_best_scores():
    graph = load("stdlib")
    names, target = np.unique(graph.labels, return_inverse=True)
    embedding = Embedding(np.eye(len(names), dtype=np.float32)[target] * 10, graph.ids)
    scoring = {"classes": {"train": [0.7], "splits": 1}, "clusters": {"starts": 1}}
    record = score(Outcome(embedding), graph, scoring, seed=0)
    assert record["micro_f1"] == {"0.7": [1.0]}
    assert record.keys() == {"macro_f1", "micro_f1", "nmi", "purity", "ari"}
    assert score(Outcome(embedding), graph, {"map": False}, seed=0) == {}
