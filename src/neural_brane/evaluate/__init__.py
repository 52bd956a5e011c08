"""Score vectors by classes, several labels, numbers, clusters, search and links, and map them to the plane."""

from neural_brane.evaluate.classify import (
    Classification,
    MultilabelClassification,
    NumberScore,
    Regression,
    Score,
    classify,
    classify_several,
    regress,
)
from neural_brane.evaluate.cluster import Clustering, cluster
from neural_brane.evaluate.labelled import Labelled, Repeats, Splits, match, random_splits
from neural_brane.evaluate.link import HeldOutEdges, LinkPrediction, hold_out_edges, predict_links
from neural_brane.evaluate.map import map_2d
from neural_brane.evaluate.retrieve import ListScore, Retrieval, retrieve

__all__ = [
    "Classification", "Clustering", "HeldOutEdges", "Labelled", "LinkPrediction", "ListScore",
    "MultilabelClassification", "NumberScore", "Regression", "Repeats", "Retrieval", "Score", "Splits", "classify",
    "classify_several", "cluster", "hold_out_edges", "map_2d", "match", "predict_links", "random_splits", "regress",
    "retrieve",
]  # fmt: skip
