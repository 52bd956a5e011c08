"""`brane datasets`: the graphs known by name, and whether they are here."""

from __future__ import annotations


def datasets() -> None:
    """List the graphs known by name and whether their files are here.

    Files are looked for in the folder NEURAL_BRANE_DATA, then in the cache, then downloaded.
    """
    from neural_brane.cli.console import show_table
    from neural_brane.datasets import list_datasets

    numbers = ("nodes", "edges", "attributes", "classes")
    rows = [
        (one.name, *(_number(getattr(one, name)) for name in numbers), one.state, one.about) for one in list_datasets()
    ]
    show_table(("name", *numbers, "state", "about"), rows, right=numbers)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
