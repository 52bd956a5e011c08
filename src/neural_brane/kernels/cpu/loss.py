"""The loss of one triplet, and its slope, by the margin h_u · (h_i − h_j)."""

import numpy as np

from neural_brane.kernels.cpu.compiled import inlined


@inlined
def score_margin(margin, settings):
    """−ln σ(margin), and the slope of the batch's loss by this margin as a float32."""
    decay = np.exp(-abs(np.float64(margin)))
    loss = np.log1p(decay) + max(-np.float64(margin), 0.0)
    return loss, np.float32(-settings.triplet_scale * (decay if margin > 0 else 1.0) / (1 + decay))
