"""Attributed network embedding: one vector per node, from its links and its attributes.

>>> from neural_brane import NeuralBrane, load
>>> embedding = NeuralBrane(dim=16, epochs=1, seed=0).fit_transform(load("stdlib"))
>>> len(embedding.nearest("json", k=3))
3
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neural_brane import methods as _methods

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.errors import BraneError
    from neural_brane.evaluate.classify import classify
    from neural_brane.experiments.compare import compare
    from neural_brane.experiments.comparison import Comparison
    from neural_brane.experiments.estimate import estimate
    from neural_brane.files.datasets import load, read
    from neural_brane.files.models import load_model
    from neural_brane.graph import AttributedGraph
    from neural_brane.graph.synthetic import synthetic
    from neural_brane.methods.scikit_learn import NodeEmbedder, link_scorer

__version__ = "0.1.0"

_HOME = {
    "AttributedGraph": "graph.attributed",
    "BraneError": "errors",
    "Comparison": "experiments.comparison",
    "Embedding": "embedding",
    "NodeEmbedder": "methods.scikit_learn",
    "classify": "evaluate.classify",
    "compare": "experiments.compare",
    "estimate": "experiments.estimate",
    "link_scorer": "methods.scikit_learn",
    "load": "files.datasets",
    "load_model": "files.models",
    "read": "files.datasets",
    "synthetic": "graph.synthetic",
} | dict.fromkeys(_methods.__all__, "methods")

__all__ = [
    "AttributedGraph", "BraneError", "Comparison", "Embedding", "NodeEmbedder", "classify", "compare", "estimate",
    "link_scorer", "load", "load_model", "read", "synthetic",
]  # fmt: skip
__all__ += _methods.__all__  # every registered method is public


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import neural_brane` and `brane --help` stay quick."""
    if name not in _HOME:
        raise AttributeError(f"module 'neural_brane' has no attribute {name!r}")
    return getattr(import_module(f"neural_brane.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
