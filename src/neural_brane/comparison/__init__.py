"""Methods compared on one graph: the same splits for all, ranked per task, with what each of them costs."""

from neural_brane.comparison.result import Comparison, Standing
from neural_brane.comparison.run import compare

__all__ = ["Comparison", "Standing", "compare"]
