"""`brane explain`: what a node's vector is made of, and what makes two nodes alike."""

from __future__ import annotations

import json
from itertools import zip_longest
from typing import Annotated

from typer import Argument, Option

from neural_brane.cli.asked import AsJson, Model, as_id
from neural_brane.cli.console import echo, show_table


def explain(
    model: Model,
    node: Annotated[str, Argument(help="Id of a node.")],
    other: Annotated[str | None, Argument(help="Id of another: what makes the two alike.", show_default=False)] = None,
    top: Annotated[int, Option("--top", help="How many attributes and neighbours to list.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Tell which attributes and neighbours shape a node's vector, or what makes two nodes alike.

    Shares of one node sum to 1, those of a pair to its cosine. What comes through a neighbour is listed as the
    attribute that it tells and as the neighbour who tells it; 'by part' counts it once.

    \b
    brane embed citeseer -o vectors.npz --save-model m.brane
    brane explain m.brane 17
    brane explain m.brane 17 204 --json
    """
    from neural_brane.models import load_model

    fitted = load_model(model)
    asked = [as_id(fitted.embedding_.ids, one) for one in (node, other) if one is not None]
    one, two = asked[0], asked[1] if len(asked) > 1 else None
    found = fitted.explain(one, two, top)
    if as_json:
        echo(json.dumps(found.as_dict(), indent=2))
        return
    rows = [(*_cells(left), *_cells(right)) for left, right in zip_longest(found.attributes, found.neighbours)]
    show_table(("share", "attribute", "share ", "neighbour"), rows, title=found.title, right=("share", "share "))
    echo("by part: " + ", ".join(f"{name} {share:.3f}" for name, share in found.shares.items()))


def _cells(one: tuple[object, float] | None) -> tuple[str, str]:
    return ("", "") if one is None else (f"{one[1]:.3f}", str(one[0]))
