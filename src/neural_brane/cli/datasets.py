"""`brane datasets`: the graphs known by name, and whether they are here."""

from __future__ import annotations


def datasets() -> None:
    """List the graphs known by name and whether their files are here.

    Files are looked for in the folder NEURAL_BRANE_DATA, then in the cache, then downloaded.
    """
    from neural_brane.cli.tables import show_table
    from neural_brane.datasets import describe

    numbers = ("nodes", "edges", "attributes", "classes")
    rows = [
        (record.name, *(_number(getattr(record, name)) for name in numbers), record.state, record.about)
        for record in describe()
    ]
    show_table(("name", *numbers, "state", "about"), rows, right=numbers)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
