"""The named tuples that a model file may hold, by the names it has for them.

A method that learns a named tuple of its own adds one line. Nothing else that a file names is looked for, so a file
cannot make the program import or call anything.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

# The name in files, and where the class is: module.Class within this package. Names stay as they are once written.
TYPES = {
    "vectors": "methods.fitted.Vectors",
    "decomposition": "methods._spectral.Decomposition",
    "nnmf parts": "methods.nnmf.Parts",
    "tadw factors": "methods.tadw.Factors",
    "pane factors": "methods.pane.Factors",
    "hne": "methods.hne.Learned",
    "graphsage": "methods.graphsage.Learned",
    "graphsage weights": "methods.graphsage.Weights",
    "graph2gauss": "methods.graph2gauss.Learned",
    "graph2gauss weights": "methods.graph2gauss.Weights",
    "convolution": "methods._convolution.Learned",
    "dgi weights": "methods.dgi.Weights",
    "cca-ssg weights": "methods.cca_ssg.Weights",
    "graphmae weights": "methods.graphmae.Weights",
    "sdne": "methods.sdne.Learned",
    "dngr": "methods.dngr.Learned",
    "encoder of rows": "methods._autoencoder.Encoder",
    "ep": "methods.ep.Learned",
    "upp-sne": "methods.upp_sne.Learned",
    "neural-brane": "methods.neural_brane.model.Learned",
    "learned part": "methods.neural_brane.parts.LearnedPart",
    "joint": "methods.neural_brane.parts.Joint",
    "layer": "layer.Layer",
    "model": "kernels.model.Model",
    "bags": "kernels.model.Bags",
    "settings": "kernels.model.Settings",
}
_NAMES = {place: name for name, place in TYPES.items()}


@cache
def find_type(name: str) -> Any:
    """The class that files call so; KeyError where there is none."""
    module, _, kind = TYPES[name].rpartition(".")
    return getattr(import_module(f"neural_brane.{module}"), kind)


def name_of(kind: type) -> str | None:
    """What files call a class; None where they know none."""
    return _NAMES.get(f"{kind.__module__}.{kind.__qualname__}".removeprefix("neural_brane."))
