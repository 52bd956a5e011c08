"""Tables that a click on a heading sorts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True)
class Head:
    """A heading; a click on it sorts by text or by number."""

    html: str
    kind: str = "number"
    look: str = ""


def table(heads: Sequence[Head], rows: Iterable[Sequence[str]], *, look: str = "", groups: str = "") -> str:
    """A table that can be sorted; `rows` hold its <td> elements."""
    top = "".join(
        f'<th scope="col" data-sort="{head.kind}" class="{head.kind} {head.look}">{head.html}</th>' for head in heads
    )
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    head = f"<thead>{groups}<tr>{top}</tr></thead>"
    return f'<div class="scroll"><table class="{look}">{head}\n<tbody>{body}</tbody></table></div>'


def text(value: Any, look: str = "") -> str:
    """A <td> of text."""
    return f'<td class="text {look}">{escape(str(value))}</td>'


def number(value: float | None, shown: str, look: str = "") -> str:
    """A <td> of a number, which is sorted by its value and not by how it is shown."""
    plain = "" if value is None else f"{value:.10g}"
    return f'<td data-value="{plain}" class="{look}">{shown}</td>'


def settings(values: dict[str, Any]) -> str:
    """Parameters with their values in a line, without those that are None."""
    return ", ".join(f"{name} = {value}" for name, value in values.items() if value is not None)
