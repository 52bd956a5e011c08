"""The options of tables of edges and of nodes, said once for every command that reads a graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from typer import Option

if TYPE_CHECKING:
    from neural_brane.graph import AttributedGraph
    from neural_brane.graph.encoder import Encoder

PANEL = "Reading tables"
COLUMN = "<column>"


def option(name: str, help: str, metavar: str | None = COLUMN) -> Any:
    """An option that says how tables are read."""
    return Option(f"--{name}", metavar=metavar, help=help, rich_help_panel=PANEL)


@dataclass(frozen=True)
class Tables:
    """How tables of edges and of nodes are read, as given on the command line."""

    nodes: Annotated[
        Path | None, option("nodes", "Table of nodes, joined by id; columns become attributes.", "<file>")
    ] = None
    source_column: Annotated[
        str | None, option("source", "Column of an edge's first node (name, or position from 0).")
    ] = None
    target_column: Annotated[str | None, option("target", "Column of an edge's second node.")] = None
    weight_column: Annotated[str | None, option("weight", "Column of an edge's weight.")] = None
    header: Annotated[
        bool | None,
        Option(
            "--header/--no-header",
            help="Whether the first line of the edges holds titles.",
            rich_help_panel=PANEL,
        ),
    ] = None
    id_column: Annotated[str | None, option("id", "Column of the nodes' ids.")] = None
    label_column: Annotated[str | None, option("label", "Column of their classes; not learned from.")] = None
    column: Annotated[
        list[str] | None,
        option(
            "column",
            "What a column is, as in age:number:8 (bins), tags:list:; or bio:text; category, boolean.",
            "<name:kind>",
        ),
    ] = None
    ignore: Annotated[list[str] | None, option("ignore", "Column to leave out; may be repeated.")] = None
    missing: Annotated[
        Literal["none", "attribute"],
        option("missing", "A missing value: nothing, or an attribute 'age=missing'.", "<none|attribute>"),
    ] = "none"

    def keywords(self) -> dict[str, Any]:
        """What `neural_brane.read` takes, without what was not given."""
        given = {
            "nodes": self.nodes,
            "source": self.source_column,
            "target": self.target_column,
            "weight": self.weight_column,
            "header": self.header,
            "id": self.id_column,
            "label": self.label_column,
            "columns": self.column,
            "ignore": self.ignore,
            "missing": None if self.missing == "none" else self.missing,
        }
        return {name: value for name, value in given.items() if value is not None and value != []}


def takes_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Tables`, which it gets as one argument, `tables`."""
    types = get_type_hints(Tables, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    options = [
        inspect.Parameter(field.name, kind, default=field.default, annotation=types[field.name])
        for field in fields(Tables)
    ]
    own = inspect.signature(command, eval_str=True)
    before = [one.replace(kind=kind) for name, one in own.parameters.items() if name != "tables"]
    at = 1 + next((at for at, one in enumerate(before) if one.name == "attributes"), 0)

    @wraps(command)
    def run(**given: Any) -> None:
        tables = Tables(**{field.name: given.pop(field.name) for field in fields(Tables)})
        command(**given, tables=tables)

    run.__signature__ = own.replace(parameters=[*before[:at], *options, *before[at:]])  # type: ignore[attr-defined]
    return run


def read(source: str, tables: Tables, **options: Any) -> AttributedGraph:
    """Read a graph, and say what each column of its table of nodes was taken for."""
    from neural_brane.files import datasets

    graph = datasets.read(source, **options, **tables.keywords())
    if tables.nodes is not None and graph.encoder is not None:
        show_columns(graph.encoder)
    return graph


def show_columns(encoder: Encoder) -> None:
    """Print what each column of the table of nodes was taken for, on stderr."""
    from neural_brane.cli.terminal import show_table

    rows = [
        (
            column.name,
            column.kind,
            f"{len(encoder.names_of(column.name)):,}" if column.name in encoder.parts else "",
            f"{column.missing:,}",
            column.why,
            ", ".join(column.examples),
        )
        for column in encoder.columns
    ]
    titles = ("column", "kind", "attributes", "missing", "why", "such as")
    show_table(titles, rows, right=("attributes", "missing"), stderr=True)
