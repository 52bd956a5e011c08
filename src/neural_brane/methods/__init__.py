"""Every method by name; all of them turn an AttributedGraph into an Embedding under one contract."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from neural_brane.methods.base import Embedder

if TYPE_CHECKING:
    from neural_brane.methods.aane import AANE
    from neural_brane.methods.attributes import Attributes
    from neural_brane.methods.deepwalk import DeepWalk
    from neural_brane.methods.deepwalk_nnmf import DeepWalkNNMF
    from neural_brane.methods.graph2gauss import Graph2Gauss
    from neural_brane.methods.graphsage import GraphSAGE
    from neural_brane.methods.line import Line
    from neural_brane.methods.neural_brane.model import NeuralBrane
    from neural_brane.methods.nnmf import NNMF
    from neural_brane.methods.node2vec import Node2Vec
    from neural_brane.methods.propagated_attributes import PropagatedAttributes
    from neural_brane.methods.pte import PTE
    from neural_brane.methods.smoothed_attributes import SmoothedAttributes
    from neural_brane.methods.tadw import TADW

_TITLES = {
    "neural-brane": "NeuralBrane",
    "deepwalk": "DeepWalk",
    "line": "Line",
    "node2vec": "Node2Vec",
    "nnmf": "NNMF",
    "deepwalk+nnmf": "DeepWalkNNMF",
    "graphsage": "GraphSAGE",
    "pte": "PTE",
    "tadw": "TADW",
    "aane": "AANE",
    "graph2gauss": "Graph2Gauss",
    "attributes": "Attributes",
    "smoothed-attributes": "SmoothedAttributes",
    "propagated-attributes": "PropagatedAttributes",
}
_HOME = {
    "NeuralBrane": "neural_brane",
    "DeepWalk": "deepwalk",
    "Line": "line",
    "Node2Vec": "node2vec",
    "NNMF": "nnmf",
    "DeepWalkNNMF": "deepwalk_nnmf",
    "GraphSAGE": "graphsage",
    "PTE": "pte",
    "TADW": "tadw",
    "AANE": "aane",
    "Graph2Gauss": "graph2gauss",
    "Attributes": "attributes",
    "SmoothedAttributes": "smoothed_attributes",
    "PropagatedAttributes": "propagated_attributes",
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


def __getattr__(name: str) -> Any:
    """Import a method when it is first used: none needs the packages of another."""
    if name not in _HOME:
        raise AttributeError(f"module 'neural_brane.methods' has no attribute {name!r}")
    return getattr(import_module(f"neural_brane.methods.{_HOME[name]}"), name)


class _Methods(Mapping[str, type[Embedder]]):
    """The methods by title, in the order they are listed; each is imported when it is looked up."""

    def __getitem__(self, title: str) -> type[Embedder]:
        method: type[Embedder] = __getattr__(_TITLES[title])
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(_TITLES)

    def __len__(self) -> int:
        return len(_TITLES)


METHODS = _Methods()
