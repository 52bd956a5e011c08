"""`brane methods`: the ways to learn vectors."""

from __future__ import annotations


def methods() -> None:
    """List the methods of 'brane embed --method' and what each of them uses.

    An inductive method gives a vector to a node it has not seen; growth is how its time grows with the graph.
    """
    from neural_brane.cli.tables import show_table
    from neural_brane.methods import METHODS

    rows = [
        (name, ", ".join(kind.uses), "yes" if kind.inductive else "no", f"{kind.growth}\n{kind.paper}")
        for name, kind in METHODS.items()
    ]
    show_table(("name", "uses", "inductive", "growth and paper"), rows, fold=True)
