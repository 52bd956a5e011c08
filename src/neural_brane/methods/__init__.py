"""Every method by name; all of them turn an AttributedGraph into an Embedding under one contract."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from neural_brane.methods.base import Embedder

if TYPE_CHECKING:
    from neural_brane.methods.attributes import Attributes
    from neural_brane.methods.neural_brane import NeuralBrane

__all__ = ["METHODS", "Attributes", "Embedder", "NeuralBrane"]

_HOME = {"NeuralBrane": "neural_brane", "Attributes": "attributes"}
_TITLES = {"neural-brane": "NeuralBrane", "attributes": "Attributes"}


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
