"""The nodes, the graph and the model that a command is asked about, as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from neural_brane.cli.tables import Tables, read
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np

    from neural_brane.graph import AttributedGraph

Model = Annotated[Path, Argument(help="A model file, as 'brane embed --save-model' writes it (.brane).")]
AttributeFile = Annotated[Path | None, Option("--attributes", help="Attribute file of that graph.")]
AsJson = Annotated[bool, Option("--json", help="Print the result as JSON.")]
GraphSource = Annotated[
    str | None,
    Option("--graph", metavar="<source>", help="Dataset or graph file: its labels and attributes tell of the nodes."),
]


def as_id(ids: np.ndarray, typed: str) -> Any:
    """An id as the vectors have it: where ids are integers, what is typed as one is read as one."""
    return int(typed) if ids.dtype.kind == "i" and typed.removeprefix("-").isdecimal() else typed


def read_graph(source: str | None, attributes: Path | None, tables: Tables) -> AttributedGraph | None:
    """The graph that tells of the nodes, if one is given."""
    if source is not None:
        return read(source, tables, attributes=attributes)
    if attributes is not None or tables.keywords():
        raise ParameterError("--attributes, --nodes and how tables are read belong to a graph; give --graph too")
    return None
