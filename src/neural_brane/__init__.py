"""Attributed network embedding: one vector per node, from its links and its attributes.

>>> from neural_brane import NeuralBrane, load
>>> embedding = NeuralBrane(dim=16, epochs=1, seed=0).fit_transform(load("stdlib"))
>>> len(embedding.nearest("json", k=3))
3
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from neural_brane.datasets import load, read, synthetic
    from neural_brane.embedding import Embedding
    from neural_brane.errors import BraneError
    from neural_brane.evaluate.classify import classify
    from neural_brane.graph import AttributedGraph
    from neural_brane.methods import (
        AANE,
        METHODS,
        NNMF,
        PTE,
        TADW,
        Attributes,
        DeepWalk,
        DeepWalkNNMF,
        Graph2Gauss,
        GraphSAGE,
        Line,
        NeuralBrane,
        Node2Vec,
        PropagatedAttributes,
        SmoothedAttributes,
    )

__all__ = [
    "AANE",
    "METHODS",
    "NNMF",
    "PTE",
    "TADW",
    "AttributedGraph",
    "Attributes",
    "BraneError",
    "DeepWalk",
    "DeepWalkNNMF",
    "Embedding",
    "Graph2Gauss",
    "GraphSAGE",
    "Line",
    "NeuralBrane",
    "Node2Vec",
    "PropagatedAttributes",
    "SmoothedAttributes",
    "classify",
    "load",
    "read",
    "synthetic",
]

_HOME = {
    "load": "datasets", "read": "datasets", "synthetic": "datasets", "Embedding": "embedding", "BraneError": "errors",
    "classify": "evaluate", "AttributedGraph": "graph", "METHODS": "methods", "Attributes": "methods",
    "NeuralBrane": "methods", "DeepWalk": "methods", "Node2Vec": "methods", "Line": "methods", "PTE": "methods",
    "AANE": "methods", "DeepWalkNNMF": "methods", "NNMF": "methods", "PropagatedAttributes": "methods",
    "SmoothedAttributes": "methods", "TADW": "methods",
    "GraphSAGE": "methods", "Graph2Gauss": "methods",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import neural_brane` and `brane --help` stay quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'neural_brane' has no attribute {name!r}")
    return getattr(import_module(f"neural_brane.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
