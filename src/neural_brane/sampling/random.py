"""Counter-based random numbers: each depends on a seed and a counter alone, not on earlier draws or on threads."""

import numpy as np

from neural_brane.compiling import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)


@njit
def stream(seed, index):
    """The starting state of stream `index` of a seed: streams of neighbouring indices are unrelated."""
    return _mix(np.uint64(seed) ^ _mix(np.uint64(index) + _STEP))


@njit
def advance(state):
    """The next state of a stream (SplitMix64)."""
    return state + _STEP


@njit
def uniform(state):
    """A float64 in [0, 1) from a state."""
    return (_mix(state) >> np.uint64(11)) * 2.0**-53


@njit
def _mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
