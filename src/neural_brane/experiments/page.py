"""Write pages for a browser: one self-contained HTML file with tiles, sections and sortable tables."""

from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, TypeVar

from neural_brane.files.storage import atomic

T = TypeVar("T")
CHOSEN = "The values of Neural-Brane's default were chosen on ten known graphs."


class Section(NamedTuple):
    """A section of a page; its body is HTML."""

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
    """Write a page without its empty sections; title and warning are text, lead, bodies and tiles are HTML."""
    shown = [section for section in sections if section.body]
    text = Template(resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=escape(title, quote=False),
        lead=lead,
        warning=f'<p class="warning">{escape(warning, quote=False)}</p>' if warning else "",
        tiles="".join(f'<div class="tile"><b>{value}</b><span>{caption}</span></div>' for value, caption in tiles),
        contents="".join(f'<a href="#{one.anchor}">{escape(one.title)}</a>' for one in shown),
        sections="\n".join(
            f'<section id="{one.anchor}"><h2>{escape(one.title)}</h2>{one.body}</section>' for one in shown
        ),
    )
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")


class Head(NamedTuple):
    """A heading of a column; a click on it sorts the column by its `kind`, "text" or "number"."""

    html: str
    kind: str = "number"
    look: str = ""


def table(heads: Sequence[Head], rows: Iterable[Sequence[str]], *, look: str = "", groups: str = "") -> str:
    """Return a sortable table; `rows` contain its <td> elements."""
    top = "".join(
        f'<th scope="col" data-sort="{head.kind}" class="{head.kind} {head.look}">{head.html}</th>' for head in heads
    )
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    head = f"<thead>{groups}<tr>{top}</tr></thead>"
    return f'<div class="scroll"><table class="{look}">{head}\n<tbody>{body}</tbody></table></div>'


def listing(things: Iterable[T], columns: Sequence[tuple[Head, Callable[[T], str]]]) -> str:
    """Return a table with one row per thing; each column has a heading and a function that returns the <td>."""
    return table([head for head, _ in columns], [[cell(one) for _, cell in columns] for one in things])


def text(value: Any, look: str = "") -> str:
    """Return a <td> of text."""
    return f'<td class="text {look}">{escape(str(value))}</td>'


def number(value: float | None, shown: str, look: str = "") -> str:
    """Return a <td> of a number, which is sorted by its value and not by the text `shown`."""
    plain = "" if value is None else f"{value:.10g}"
    return f'<td data-value="{plain}" class="{look}">{shown}</td>'


def settings(values: dict[str, Any]) -> str:
    """Return parameters and their values in one line, without those that are None."""
    return ", ".join(f"{name} = {value}" for name, value in values.items() if value is not None)
