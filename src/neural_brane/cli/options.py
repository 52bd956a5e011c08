"""Declare the options that several commands share, and parse their values."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from typer import Argument, Option

from neural_brane.cli.terminal import show_table
from neural_brane.errors import ParameterError
from neural_brane.methods.parameters import SHARED, Choice

if TYPE_CHECKING:
    import numpy as np

    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder
    from neural_brane.methods.parameters import Parameter

TRAINING = "Training ('brane methods NAME' lists all parameters)"
READING = "Reading the graph ('brane formats --help' describes the files)"


def option(value: str, help: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option with a value; a help of at most 42 characters fits on a line of a terminal with 80 columns."""
    return Option(*names, metavar=f"<{value}>", help=help, rich_help_panel=panel, **more)


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """Return an option without a value."""
    return Option(name, metavar="", help=help, rich_help_panel=panel)


_source = Argument(help="Graph file, or one of 'brane datasets'.")
Source = Annotated[str, _source]
SourceOrNone = Annotated[str | None, _source]
Output = Annotated[Path, option("file", "Vectors; see 'brane formats'.", "--output", "-o")]
OutputOrNone = Annotated[Path | None, option("file", "Write vectors here; see 'brane formats'.", "--output", "-o")]
SaveModel = Annotated[Path | None, option("file", "Write the model here, as in m.brane.", "--save-model")]
ModelFile = Annotated[Path, Argument(help="Model from 'brane embed --save-model'.")]
Vectors = Annotated[Path, Argument(help="Vectors; see 'brane formats'.")]
Ids = Annotated[Path | None, option("file", "Ids of an .npy file's rows, one per line.")]
Node = Annotated[str, Argument(help="Id of a node.")]
Method = Annotated[str, option("name", "neural-brane, or see 'brane methods'.", show_default=False)]
Seed = Annotated[int, option("whole", "Seed of all random numbers.")]
Jobs = Annotated[int | None, option("whole", "Trainings at once (default: one per core).")]
Log = Annotated[Path | None, option("file", "Append progress and errors here.")]
GraphSource = Annotated[str | None, option("source", "Graph of these nodes: a file or a dataset.", "--graph")]


AsJson = Annotated[bool, flag("--json", "Print JSON only.")]


