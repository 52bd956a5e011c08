"""Sampled neighbours, under the old name of the module."""

from neural_brane.sampling.neighbours import renumber as number  # old name until methods follow
from neural_brane.sampling.neighbours import sample_neighbours

__all__ = ["number", "sample_neighbours"]
