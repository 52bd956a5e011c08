"""Every method by name; all of them turn an AttributedGraph into an Embedding under one contract."""

from neural_brane.methods.aane import AANE
from neural_brane.methods.attributes import Attributes
from neural_brane.methods.base import Embedder
from neural_brane.methods.deepwalk import DeepWalk
from neural_brane.methods.deepwalk_nnmf import DeepWalkNNMF
from neural_brane.methods.graph2gauss import Graph2Gauss
from neural_brane.methods.graphsage import GraphSAGE
from neural_brane.methods.line import Line
from neural_brane.methods.neural_brane import NeuralBrane
from neural_brane.methods.nnmf import NNMF
from neural_brane.methods.node2vec import Node2Vec
from neural_brane.methods.propagated_attributes import PropagatedAttributes
from neural_brane.methods.pte import PTE
from neural_brane.methods.smoothed_attributes import SmoothedAttributes
from neural_brane.methods.tadw import TADW

METHODS: dict[str, type[Embedder]] = {
    method.title: method
    for method in (
        NeuralBrane,
        DeepWalk,
        Line,
        Node2Vec,
        NNMF,
        DeepWalkNNMF,
        GraphSAGE,
        PTE,
        TADW,
        AANE,
        Graph2Gauss,
        Attributes,
        SmoothedAttributes,
        PropagatedAttributes,
    )
}

__all__ = [
    "AANE",
    "METHODS",
    "NNMF",
    "PTE",
    "TADW",
    "Attributes",
    "DeepWalk",
    "DeepWalkNNMF",
    "Embedder",
    "Graph2Gauss",
    "GraphSAGE",
    "Line",
    "NeuralBrane",
    "Node2Vec",
    "PropagatedAttributes",
    "SmoothedAttributes",
]