def bundled(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each dataclass among a command's parameters by one option per field; the command receives the object."""
    signature = inspect.signature(command, eval_str=True)
    bundles: dict[str, Any] = {
        name: one.annotation for name, one in signature.parameters.items() if is_dataclass(one.annotation)
    }
    options = []
    for name, parameter in signature.parameters.items():
        if name not in bundles:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        types = get_type_hints(bundles[name], include_extras=True)
        options += [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=types[one.name])
            for one in fields(bundles[name])
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, kind in bundles.items():
            given[name] = kind(**{one.name: given.pop(one.name) for one in fields(kind)})
        command(**given)

    run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return run


# Parameters of methods.


def parameter(name: str) -> Any:
    """Return an option for a parameter that methods share: `--NAME VALUE` is short for `--set NAME=VALUE`."""
    shared = SHARED[name]
    value = "|".join(shared.kind.options) if isinstance(shared.kind, Choice) else type(shared.kind).__name__.lower()
    first_clause = re.split(r"[,;:.]", shared.about)[0]
    return option(value, f"{first_clause}.", f"--{name}", panel=TRAINING)


@dataclass(frozen=True)
class TrainingOptions:
    """Options that set the parameters of a method."""

    settings: Annotated[
        list[str] | None, option("name=value", "Set any parameter; may be repeated.", "--set", panel=TRAINING)
    ] = None
    dim: Annotated[str | None, parameter("dim")] = None
    epochs: Annotated[str | None, parameter("epochs")] = None
    seed: Annotated[str | None, parameter("seed")] = None
    threads: Annotated[str | None, parameter("threads")] = None
    device: Annotated[str | None, parameter("device")] = None
    checkpoint: Annotated[str | None, parameter("checkpoint")] = None

    def parameters(self, method: type[Embedder]) -> dict[str, Any]:
        """Return the given parameters, parsed by the method's declarations."""
        short = [
            f"{one.name}={value}"
            for one in fields(self)
            if one.name != "settings" and (value := getattr(self, one.name)) is not None
        ]
        return parse_settings(method, [*short, *(self.settings or ())])


def parse_settings(method: type[Embedder], texts: Iterable[str]) -> dict[str, Any]:
    """Parse texts such as 'walk_length=80' by the declarations of a method's parameters.

    >>> from neural_brane import NeuralBrane
    >>> parse_settings(NeuralBrane, ["l2=1e-4", "bias=true", "tolerance=none"])
    {'l2': 0.0001, 'bias': True, 'tolerance': None}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        parameter, value = split_setting(method, text)
        if parameter.name in settings:
            raise ParameterError(f"{text}: {parameter.name} is given twice; leave one out")
        settings[parameter.name] = parameter.parse(value)
    return settings


def parse_grid(method: type[Embedder], texts: Iterable[str]) -> dict[str, list[Any]]:
    """Parse texts such as 'walk_length=20,40'; a semicolon separates values that contain commas."""
    grid = {}
    for text in texts:
        parameter, values = split_setting(method, text)
        separator = ";" if ";" in values else ","
        grid[parameter.name] = [parameter.parse(value.strip()) for value in values.split(separator)]
    return grid


def split_setting(method: type[Embedder], text: str) -> tuple[Parameter, str]:
    """Split 'name=value' into a parameter of the method and its value."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        first = next(iter(method.parameters().values()))
        raise ParameterError(f"'{text}' is not a setting; write name=value, as in {first.name}={first.example()}")
    return method.parameter(name.replace("-", "_")), value


def split_names(names: list[str] | None) -> list[str]:
    """Split names that are separated by commas, given by repeated options, or both."""
    return [part.strip() for name in names or () for part in name.split(",") if part.strip()]


def as_id(ids: np.ndarray, typed: str) -> Any:
    """Return a typed id as an integer if `ids` are integers, else as it is."""
    return int(typed) if ids.dtype.kind == "i" and typed.removeprefix("-").isdecimal() else typed


# Options for reading a graph.


def reading(name: str, help: str, value: str = "column", **more: Any) -> Any:
    """Return an option for reading a graph."""
    return option(value, help, f"--{name}", panel=READING, **more)


# Keywords of `neural_brane.read` for fields of another name.
KEYWORDS = {
    "id_column": "id", "source_column": "source", "target_column": "target", "weight_column": "weight",
    "label_column": "label", "column": "columns",
}  # fmt: skip


@dataclass(frozen=True)
class EdgeOptions:
    """Options that name the files of a graph and the columns of its edges."""

    attributes: Annotated[Path | None, reading("attributes", "Attributes, one node per line.", "file")] = None
    labels: Annotated[Path | None, reading("labels", "Labels, one node per line.", "file")] = None
    nodes: Annotated[Path | None, reading("nodes", "Table of nodes; columns become attributes.", "file")] = None
    id_column: Annotated[str | None, reading("id", "Column of --nodes with the ids.")] = None
    source_column: Annotated[str | None, reading("source", "Column with the first node of an edge.")] = None
    target_column: Annotated[str | None, reading("target", "Column with the second node of an edge.")] = None
    weight_column: Annotated[str | None, reading("weight", "Column with the weight of an edge.")] = None
    same_ids: Annotated[bool, flag("--same-ids", "Both columns of ids name one kind.", READING)] = False
    header: Annotated[
        Literal["yes", "no"] | None, reading("header", "Does the first line hold column titles?", "yes|no")
    ] = None
    duplicates: Annotated[Literal["max", "sum"], reading("duplicates", "Weight of a repeated edge.", "max|sum")] = "max"
    self_loops: Annotated[Literal["keep", "drop"], reading("self-loops", "Keep or drop self-loops.", "keep|drop")] = (
        "keep"
    )

    def keywords(self) -> dict[str, Any]:
        """Return the given options as keywords of `neural_brane.read`."""
        given = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        if "header" in given:
            given["header"] = given["header"] == "yes"
        return {KEYWORDS.get(name, name): value for name, value in given.items() if value != []}

    def read(self, source: str) -> AttributedGraph:
        """Read a graph; print on stderr which kind each column of its table of nodes was given."""
        from neural_brane.files import datasets

        graph = datasets.read(source, **self.keywords())
        if self.nodes is not None and graph.encoder is not None:
            rows = [
                (
                    column.name,
                    column.kind,
                    f"{len(graph.encoder.names_of(column.name)):,}" if column.name in graph.encoder.parts else "",
                    f"{column.missing:,}",
                    column.why,
                    ", ".join(column.examples),
                )
                for column in graph.encoder.columns
            ]
            titles = ("column", "kind", "attributes", "missing", "why", "such as")
            show_table(titles, rows, right=("attributes", "missing"), stderr=True)
        return graph

    def read_optional(self, source: str | None) -> AttributedGraph | None:
        """Read the graph of `--graph`; without one, return None and refuse options about a graph."""
        if source is not None:
            return self.read(source)
        if given := self.keywords():
            raise ParameterError(f"--{next(iter(given)).replace('_', '-')} describes a graph; give --graph too")
        return None

    def files(self, source: str | None = None) -> dict[str, Path | None]:
        """Return the input files by the option that names each."""
        from neural_brane.files import datasets

        named = {"--attributes": self.attributes, "--labels": self.labels, "--nodes": self.nodes}
        return named if source is None else {**named, **datasets.source_files(source)}


@dataclass(frozen=True)
class Reading(EdgeOptions):
    """All options for reading a graph, including those for the columns of its table of nodes."""

    label_column: Annotated[str | None, reading("label", "Column of --nodes with the labels.")] = None
    column: Annotated[list[str] | None, reading("column", "Kind of a column, such as age:number:8.", "name:kind")] = (
        None
    )
    ignore: Annotated[list[str] | None, reading("ignore", "Column to leave out; may be repeated.")] = None
    missing: Annotated[
        Literal["none", "attribute"],
        reading("missing", "attribute: an empty cell counts as a value.", "rule", show_default=False),
    ] = "none"
