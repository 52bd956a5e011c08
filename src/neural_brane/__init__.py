"""Attributed network embedding: learn one vector per node from its links and attributes.

>>> from neural_brane import NeuralBrane, load
>>> embedding = NeuralBrane(dim=16, epochs=1, seed=0).fit_transform(load("stdlib"))
>>> len(embedding.nearest("json", k=3))
3
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neural_brane import methods as _methods

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding as Embedding
    from neural_brane.errors import BraneError as BraneError
    from neural_brane.evaluate.classify import classify as classify
    from neural_brane.experiments.compare import Comparison as Comparison
    from neural_brane.experiments.compare import compare as compare
    from neural_brane.experiments.estimate import estimate as estimate
    from neural_brane.files.datasets import load as load
    from neural_brane.files.datasets import read as read
    from neural_brane.files.models import load_model as load_model
    from neural_brane.graph import AttributedGraph as AttributedGraph
    from neural_brane.graph.synthetic import synthetic as synthetic
    from neural_brane.methods.scikit_learn import NodeEmbedder as NodeEmbedder
    from neural_brane.methods.scikit_learn import link_scorer as link_scorer

__version__ = "0.1.0"

_HOME = {
    "AttributedGraph": "graph.attributed",
    "BraneError": "errors",
    "Comparison": "experiments.compare",
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
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import neural_brane` and `brane --help` are fast."""
    if name in _HOME:
        return getattr(import_module(f"neural_brane.{_HOME[name]}"), name)
    public = _methods.__all__  # every method is public
    if name == "__all__":
        return [*_HOME, *public]
    if name not in public:
        raise AttributeError(f"module 'neural_brane' has no attribute {name!r}")
    return getattr(_methods, name)


def __dir__() -> list[str]:
    return sorted(__getattr__("__all__"))
