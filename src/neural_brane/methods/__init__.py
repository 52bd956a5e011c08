"""All methods by name; each turns an AttributedGraph into an Embedding under the same contract.

A class with a `title` in a file of this package is a method: it is registered nowhere else. Names are read from the
text of the files, and a method is imported when it is first looked up. So no method needs the packages of another, and
showing help needs none of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

# Matches a class at the left margin, its title, and the flag that puts it first in lists.
DECLARED = re.compile(r'^class (\w+)|^    title = "(.+)"$|^    (leads) = True', re.MULTILINE)


@cache
def _find(folders: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return the module and the class of every method by title, in the order of lists."""
    found: dict[str, tuple[str, str]] = {}
    leading = set()
    for folder in map(Path, folders):
        for path in (*folder.glob("*.py"), *folder.glob("*/*.py")):
            kind = title = ""
            for match in DECLARED.finditer(path.read_text(encoding="utf-8")):
                if match[1]:
                    kind, title = match[1], ""
                elif match[2] and kind:
                    title = match[2]
                    found[title] = ".".join(path.relative_to(folder).with_suffix("").parts), kind
                elif match[3]:
                    leading.add(title)
    return {title: found[title] for title in sorted(found, key=lambda title: (title not in leading, title))}


class Methods(Mapping[str, "type[Embedder]"]):
    """A mapping from names to method classes: Neural-Brane first, then in alphabetical order."""

    def __getitem__(self, title: str) -> type[Embedder]:
        module, name = _find(tuple(__path__))[title]
        method: type[Embedder] = getattr(import_module(f"{__name__}.{module}"), name)
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(_find(tuple(__path__)))

    def __len__(self) -> int:
        return len(_find(tuple(__path__)))


METHODS = Methods()


def find_method(name: str) -> type[Embedder]:
    """Return the class of a method by its name; the error for an unknown name suggests the closest one."""
    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise ParameterError(f"method '{name}' is unknown{hint}; choose one of {', '.join(METHODS)}")
    return METHODS[name]


def untrainable() -> list[str]:
    """Return the names of the methods whose optional package is not installed."""
    extras = {name: method.extra for name, method in METHODS.items()}
    return [name for name, extra in extras.items() if extra is not None and find_spec(extra) is None]


def __getattr__(name: str) -> Any:
    """Return `__all__`, or the class of a method by its class name."""
    classes = {kind: title for title, (_, kind) in _find(tuple(__path__)).items()}
    if name == "__all__":
        return ["METHODS", *sorted(classes)]
    if name not in classes:
        raise AttributeError(f"module '{__name__}' has no attribute {name!r}")
    return METHODS[classes[name]]
