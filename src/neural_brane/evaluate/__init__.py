"""How good vectors are: the nodes' classes predicted from them, as the paper does it."""

from neural_brane.evaluate.classify import Classification, Score, classify
from neural_brane.evaluate.labelled import Labelled, match, read_truth
from neural_brane.evaluate.splits import random_splits

__all__ = ["Classification", "Labelled", "Score", "classify", "match", "random_splits", "read_truth"]
