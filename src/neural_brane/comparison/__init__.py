"""Methods trained on one graph, scored on the same splits, and ranked per task."""

from neural_brane.comparison.result import Comparison, Standing
from neural_brane.comparison.run import compare

__all__ = ["Comparison", "Standing", "compare"]
