"""A page: a heading, some tiles, and sections with an anchor each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from neural_brane.io.atomic import atomic


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page."""

    anchor: str
    title: str
    body: str

    def html(self) -> str:
        """The section as HTML."""
        return f'<section id="{self.anchor}"><h2>{escape(self.title)}</h2>{self.body}</section>'


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
        sections="\n".join(one.html() for one in shown),
    )
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")
