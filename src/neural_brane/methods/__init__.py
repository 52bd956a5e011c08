"""Every method by name; all of them turn an AttributedGraph into an Embedding under one contract."""

from neural_brane.methods.attributes import Attributes
from neural_brane.methods.base import Embedder
from neural_brane.methods.neural_brane import NeuralBrane

METHODS: dict[str, type[Embedder]] = {method.title: method for method in (NeuralBrane, Attributes)}

__all__ = ["METHODS", "Attributes", "Embedder", "NeuralBrane"]
