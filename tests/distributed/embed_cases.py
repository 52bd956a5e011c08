"""What ranks embed from a folder of parts, for the program and for the tests that follow it."""

from neural_brane import synthetic

SHORT = {"epochs": 2, "batches_per_epoch": 10, "tolerance": None, "seed": 3}
CASES = {
    "default": {"dim": 32, "batch_size": 97, "learning_rate": 4.0, "score_steps": 0, **SHORT},
    "released": {"recipe": "released", "dim": 24, "batch_size": 96, "learning_rate": 2.0, **SHORT},
    "paper": {"recipe": "paper", "dim": 24, "batch_size": 96, "l2": 0.02, "weight_std": 0.1, **SHORT},
}
RESUMED = "paper"  # its tables have a common factor, which a checkpoint keeps as well
EVERY = 7  # steps between checkpoints, so that the last one of the first epoch is in the middle of it
GPU_CASES = ("max", "paper")  # of engine_cases.py
GPU_STEPS, GPU_BATCH = 3, 6  # Triton's interpreter takes milliseconds a program


def graph():
    return synthetic(300, seed=2)
