"""How good vectors are: classification, clustering and link prediction; and a map to look at."""

from neural_brane.evaluate.classify import Classification, Score, classify
from neural_brane.evaluate.cluster import Clustering, cluster
from neural_brane.evaluate.held_out import HeldOutEdges, hold_out_edges
from neural_brane.evaluate.labelled import Labelled, match
from neural_brane.evaluate.link import LinkPrediction, predict_links
from neural_brane.evaluate.map import map_2d
from neural_brane.evaluate.repeats import Repeats
from neural_brane.evaluate.splits import Splits, random_splits

__all__ = [
    "Classification",
    "Clustering",
    "HeldOutEdges",
    "Labelled",
    "LinkPrediction",
    "Repeats",
    "Score",
    "Splits",
    "classify",
    "cluster",
    "hold_out_edges",
    "map_2d",
    "match",
    "predict_links",
    "random_splits",
]
