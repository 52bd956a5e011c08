"""List the trainings behind the paper's tables and figures, and read the numbers that the paper prints."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from neural_brane.experiments.store import Training, check_names
from neural_brane.experiments.tune import TUNING, tuned
from neural_brane.files import datasets as known_datasets
from neural_brane.files.datasets import registry
from neural_brane.methods import METHODS, untrainable
from neural_brane.methods.parameters import DIM

# The file paper.toml contains the numbers that the paper prints.


def macro_f1(method: str, dataset: str) -> tuple[float, ...] | None:
    """Return the paper's Macro-F1 of a method at 30, 50 and 70 % training nodes, or None if it prints none.

    >>> macro_f1("deepwalk", "citeseer")
    (0.4952, 0.5199, 0.5318)
    """
    found = _numbers()["macro_f1"].get(dataset, {}).get(method)
    return None if found is None else tuple(found)


def printed(what: str, dataset: str) -> dict[str, Any]:
    """Return what the paper prints of a dataset, by name; empty if it prints nothing.

    what: "graph" for the counts of the graph, "nmi" for the NMI of methods' clusters, or "nmi_lead" for Neural-Brane's
    relative lead in NMI over a method, where the paper states only this lead.

    >>> printed("graph", "reed98")["attributes"], printed("nmi", "citeseer")["pte"]
    (64, 0.2653)
    """
    return dict(_numbers()[what].get(dataset, {}))


def counterpart(dataset: str) -> str:
    """Return the version of a dataset that the paper used; it may differ from the given one.

    >>> counterpart("arnetminer")
    'arnetminer-15753'
    """
    return str(_numbers()["counterpart"].get(dataset, dataset))


@cache
def _numbers() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("paper.toml").read_text("utf-8"))


OUTPUTS = ("classification", "clustering", "links", "map", "dimension", "convergence", "pooling")
SHARES = (0.3, 0.5, 0.7)
HELD_OUT = 0.1  # share of the edges that are removed and predicted
NO_LIMIT = 1_000  # more runs than anybody requests


@dataclass(frozen=True, slots=True)
class Column:
    """A method as the tables show it: its settings, its heading and its group of methods."""

    name: str
    method: str
    heading: str
    group: str
    settings: dict[str, Any] = field(default_factory=dict)
    most_runs: int = NO_LIMIT


LINKS, BOTH, OURS, ATTRIBUTES = "links alone", "links and attributes", "Neural-Brane", "attribute baselines"
RELEASED, DEFAULT, PAPER = "neural-brane", "neural-brane-default", "neural-brane-paper"

COLUMNS = (
    Column("deepwalk", "deepwalk", "DeepWalk", LINKS),
    Column("line", "line", "LINE", LINKS),
    Column("node2vec", "node2vec", "node2vec", LINKS),
    Column("nnmf", "nnmf", "NNMF", BOTH),
    Column("deepwalk+nnmf", "deepwalk+nnmf", "DW+NNMF", BOTH),
    Column("graphsage", "graphsage", "GraphSAGE", BOTH, most_runs=3),
    Column("pte", "pte", "PTE-KL", BOTH),
    Column("tadw", "tadw", "TADW", BOTH),
    Column("aane", "aane", "AANE", BOTH),
    Column("graph2gauss", "graph2gauss", "G2G", BOTH, most_runs=3),
    Column(RELEASED, "neural-brane", "released recipe", OURS, {"recipe": "released"}),
    Column(DEFAULT, "neural-brane", "default", OURS, {"recipe": "default"}),
    Column(PAPER, "neural-brane", "paper's text", OURS, {"recipe": "paper"}),
    Column("attributes", "attributes", "attributes alone", ATTRIBUTES),
    Column("smoothed-attributes", "smoothed-attributes", "two-hop mean", ATTRIBUTES),
    Column("propagated-attributes", "propagated-attributes", "joint SVD", ATTRIBUTES),
)
RECIPES = (RELEASED, DEFAULT, PAPER)
MAPS = ("tadw", "aane", RELEASED)
CLUSTERED = ("citeseer", "arnetminer")  # datasets of the paper's clustering figure
LINKED = ("deepwalk", "tadw", RELEASED, DEFAULT, "attributes", "smoothed-attributes", "propagated-attributes")
LINKS_ONLY = ("arnetminer-15753",)  # datasets without available attributes; only methods on links are shown


@dataclass(frozen=True, slots=True)
class Scale:
    """The amount of computation: all of it, or a little of everything."""

    name: str
    datasets: tuple[str, ...]
    mapped: tuple[str, ...]  # datasets shown as maps
    runs: int = 10
    link_runs: int = 3  # separate trainings, without the edges to be predicted
    splits: int = 10
    starts: int = 10
    dim: int = DIM
    dims: tuple[int, ...] = (50, 100, 150, 200, 250, 300)
    small: bool = False  # True if methods train with their `small` parameters
    sizes: dict[str, Any] = field(default_factory=dict)  # parameters that replace a method's own
    device: str = "cpu"  # device of the methods that can train on a GPU

    def scoring(self, *, mapped: bool) -> dict[str, Any]:
        """Return the scores of a training; `mapped` adds a 2-D map of its vectors."""
        return {
            "classes": {"train": list(SHARES), "splits": self.splits, "C": 1.0, "tuning": TUNING, "as_they_are": True},
            "clusters": {"starts": self.starts},
            "map": mapped,
        }


FULL = Scale(
    "full",
    datasets=("citeseer", "arnetminer", "arnetminer-15753", "caltech36", "reed98"),
    mapped=("caltech36", "reed98"),
)


def quick(*datasets: str) -> Scale:
    """Return a small scale: on the named datasets, else on caltech36 if its files are here, else on stdlib."""
    if not datasets:
        here = {record.name for record in known_datasets.list_datasets() if record.state in ("here", "cached")}
        datasets = ("caltech36" if "caltech36" in here else "stdlib",)
    return Scale(
        "quick", datasets, mapped=datasets, runs=2, link_runs=1, splits=2, starts=2, dim=16, dims=(8, 16), small=True
    )


@dataclass(frozen=True, slots=True)
class Series:
    """The runs of one setting on one dataset; their mean is a cell of a table or a point of a figure."""

    output: str
    column: Column
    dataset: str
    trainings: tuple[Training, ...]
    setting: dict[str, Any] = field(default_factory=dict)  # the parameters that a figure varies
    tuned: bool = False  # True if `brane tune` found the parameters for this dataset


def plan(
    outputs: Iterable[str], columns: Sequence[Column], datasets: Iterable[str], scale: Scale, *, runs: int
) -> list[Series]:
    """Return all series that the outputs need; a training that serves several outputs is equal in each."""
    by_name = {column.name: column for column in columns}
    return [
        _series(output, column, dataset, setting, scale, runs)
        for output in outputs
        for dataset in datasets
        for column, setting in _shown(output, by_name, dataset, scale)
    ]


def _shown(output: str, columns: dict[str, Column], dataset: str, scale: Scale) -> list[tuple[Column, dict[str, Any]]]:
    """Return the columns that an output shows for a dataset, with the settings that it varies."""
    if output in ("classification", "clustering"):
        every = dataset not in LINKS_ONLY
        return [(column, {}) for column in columns.values() if every or column.group == LINKS]
    if dataset in LINKS_ONLY:
        return []
    if output == "links":
        return [(column, {}) for name, column in columns.items() if name in LINKED]
    if output == "map":
        return [(columns[name], {}) for name in MAPS if name in columns and dataset in scale.mapped]
    if RELEASED not in columns:
        return []
    settings: dict[str, list[dict[str, Any]]] = {
        "dimension": [{"dim": dim} for dim in scale.dims],
        "convergence": [{}],
        "pooling": [{"pooling": "max"}, {"pooling": "sum"}],
    }
    return [(columns[RELEASED], setting) for setting in settings[output]]


def _series(output: str, column: Column, dataset: str, setting: dict[str, Any], scale: Scale, runs: int) -> Series:
    count = min(runs, column.most_runs, {"map": 1, "links": scale.link_runs}.get(output, runs))
    method = METHODS[column.method]
    found = None if column.settings else tuned().get(dataset, {}).get(column.method)
    replaced = (method.small if scale.small else {}) | scale.sizes | {"device": scale.device}
    parameters = {"dim": scale.dim} | (found.parameters if found else column.settings)
    parameters |= {name: value for name, value in replaced.items() if name in method.parameters()} | setting
    drawn = dataset in scale.mapped and column.name in MAPS
    trainings = []
    for seed in range(count):  # links have separate trainings; all other scores share one
        scoring = {"links": {"share": HELD_OUT}} if output == "links" else scale.scoring(mapped=drawn and seed == 0)
        trainings.append(Training(column.method, parameters, dataset, seed, scoring))
    return Series(output, column, dataset, tuple(trainings), setting, tuned=found is not None)


def choose_columns(names: Sequence[str]) -> list[Column]:
    """Return the columns of the named methods in the order of the table; without names, all that can be trained."""
    check_names(names, [column.method for column in COLUMNS] + list(RECIPES), "method")
    if not names:
        return [column for column in COLUMNS if column.method not in uninstalled_methods()]
    return [column for column in COLUMNS if column.name in names or column.method in names]


def uninstalled_methods() -> list[str]:
    """Return the methods of the paper's tables whose packages are not installed."""
    return [name for name in untrainable() if name in {column.method for column in COLUMNS}]


def choose_datasets(names: Sequence[str], scale: Scale) -> list[str]:
    """Return the named datasets, or those of the scale if none is named."""
    check_names(names, list(registry()), "dataset")
    return list(dict.fromkeys(names)) or list(scale.datasets)
