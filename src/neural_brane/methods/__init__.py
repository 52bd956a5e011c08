"""Every method by name; all of them turn an AttributedGraph into an Embedding under one contract."""

from neural_brane.methods.attributes import Attributes
from neural_brane.methods.base import Embedder
from neural_brane.methods.deepwalk import DeepWalk
from neural_brane.methods.graph2gauss import Graph2Gauss
from neural_brane.methods.graphsage import GraphSAGE
from neural_brane.methods.line import Line
from neural_brane.methods.neural_brane import NeuralBrane
from neural_brane.methods.node2vec import Node2Vec
from neural_brane.methods.pte import PTE

METHODS: dict[str, type[Embedder]] = {
    method.title: method for method in (NeuralBrane, Attributes, DeepWalk, Node2Vec, Line, PTE, GraphSAGE, Graph2Gauss)
}

__all__ = [
    "METHODS",
    "PTE",
    "Attributes",
    "DeepWalk",
    "Embedder",
    "Graph2Gauss",
    "GraphSAGE",
    "Line",
    "NeuralBrane",
    "Node2Vec",
]
