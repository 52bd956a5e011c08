"""Settings for measuring the kernels: Neural-Brane with only its learned part, and the paper's schedule."""

ALONE = {"spectral_dim": 0, "centre": False, "length": 0.0}
SCHEDULE = ALONE | {"batch_size": 100, "batches_per_epoch": 1000, "epochs": 30, "tolerance": None}
