"""Every method by name; all of them turn an AttributedGraph into an Embedding under one contract.

A method is registered by one line below. It is imported when it is first looked up: no method needs the packages of
another, and none is needed to show help.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from neural_brane.errors import ParameterError

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
    "lane": "lane.LANE",
    "tridnr": "tridnr.TriDNR",
    "hne": "hne.HNE",
    "ep": "ep.EP",
    "upp-sne": "upp_sne.UPPSNE",
    "grarep": "grarep.GraRep",
    "sdne": "sdne.SDNE",
    "dngr": "dngr.DNGR",
    "fastrp": "fastrp.FastRP",
    "prone": "prone.ProNE",
    "pane": "pane.PANE",
    "dgi": "dgi.DGI",
    "cca-ssg": "cca_ssg.CCASSG",
    "graphmae": "graphmae.GraphMAE",
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


def find_method(name: str) -> type[Embedder]:
    """The class of a method by its name; where there is none, the error names the likeliest one."""
    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise ParameterError(f"method '{name}' is unknown{hint}; choose one of {', '.join(METHODS)}")
    return METHODS[name]


def untrainable() -> list[str]:
    """The methods whose optional package is not installed."""
    extras = {name: method.extra for name, method in METHODS.items()}
    return [name for name, extra in extras.items() if extra is not None and find_spec(extra) is None]


def __getattr__(name: str) -> Any:
    if name not in CLASSES:
        raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
    return METHODS[CLASSES[name]]
