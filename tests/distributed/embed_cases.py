"""Cases that ranks embed from a folder of shards; the program and its tests import them."""

from neural_brane import synthetic

SHORT = {"epochs": 2, "batches_per_epoch": 10, "tolerance": None, "seed": 3}
CASES = {
    "default": {"dim": 32, "batch_size": 97, "learning_rate": 4.0, **SHORT},
    "released": {"recipe": "released", "dim": 24, "batch_size": 96, "learning_rate": 2.0, **SHORT},
    "paper": {"recipe": "paper", "dim": 24, "batch_size": 96, "l2": 0.02, "weight_std": 0.1, **SHORT},
}
RESUMED = "paper"  # its tables have a common scale, which a checkpoint must save too
EVERY = 7  # steps between checkpoints; not a divisor of an epoch, so that a run resumes in the middle of one
GPU_CASES = ("max", "paper")  # from engine_cases.py
GPU_STEPS, GPU_BATCH = 3, 6  # small, because Triton's interpreter is slow


def graph():
    return synthetic(300, seed=2)
