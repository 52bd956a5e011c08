"""`brane suggest`: likely links that are not there, with reasons."""

from __future__ import annotations

import json
from typing import Annotated

from typer import Argument, Option

from neural_brane.cli.asked import AsJson, Model, as_id
from neural_brane.cli.console import echo, show_table


def suggest(
    model: Model,
    node: Annotated[str, Argument(help="Id of a node.")],
    k: Annotated[int, Option("-k", help="How many.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Suggest links that a node does not have yet, with what it shares with each.

    The score adds what the vectors tell (the method's own score of a pair, or their similarity) and what common
    neighbours tell, each in deviations from the mean. How much each counts is found by links that are there.

    \b
    brane embed citeseer -o vectors.npz --save-model m.brane
    brane suggest m.brane 17 -k 5
    """
    from neural_brane.models import load_model

    fitted = load_model(model)
    found = fitted.suggest(as_id(fitted.embedding_.ids, node), k)
    if as_json:
        echo(json.dumps([one.as_dict() for one in found], indent=2))
        return
    rows = [(f"{one.score:.2f}", str(one.id), str(one.reasons)) for one in found]
    show_table(("score", "node", "because"), rows, right=("score",), fold=True)
