"""Cases that several ranks train; the program and its tests import them."""

from neural_brane import NeuralBrane, synthetic

STEPS, SEED = 20, 5
CASES = {
    "max": {"pooling": "max", "batch_size": 96, "learning_rate": 4.0},
    "sum": {"pooling": "sum", "batch_size": 96, "learning_rate": 0.1},
    "mean": {"pooling": "mean", "batch_size": 96, "learning_rate": 20.0},
    "large": {"pooling": "max", "batch_size": 1700},  # a rank's share is trained node by node at 1, 2 and 4 ranks
    "released": {"recipe": "released", "batch_size": 96, "learning_rate": 4.0},
    "paper": {"recipe": "paper", "batch_size": 96, "l2": 0.01, "weight_std": 0.1},
    "shrinking": {"recipe": "paper", "batch_size": 96, "l2": 0.06, "weight_std": 0.1},  # `fold` runs during training
    "uneven": {"pooling": "max", "batch_size": 97, "learning_rate": 4.0},
    "no attributes": {"attribute_dim": 0, "batch_size": 96, "learning_rate": 4.0},
    "attributes alone": {"attribute_dim": 24, "batch_size": 96, "learning_rate": 2.0},
}
# With a higher learning rate, rounding would decide which row wins a maximum, and the trainings would diverge.
LONG_STEPS = 300
LONG = {
    "long max": {"pooling": "max", "batch_size": 32, "learning_rate": 1.0},
    "long mean": {"pooling": "mean", "batch_size": 32, "learning_rate": 20.0},
    "long paper": {"recipe": "paper", "batch_size": 32, "learning_rate": 1.0, "l2": 0.0005, "weight_std": 0.1},
}


def graph():
    return synthetic(300, seed=2)


def settings_of(name):
    """Return the settings of a case for training the learned part only."""
    learned = {"spectral_dim": 0, "dim": 24, "table_std": 0.1, "length": 0.0, "centre": False} | (CASES | LONG)[name]
    return NeuralBrane(**learned).parameters_for(graph())
