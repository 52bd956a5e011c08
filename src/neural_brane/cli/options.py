"""The options of `brane embed`, each with the help that teaches it: those many methods share, then Neural-Brane's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

READING, MODEL, TRAINING, RUNNING = "Reading the graph", "Model", "Training", "Running"
RECIPE = "Settings that follow the recipe unless given"

Source = Annotated[str, Argument(help="A dataset's name (see 'brane datasets') or a graph file.")]
Output = Annotated[
    Path,
    Option("--output", "-o", help="File to write: .npz, .txt or .w2v (word2vec text), .tsv or .parquet."),
]
Method = Annotated[str, Option(help="How to learn the vectors; 'brane methods' lists them.")]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="<name=value>",
        help="Any parameter of the method, as in walk_length=80; may be repeated. 'brane methods NAME' lists them.",
    ),
]
Tuned = Annotated[
    bool,
    Option("--tuned", help="Start from the parameters that 'brane tune' found for this dataset."),
]

Attributes = Annotated[
    Path | None,
    Option(help="Attribute file: one node per line, as in '17 3:1 8:1'.", rich_help_panel=READING),
]
Labels = Annotated[
    Path | None,
    Option(
        help="Label file: 'node<TAB>label' per line. Read and checked, not learned from.",
        rich_help_panel=READING,
    ),
]
Duplicates = Annotated[
    Literal["max", "sum"],
    Option(
        help="An edge stated twice, in either direction: keep the heaviest or add up.",
        rich_help_panel=READING,
    ),
]
SelfLoops = Annotated[
    Literal["keep", "drop"],
    Option(help="An edge from a node to itself: the node is then its own neighbour.", rich_help_panel=READING),
]

Recipe = Annotated[
    Literal["default", "released", "paper"] | None,
    Option(
        help="Settings by name: ours (default: real rows only, pooled vectors), those of the authors' released "
        "program, or those of the paper's text.",
        rich_help_panel=MODEL,
    ),
]
Dim = Annotated[int | None, Option(help="Numbers per vector (default 150).", rich_help_panel=MODEL)]
AttributeDim = Annotated[
    int | None,
    Option(
        help="How many of them come from attributes, the rest from neighbours (default three quarters; half in the "
        "other recipes).",
        rich_help_panel=MODEL,
    ),
]
Hidden = Annotated[int | None, Option(help="Width of the hidden layer (default dim).", rich_help_panel=MODEL)]
Pooling = Annotated[
    Literal["max", "sum", "mean"] | None,
    Option(
        help="How the rows of a node's attributes, or neighbours, become one (default max).",
        rich_help_panel=MODEL,
    ),
]
Vector = Annotated[
    Literal["pooled", "hidden", "released"] | None,
    Option(
        "--vector",
        help="What is written (parameter 'output'): the pooled rows, the hidden layer, or the node's own row "
        "beside its pooled attributes as the released program does.",
        rich_help_panel=MODEL,
    ),
]

Epochs = Annotated[
    int | None, Option(help="Passes; one of Neural-Brane is --batches-per-epoch batches.", rich_help_panel=TRAINING)
]
Tolerance = Annotated[
    float | None,
    Option(
        help="Stop early once three epochs together lower the loss by less than this share, as in 0.01.",
        rich_help_panel=TRAINING,
    ),
]
BatchSize = Annotated[
    int | None, Option(help="Samples per step (Neural-Brane: 100 triplets).", rich_help_panel=TRAINING)
]
BatchesPerEpoch = Annotated[int | None, Option(help="Steps in an epoch (default 1000).", rich_help_panel=TRAINING)]
LearningRate = Annotated[float | None, Option(help="Step length of the gradient descent.", rich_help_panel=TRAINING)]
L2 = Annotated[float | None, Option("--l2", help="Weight of the penalty on size.", rich_help_panel=TRAINING)]

ZeroFloor = Annotated[
    bool | None,
    Option(
        "--zero-floor/--no-zero-floor",
        help="Let zero take part in the maximum, as the released program's padding does.",
        rich_help_panel=RECIPE,
    ),
]
Bias = Annotated[bool | None, Option("--bias/--no-bias", help="Give the hidden layer a bias.", rich_help_panel=RECIPE)]
Regularise = Annotated[
    Literal["hidden", "parameters"] | None,
    Option(
        help="What --l2 penalises: the hidden vectors of the batch, or the parameters.",
        rich_help_panel=RECIPE,
    ),
]
Loss = Annotated[
    Literal["mean", "sum"] | None,
    Option(help="Average the loss over a batch, or add it up.", rich_help_panel=RECIPE),
]
NegativePower = Annotated[
    float | None,
    Option(help="Draw non-neighbours in proportion to degree to this power.", rich_help_panel=RECIPE),
]
AllowSelfNegative = Annotated[
    bool | None,
    Option(
        "--allow-self-negative/--no-allow-self-negative",
        help="Let a node be drawn as its own non-neighbour.",
        rich_help_panel=RECIPE,
    ),
]
TableStd = Annotated[float | None, Option(help="Spread of the tables' first values.", rich_help_panel=RECIPE)]
WeightStd = Annotated[float | None, Option(help="Spread of the hidden layer's first weights.", rich_help_panel=RECIPE)]

Seed = Annotated[
    int | None,
    Option(help="The same seed gives the same vectors, on any number of threads.", rich_help_panel=RUNNING),
]
Threads = Annotated[int | None, Option(help="Threads to train on (default all cores).", rich_help_panel=RUNNING)]
Device = Annotated[
    Literal["cpu", "cuda", "auto"] | None,
    Option(help="Where to train: an NVIDIA GPU is 'cuda'; 'auto' takes it if there is one.", rich_help_panel=RUNNING),
]
Deterministic = Annotated[
    bool | None,
    Option(
        "--deterministic",
        help="On the GPU, give the same bits for the same seed; slower. The CPU always does.",
        rich_help_panel=RUNNING,
    ),
]
Checkpoint = Annotated[
    Path | None,
    Option(
        help="Keep the state of the run in this file, and go on from it where it exists; needs --seed.",
        rich_help_panel=RUNNING,
    ),
]
