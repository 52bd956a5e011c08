"""What a column of a table of nodes is: its kind, why, and how a person says so, as in `age:number:8`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from neural_brane.errors import ParameterError

ENCODED = ("category", "number", "boolean", "list", "text")  # kinds that become attributes
KINDS = (*ENCODED, "id", "label", "ignored")
EXPECTED = (
    "write NAME:KIND or NAME:KIND:OPTION, as in age:number:8 (bins), tags:list:; (separator), bio:text:2 (nodes that "
    f"a word must have), country:category, member:boolean; kinds are {', '.join(ENCODED)} and ignored"
)
_GIVEN = re.compile(rf"^(?P<name>.+?):(?P<kind>{'|'.join((*ENCODED, 'ignored'))})(?::(?P<option>.+))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of nodes.

    Parameters
    ----------
    kind
        What becomes of it: category, number, boolean, list and text become attributes; id and label do not, nor does
        what is ignored.
    why
        The reason, in words.
    option
        Of a number the bins, of a list in text its separator, of text the nodes that a word must have.
    missing, distinct
        Rows without a value, and different values.
    examples
        Some values, for people to look at; they are not kept in files.
    """

    name: str
    kind: str
    why: str
    option: int | str | None = None
    missing: int = 0
    distinct: int = 0
    examples: tuple[str, ...] = ()


class Kind(NamedTuple):
    """What a person says of a column."""

    kind: str
    option: int | str | None = None


def read_kinds(given: Mapping[str, str] | Iterable[str] | None) -> dict[str, Kind]:
    """What is said of columns, by name: a dict from a name to its kind, or a list of `NAME:KIND:OPTION`.

    >>> read_kinds(["age:number:4", "tags:list:;"])
    {'age': Kind(kind='number', option=4), 'tags': Kind(kind='list', option=';')}
    >>> read_kinds({"age": "number"})
    {'age': Kind(kind='number', option=None)}
    """
    if isinstance(given, Mapping):
        given = [f"{name}:{kind}" for name, kind in given.items()]
    kinds: dict[str, Kind] = {}
    for text in [given] if isinstance(given, str) else given or ():
        match = _GIVEN.match(text)
        if match is None:
            raise ParameterError(f"column {text!r} is not understood; {EXPECTED}")
        name, kind, option = match["name"], match["kind"], match["option"]
        if name in kinds:
            raise ParameterError(f"column '{name}' is given twice, as {kinds[name].kind} and as {kind}; leave one out")
        kinds[name] = Kind(kind, _read_option(text, kind, option))
    return kinds


def _read_option(text: str, kind: str, option: str | None) -> int | str | None:
    """The option of a kind: a whole number above zero for bins and words, a separator for lists."""
    if option is None or kind == "list":
        return option
    if kind not in ("number", "text"):
        raise ParameterError(f"column {text!r}: {kind} takes no option; write {text.rpartition(':')[0]}")
    if not option.isdecimal() or int(option) < 1:
        raise ParameterError(f"column {text!r}: {option!r} is not a whole number above 0; {EXPECTED}")
    return int(option)
