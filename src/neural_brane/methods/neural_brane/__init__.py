"""Neural-Brane: its model, its recipes and the devices it trains on."""

from neural_brane.methods.neural_brane.model import NeuralBrane

__all__ = ["NeuralBrane"]
