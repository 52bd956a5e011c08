"""The loss of a triplet, −ln σ(margin), and its slope, without overflow at any margin.

The margin is s(u, i) − s(u, j). Both functions take `decay` = e^−|margin|, which is at most one.
"""

import triton
import triton.language as tl


@triton.jit
def slopes_of(margin, decay, scale):
    """The derivative of −scale · ln σ by the margin."""
    return -scale * tl.where(margin > 0, decay, 1.0) / (1 + decay)


@triton.jit
def losses_of(margin, decay):
    """−ln σ of the margins."""
    # ln(1 + decay); for a small decay by its series, because 1 + decay loses digits.
    tail = tl.where(decay < 1e-3, decay * (1 - 0.5 * decay), tl.log(1 + decay))
    return tl.maximum(-margin, 0.0) + tail
