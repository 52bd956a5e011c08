"""`brane info`: what is inside a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from neural_brane.cli.console import echo

WIDTH = 100  # characters of a value that are shown


def info(
    files: Annotated[list[Path], Argument(help="A model, vectors, a graph, a checkpoint, splits or held-out pairs.")],
    as_json: Annotated[bool, Option("--json", help="All of it as JSON, one line per file.")] = False,
) -> None:
    """Tell what is inside FILES: what each is, what made it, of which graph, and how large it is.

    Headers are read and arrays are not, so it is quick on large files, and it compares no checksums.

    \b
    brane info m.brane
    brane info vectors.npz --json
    brane info folder              vectors in parts
    """
    from neural_brane.contents import look_into

    for path in files:
        found = look_into(path)
        if as_json:
            echo(json.dumps(found.as_dict()))
        else:
            show(found)


def show(found: Any) -> None:
    """Print what is in a file, one fact per line."""
    from neural_brane.cli.embed import spell_size

    facts = dict(found.facts)
    extent = ""
    if "nodes" in facts and "dim" in facts:
        extent = f", {facts.pop('nodes'):,} x {facts.pop('dim')}"
    echo(f"{found.path}: {found.kind}{extent} ({spell_size(found.size)})")
    for name, value in facts.items():
        echo(f"  {name:<12} {spelled(name, value)}")


def spelled(name: str, value: Any) -> str:
    """A fact for people: numbers with commas, and not too long."""
    if name == "graph" and isinstance(value, dict):
        counts = ", ".join(f"{value[one]:,} {one}" for one in ("nodes", "edges", "attributes") if one in value)
        return f"'{value.get('name')}': {counts} (digest {value.get('digest')})"
    if isinstance(value, dict):
        return _cut(", ".join(f"{key}={one}" for key, one in value.items() if one is not None) or "none", 10 * WIDTH)
    if isinstance(value, list):
        return _cut(", ".join(map(str, value)), WIDTH)
    if isinstance(value, bool) or not isinstance(value, int) or name == "seed":
        return _cut(str(value), WIDTH)
    return f"{value:,}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
