"""The options of `brane evaluate`, each with the help that teaches it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

CLASSES, LINKS, MATCHING = "Labels: all tasks but links", "Links", "Matching"


class Task(StrEnum):
    """What vectors can be scored by."""

    classification = "classification"
    multilabel = "multilabel"
    regression = "regression"
    clustering = "clustering"
    retrieval = "retrieval"
    links = "links"
    all = "all"


File = Annotated[
    Path,
    Argument(help="Vectors, in any format that 'brane --help' lists."),
]
Tasks = Annotated[
    list[Task] | None,
    Option(
        "--task",
        metavar="<classification|multilabel|regression|clustering|retrieval|links|all>",
        help="What to score by; may be repeated. all: whatever --labels and --held-out are enough for "
        "(default, if --labels: classification, multilabel or regression, by what the labels are; if --held-out: "
        "links).",
    ),
]

Labels = Annotated[
    str | None,
    Option(
        help="Where the classes, labels or numbers are: a dataset's name, a graph (.npz, .content), a table (--id, "
        "--label) or a file of 'node<TAB>label' lines.",
        rich_help_panel=CLASSES,
    ),
]
IdColumn = Annotated[
    str | None,
    Option("--id", metavar="<column>", help="Column of the nodes' ids, in a table.", rich_help_panel=CLASSES),
]
LabelColumn = Annotated[
    str | None,
    Option("--label", metavar="<column>", help="Column of their classes, in a table.", rich_help_panel=CLASSES),
]
Separator = Annotated[
    str | None,
    Option(
        metavar="<text>",
        help="What stands between several labels of a node (default: found in the file).",
        rich_help_panel=CLASSES,
    ),
]
Train = Annotated[
    list[float] | None,
    Option(
        metavar="<share>",
        help="Share of the nodes to train on; may be repeated (default 0.3 0.5 0.7).",
        rich_help_panel=CLASSES,
    ),
]
Splits = Annotated[int | None, Option(help="Random divisions to average over (default 10).", rich_help_panel=CLASSES)]
Stratify = Annotated[
    bool,
    Option(
        "--stratify",
        help="Divide every class in the same proportion; the paper draws plainly.",
        rich_help_panel=CLASSES,
    ),
]
SaveSplits = Annotated[
    Path | None, Option(help="Write the divisions to this JSON file, by node id.", rich_help_panel=CLASSES)
]
SplitsFrom = Annotated[
    Path | None, Option(help="Score on the divisions of this file, not on new ones.", rich_help_panel=CLASSES)
]
Penalty = Annotated[
    str,
    Option(
        "--C",
        metavar="<number|cv>",
        help="Inverse of the regression's penalty, or 'cv': chosen inside each training part by five-fold "
        "cross-validation from 0.01, 0.1, 1, 10, 100, 1000.",
        rich_help_panel=CLASSES,
    ),
]
Lengths = Annotated[
    list[int] | None,
    Option(
        "--k",
        metavar="<number>",
        help="For retrieval: length of the list of nearest nodes; may be repeated (default 1 10 100).",
        rich_help_panel=CLASSES,
    ),
]
Queries = Annotated[
    int,
    Option(help="For retrieval: nodes to ask for at most; of more, a random sample.", rich_help_panel=CLASSES),
]
Starts = Annotated[int, Option(help="Starts of k-means to average over.", rich_help_panel=CLASSES)]

HeldOut = Annotated[Path | None, Option(help="The pairs to predict, from 'brane split-edges'.", rich_help_panel=LINKS)]
Similarity = Annotated[
    Literal["cosine", "dot", "distance"] | None,
    Option(
        help="How two vectors are compared (default the method's own where the file names it, or cosine).",
        rich_help_panel=LINKS,
    ),
]

Ids = Annotated[
    Path | None,
    Option(help="For an .npy file: one id per line, in the order of its rows.", rich_help_panel=MATCHING),
]
AllowMissing = Annotated[
    bool,
    Option(
        "--allow-missing",
        help="Leave out labelled nodes that have no vector (give them zeros, for links) instead of stopping.",
        rich_help_panel=MATCHING,
    ),
]

Seed = Annotated[int, Option(help="The same seed gives every file the same divisions and starts.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON and nothing else.")]
