"""What a training takes, before it begins: memory by part, time, and whether it fits."""

from neural_brane.estimation.result import Estimate, Several, estimate
from neural_brane.estimation.sources import Source, look_at

__all__ = ["Estimate", "Several", "Source", "estimate", "look_at"]
