"""The state of a training on disk, so that one that was stopped goes on where it was and ends with the same vectors."""

from neural_brane.checkpoint.checkpoint import Checkpoint, is_finite, kept_seed
from neural_brane.checkpoint.identity import identify
from neural_brane.checkpoint.stages import Stage, Stages

__all__ = ["Checkpoint", "Stage", "Stages", "identify", "is_finite", "kept_seed"]
