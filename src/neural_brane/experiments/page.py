"""Pages for a browser: one HTML file with tiles, sections and sortable tables that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, TypeVar

from neural_brane.files.storage import atomic

T = TypeVar("T")


class Section(NamedTuple):
    """A part of a page."""

    anchor: str
    title: str
    body: str


def write_page(
    path: Path,
    *,
    title: str,
    lead: str,
    sections: Sequence[Section],
    tiles: Iterable[tuple[str, str]] = (),
    warning: str = "",
) -> None:
    """Write a page; a section without a body is left out.

    title and warning are text. lead, the sections' bodies and the tiles, each a figure and what it is, are HTML.
    """
    shown = [section for section in sections if section.body]
    text = Template(resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escape(title, quote=False),
        lead=lead,
        warning=f'<p class="warning">{escape(warning, quote=False)}</p>' if warning else "",
        tiles="".join(f'<div class="tile"><b>{value}</b><span>{what}</span></div>' for value, what in tiles),
        contents="".join(f'<a href="#{one.anchor}">{escape(one.title)}</a>' for one in shown),
        sections="\n".join(
            f'<section id="{one.anchor}"><h2>{escape(one.title)}</h2>{one.body}</section>' for one in shown
        ),
    )
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")


class Head(NamedTuple):
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


def listing(things: Iterable[T], columns: Sequence[tuple[Head, Callable[[T], str]]]) -> str:
    """A table with a row for each thing; every column has its heading and a function that gives the <td>."""
    return table([head for head, _ in columns], [[cell(one) for _, cell in columns] for one in things])


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
