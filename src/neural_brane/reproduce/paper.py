"""The numbers that the paper prints, read from paper.toml."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any


def macro_f1(method: str, dataset: str) -> tuple[float, ...] | None:
    """The paper's Macro-F1 of a method at 30, 50 and 70 % training nodes, or None where it prints none.

    >>> macro_f1("deepwalk", "citeseer")
    (0.4952, 0.5199, 0.5318)
    """
    found = _numbers()["macro_f1"].get(dataset, {}).get(method)
    return None if found is None else tuple(found)


def nmi(method: str, dataset: str) -> float | None:
    """The NMI of a method's clusters in the paper's text, or None: it gives two.

    >>> nmi("pte", "citeseer")
    0.2653
    """
    found: float | None = _numbers()["nmi"].get(dataset, {}).get(method)
    return found


def nmi_lead(dataset: str) -> dict[str, float]:
    """By what share Neural-Brane's NMI is above a competitor's, by its name, where the text gives no more.

    >>> nmi_lead("arnetminer-15753")
    {'deepwalk': 0.345}
    """
    return dict(_numbers()["nmi_lead"].get(dataset, {}))


def graph(dataset: str) -> dict[str, int]:
    """The counts of a graph in the paper's table of them; empty for another.

    >>> graph("reed98")["attributes"]
    64
    """
    return dict(_numbers()["graph"].get(dataset, {}))


def counterpart(dataset: str) -> str:
    """The version of a dataset that the paper's numbers are of, which may not be the one at hand.

    >>> counterpart("arnetminer")
    'arnetminer-15753'
    """
    return str(_numbers()["counterpart"].get(dataset, dataset))


@cache
def _numbers() -> dict[str, Any]:
    return tomllib.loads(resources.files("neural_brane.reproduce").joinpath("paper.toml").read_text("utf-8"))
