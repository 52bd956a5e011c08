"""`brane evaluate`: how well the nodes' classes are predicted from their vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option, echo

if TYPE_CHECKING:
    from neural_brane.evaluate import Classification


def evaluate(
    file: Annotated[Path, Argument(help="Vectors: .npz, .txt or .w2v, .tsv or .parquet.")],
    labels: Annotated[
        str,
        Option(
            help="Where the classes are: a dataset's name, a graph (.npz, .content) "
            "or a file of 'node<TAB>label' lines."
        ),
    ],
    train: Annotated[
        list[float] | None,
        Option(metavar="<share>", help="Share of the nodes to train on; may be repeated (default 0.3 0.5 0.7)."),
    ] = None,
    splits: Annotated[int, Option(help="Random divisions to average over.")] = 10,
    seed: Annotated[int, Option(help="The same seed gives every file the same divisions.")] = 0,
    stratify: Annotated[
        bool, Option("--stratify", help="Divide every class in the same proportion; the paper draws plainly.")
    ] = False,
    allow_missing: Annotated[
        bool,
        Option("--allow-missing", help="Leave out labelled nodes that have no vector instead of stopping."),
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Score vectors by predicting the nodes' classes: logistic regression, Macro-F1 and Micro-F1.

    Vectors and labels are matched by node id. The regression (liblinear, one class against the rest) has C = 1 and
    takes the vectors as they are; the divisions are plain random ones unless --stratify.

    \b
    brane evaluate vectors.npz --labels citeseer
    brane evaluate vectors.tsv --labels classes.txt --json
    """
    from neural_brane.evaluate import classify, match, read_truth
    from neural_brane.io.vectors import read_vectors

    embedding = read_vectors(file)
    known = match(embedding, *read_truth(labels), allow_missing=allow_missing)
    shares = train or (0.3, 0.5, 0.7)
    result = classify(known.vectors, known.labels, train=shares, splits=splits, seed=seed, stratify=stratify)
    about = {"file": str(file), "labels": labels, "nodes": len(embedding), "dim": embedding.dim}
    counts = {"unlabelled": known.unlabelled, "missing": known.missing}
    if as_json:
        record = {**about, **result.as_dict(), **counts, "provenance": embedding.provenance}
        echo(json.dumps(record, indent=2))
        return
    show(result, f"{file}: {len(embedding):,} x {embedding.dim}")
    drawn = "stratified" if stratify else "random"
    echo(f"{result.labelled:,} nodes, {len(result.classes)} classes; mean ± sd of {splits} {drawn} splits, seed {seed}")
    if known.unlabelled:
        echo(f"left out: {known.unlabelled:,} nodes that have a vector and no label")
    if known.missing:
        echo(f"left out: {known.missing:,} nodes that have a label and no vector")


def show(result: Classification, title: str) -> None:
    """Print scores as a table."""
    from neural_brane.cli.tables import show_table

    rows = [
        (
            f"{100 * score.train:g} %",
            f"{score.macro_mean:.4f} ± {score.macro_sd:.4f}",
            f"{score.micro_mean:.4f} ± {score.micro_sd:.4f}",
        )
        for score in result.scores
    ]
    show_table(("trained on", "Macro-F1", "Micro-F1"), rows, title=title)
