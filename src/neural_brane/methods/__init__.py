"""Every method by name; all of them turn an AttributedGraph into an Embedding under one contract.

A method is registered by one line below. It is imported when it is first looked up: no method needs the packages of
another, and none is needed to show help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

# The name on the command line, and where the class is: module.Class within this package.
REGISTERED = {
    "neural-brane": "neural_brane.NeuralBrane",
    "deepwalk": "deepwalk.DeepWalk",
    "line": "line.Line",
    "node2vec": "node2vec.Node2Vec",
    "nnmf": "nnmf.NNMF",
    "deepwalk+nnmf": "deepwalk_nnmf.DeepWalkNNMF",
    "graphsage": "graphsage.GraphSAGE",
    "pte": "pte.PTE",
    "tadw": "tadw.TADW",
    "aane": "aane.AANE",
    "graph2gauss": "graph2gauss.Graph2Gauss",
    "attributes": "attributes.Attributes",
    "smoothed-attributes": "smoothed_attributes.SmoothedAttributes",
    "propagated-attributes": "propagated_attributes.PropagatedAttributes",
}
CLASSES = {place.rpartition(".")[2]: title for title, place in REGISTERED.items()}

__all__ = ["METHODS", *sorted(CLASSES)]


class Methods(Mapping[str, "type[Embedder]"]):
    """The registered methods by name, in the order they are listed."""

    def __getitem__(self, title: str) -> type[Embedder]:
        module, _, name = REGISTERED[title].rpartition(".")
        method: type[Embedder] = getattr(import_module(f"{__name__}.{module}"), name)
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(REGISTERED)

    def __len__(self) -> int:
        return len(REGISTERED)


METHODS = Methods()


def __getattr__(name: str) -> Any:
    if name not in CLASSES:
        raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
    return METHODS[CLASSES[name]]
