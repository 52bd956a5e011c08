"""Options that several commands share, each with the help that teaches it, and how typed values are read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from neural_brane.cli.tables import Tables, read
from neural_brane.errors import ParameterError
from neural_brane.files.vectors import list_suffixes
from neural_brane.methods.parameters import SHARED, Choice

if TYPE_CHECKING:
    import numpy as np

    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder
    from neural_brane.methods.parameters import Parameter


# Methods and their parameters from what was typed.


def split_names(names: list[str] | None) -> list[str]:
    """Names that were given by commas, by repeating the option, or both."""
    return [part.strip() for name in names or () for part in name.split(",") if part.strip()]


def parse_settings(method: type[Embedder], texts: Iterable[str]) -> dict[str, Any]:
    """The values of texts such as 'walk_length=80', by the declarations of a method's parameters.

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
    """The values to try of texts such as 'walk_length=20,40'; a semicolon separates where a value has commas."""
    grid = {}
    for text in texts:
        parameter, values = split_setting(method, text)
        separator = ";" if ";" in values else ","
        grid[parameter.name] = [parameter.parse(value.strip()) for value in values.split(separator)]
    return grid


def split_setting(method: type[Embedder], text: str) -> tuple[Parameter, str]:
    """The parameter and the value of a text 'name=value'."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        first = next(iter(method.parameters().values()))
        raise ParameterError(f"'{text}' sets nothing; write name=value, as in {first.name}={first.example()}")
    return method.parameter(name.replace("-", "_")), value


# Options that several commands share, each with the help that teaches it.

CLUSTER = "Past one machine (with --cluster)"
READING, TRAINING = "Reading the graph", "Training (--NAME VALUE is short for --set NAME=VALUE)"


def parameter(name: str) -> Any:
    """An option for a parameter that methods share; `--NAME VALUE` is short for `--set NAME=VALUE`."""
    known = SHARED[name]
    value = "|".join(known.kind.options) if isinstance(known.kind, Choice) else known.kind.__class__.__name__.lower()
    return Option(f"--{name}", metavar=f"<{value}>", help=known.about, rich_help_panel=TRAINING)


Source = Annotated[str, Argument(help="A dataset's name (see 'brane datasets') or a graph file.")]
Output = Annotated[
    Path,
    Option(
        "--output",
        "-o",
        help=f"File to write: {list_suffixes()}; 'brane --help' tells what is in each.",
    ),
]
OutputOrNone = Annotated[
    Path | None,
    Option("--output", "-o", help=f"File to write: {list_suffixes()}."),
]
SourceOrNone = Annotated[str | None, Argument(help="A dataset's name (see 'brane datasets') or a graph file.")]
SaveModel = Annotated[
    Path | None,
    Option("--save-model", metavar="<file>", help="Write the fitted model too, such as m.brane."),
]
Model = Annotated[
    Path | None,
    Option("--model", metavar="<file>", help="Embed new nodes with a model that was saved."),
]
Update = Annotated[
    bool,
    Option("--update", help="With --model: go on learning, from a changed graph."),
]
Log = Annotated[Path | None, Option(help="File to add progress and errors to.")]
Method = Annotated[str, Option(help="How to learn the vectors; 'brane methods' lists them.")]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="<name=value>",
        help="Any parameter of the method, as in walk_length=80; may be repeated. 'brane methods NAME' lists them.",
    ),
]
Tuned = Annotated[bool, Option("--tuned", help="Start from the values that 'brane tune' found for this dataset.")]

Attributes = Annotated[
    Path | None,
    Option(help="Attribute file: one node per line, as in '17 3:1 8:1'.", rich_help_panel=READING),
]
Labels = Annotated[
    Path | None,
    Option(help="Label file: 'node<TAB>label' per line; checked, not learned from.", rich_help_panel=READING),
]
LearnLabels = Annotated[
    bool,
    Option(
        "--learn-labels",
        help="Learn from the labels too (methods with †): give those to train on alone.",
    ),
]
Duplicates = Annotated[
    Literal["max", "sum"],
    Option(help="An edge stated twice, in either direction: keep the heaviest or add up.", rich_help_panel=READING),
]
SelfLoops = Annotated[
    Literal["keep", "drop"],
    Option(help="An edge from a node to itself: the node is then its own neighbour.", rich_help_panel=READING),
]

DryRun = Annotated[bool, Option("--dry-run", help="Only tell what 'brane estimate' tells.")]

Dim = Annotated[str | None, parameter("dim")]
Epochs = Annotated[str | None, parameter("epochs")]
Seed = Annotated[str | None, parameter("seed")]
Threads = Annotated[str | None, parameter("threads")]
Device = Annotated[str | None, parameter("device")]
Checkpoint = Annotated[str | None, parameter("checkpoint")]

Cluster = Annotated[
    bool,
    Option(
        "--cluster",
        help="Train on ranks: torchrun's, or --ranks here. OUTPUT may be a folder.",
        rich_help_panel=CLUSTER,
    ),
]
Ranks = Annotated[
    int | None,
    Option("--ranks", metavar="<whole>", help="Start so many ranks here.", rich_help_panel=CLUSTER),
]
CheckpointEvery = Annotated[
    int,
    Option(
        "--checkpoint-every",
        metavar="<whole>",
        help="Steps between two in the folder --checkpoint.",
        rich_help_panel=CLUSTER,
    ),
]
Metrics = Annotated[
    Path | None,
    Option(
        "--metrics",
        metavar="<path>",
        help="JSON lines (.jsonl), or a folder, for TensorBoard too.",
        rich_help_panel=CLUSTER,
    ),
]
PartsFormat = Annotated[
    Literal["npy", "parquet"],
    Option("--parts-format", help="Of a folder OUTPUT.", rich_help_panel=CLUSTER),
]
ByRange = Annotated[
    bool,
    Option(
        "--by-range",
        help="Ranks read their own nodes alone and ask for others: for graphs larger than a host.",
        rich_help_panel=CLUSTER,
    ),
]


# The nodes, the graph and the model that a command is asked about, as they are typed.

AskedModel = Annotated[Path, Argument(help="A model file, as 'brane embed --save-model' writes it (.brane).")]
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
