"""The paper's figures, read from published.toml."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


def macro_f1(method: str, dataset: str) -> tuple[float, ...] | None:
    """Macro-F1 of a method at 30, 50 and 70 % training nodes as the paper has it, or None where it has none.

    >>> macro_f1("deepwalk", "citeseer")
    (0.4952, 0.5199, 0.5318)
    """
    found = _tables()["macro_f1"].get(dataset, {}).get(method)
    return None if found is None else tuple(found)


def nmi(method: str, dataset: str) -> float | None:
    """NMI of a method's clusters as the paper's text has it, or None: it names few.

    >>> nmi("pte", "citeseer")
    0.2653
    """
    found: float | None = _tables()["nmi"].get(dataset, {}).get(method)
    return found


def counterpart(dataset: str) -> str:
    """The graph that the paper's figures of a dataset are of: another version where that one is not at hand.

    >>> counterpart("arnetminer")
    'arnetminer-15753'
    """
    return str(_tables()["counterpart"].get(dataset, dataset))


@cache
def _tables() -> dict[str, Any]:
    return tomllib.loads(resources.files("neural_brane.reproduce").joinpath("paper.toml").read_text("utf-8"))
