"""Options that several commands share, each with the help that teaches it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from neural_brane.methods.kinds import Choice
from neural_brane.methods.parameters import SHARED

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
        help="File to write: .npz, .parquet, .safetensors, .h5ad, .csv, .tsv, .txt or .w2v (word2vec text), .bin "
        "(binary), .npy, .pgvector or .projector; 'brane --help' tells what is in each.",
    ),
]
OutputOrNone = Annotated[
    Path | None,
    Option("--output", "-o", help="File to write: .npz, .txt or .w2v (word2vec text), .tsv, .csv or .parquet."),
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
