"""Methods compared on one graph: the same splits for all, ranked per task, with what each of them costs."""

from neural_brane.comparison.result import Comparison, Standing
from neural_brane.comparison.run import SHORT_LIST, compare
from neural_brane.comparison.tasks import TASKS, Task

__all__ = ["SHORT_LIST", "TASKS", "Comparison", "Standing", "Task", "compare"]
