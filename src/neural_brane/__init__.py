"""Attributed network embedding: one vector per node, from its links and its attributes.

>>> from neural_brane import NeuralBrane, load
>>> embedding = NeuralBrane(dim=16, epochs=1, seed=0).fit_transform(load("stdlib"))
>>> len(embedding.nearest("json", k=3))
3
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neural_brane import methods as _methods
from neural_brane import writers as _writers

if TYPE_CHECKING:
    from neural_brane.comparison import Comparison, compare
    from neural_brane.datasets import load, read, synthetic
    from neural_brane.embedding import Embedding
    from neural_brane.errors import BraneError
    from neural_brane.estimation import estimate
    from neural_brane.evaluate import classify
    from neural_brane.graph import AttributedGraph
    from neural_brane.models import load_model
    from neural_brane.scikit_learn import NodeEmbedder, link_scorer

__version__ = "0.1.0"

_HOME = {
    "AttributedGraph": "graph",
    "BraneError": "errors",
    "Comparison": "comparison",
    "Embedding": "embedding",
    "NodeEmbedder": "scikit_learn",
    "classify": "evaluate",
    "compare": "comparison",
    "estimate": "estimation",
    "link_scorer": "scikit_learn",
    "load": "datasets",
    "load_model": "models",
    "read": "datasets",
    "synthetic": "datasets",
} | dict.fromkeys(_methods.__all__, "methods")

__all__ = [
    "AttributedGraph", "BraneError", "Comparison", "Embedding", "NodeEmbedder", "classify", "compare", "estimate",
    "link_scorer", "load", "load_model", "read", "synthetic",
]  # fmt: skip
__all__ += _methods.__all__  # every registered method is public


_writers.register_graph_writer(lambda: import_module("neural_brane.io").write_graph)
_writers.register_ranks(lambda: import_module("neural_brane.cluster.fitting").learn_graph)
_writers.register_model_writer(lambda: import_module("neural_brane.models").save_model)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import neural_brane` and `brane --help` stay quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'neural_brane' has no attribute {name!r}")
    return getattr(import_module(f"neural_brane.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
