"""Named settings of Neural-Brane: the paper's text, the authors' released program, and our default.

The first two differ in every line below. Both draw i by edge weight, halve `dim` between attributes and neighbours,
start tables at N(0, 0.01²) and learn at rate 0.5 with λ = 5e-5 from batches of 100.

The default's vector has two parts, a spectral and a learned one. Its values were chosen on ten graphs with seeds that
no result is reported of (benchmarks/defaults.py).
"""

from typing import Any

_COMMON: dict[str, Any] = {
    "table_std": 0.01,
    "learning_rate": 0.5,
    "l2": 5e-5,
    "loss": "mean",
}
_LEARNED_ALONE: dict[str, Any] = {
    "batch_size": 100,
    "batches_per_epoch": 1000,
    "epochs": 30,
    "tolerance": None,
    "centre": False,
    "length": 0.0,
}

# The spectral part of dim, and the attributes' part of what is left.
SPECTRAL_SHARE = {"released": 0.0, "paper": 0.0, "default": 3 / 4}
ATTRIBUTE_SHARE = {"released": 1 / 2, "paper": 1 / 2, "default": 3 / 4}

RECIPES: dict[str, dict[str, Any]] = {
    # What the authors' program does, as opposed to what the paper says; it reproduces the paper's figures.
    "released": _COMMON
    | _LEARNED_ALONE
    | {
        "weight_std": 0.1,
        "bias": False,
        "regularise": "hidden",
        "negative_power": 0.75,
        "allow_self_negative": True,
        "zero_floor": True,
        "output": "released",
    },
    # What the paper says, but for one thing: it sums the loss over a batch, which diverges at its learning
    # rate, so the loss is a mean here. loss="sum" asks for the text to the letter.
    "paper": _COMMON
    | _LEARNED_ALONE
    | {
        "weight_std": 0.01,
        "bias": True,
        "regularise": "parameters",
        "negative_power": 1.0,
        "allow_self_negative": False,
        "zero_floor": False,
        "output": "pooled",
        "tolerance": 0.01,
    },
    # Batches and epochs follow the size of the graph (schedule.py).
    "default": _COMMON
    | {
        "weight_std": 0.1,
        "bias": False,
        "regularise": "hidden",
        "negative_power": 0.75,
        "allow_self_negative": False,
        "zero_floor": False,
        "output": "pooled",
        "tolerance": 0.02,
        "centre": True,
        "length": 5.0,
    },
}
