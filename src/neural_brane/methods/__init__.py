"""Every method by name; all of them turn an AttributedGraph into an Embedding under one contract."""

from neural_brane.methods.attributes import Attributes
from neural_brane.methods.base import Embedder
from neural_brane.methods.deepwalk import DeepWalk
from neural_brane.methods.line import Line
from neural_brane.methods.neural_brane import NeuralBrane
from neural_brane.methods.node2vec import Node2Vec
from neural_brane.methods.pte import PTE

METHODS: dict[str, type[Embedder]] = {
    method.title: method for method in (NeuralBrane, Attributes, DeepWalk, Node2Vec, Line, PTE)
}

__all__ = ["METHODS", "PTE", "Attributes", "DeepWalk", "Embedder", "Line", "NeuralBrane", "Node2Vec"]
