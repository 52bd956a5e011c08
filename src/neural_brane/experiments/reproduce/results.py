"""Finished trainings made into results: means over runs beside the paper's numbers, as records, JSON and CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.reproduce import plan
from neural_brane.experiments.reproduce.plan import OURS, SHARES, Series
from neural_brane.experiments.store import Record, Store, fingerprint, machine_name
from neural_brane.experiments.tune import TUNING
from neural_brane.files.storage import atomic

CLUSTERING = ("nmi", "purity", "ari")
LINK_MEASURES = ("auc_of_cosines", "auc", "auc_own")  # the last where a method has a score of its own


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a table or figure: the mean over runs, the time and memory, and the paper's number beside it."""

    output: str
    dataset: str
    column: str
    method: str
    heading: str
    group: str
    measure: str
    train: float | None
    setting: dict[str, Any]
    mean: float
    sd: float
    runs: int
    values: list[float]  # one per run: the mean over its splits or starts
    seconds: float  # of a training, the mean over runs
    peak_mb: float  # the most memory of a process that trained, the largest over runs
    published: float | None
    published_on: str  # the dataset that the published number is of
    difference: float | None
    digest: str
    parameters: dict[str, Any]
    versions: dict[str, str]
    machine: str
    curve: list[list[float]] = field(default_factory=list)  # (mean, sd) of the loss by epoch
    tuned: bool = False  # whether its parameters were found by a search
    fingerprint: str = ""  # of the method, when it was computed

    @property
    def on_gpu(self) -> bool:
        """Whether its trainings ran on a GPU."""
        return self.parameters.get("device") == "cuda"

    @property
    def comparable(self) -> bool:
        """Whether the published number is of the same graph."""
        return self.published is not None and self.published_on == self.dataset


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that was measured, ready to be written, drawn and put in words."""

    scale: str
    cells: list[Cell]
    data: dict[str, Record]
    maps: dict[tuple[str, str], Record]  # by dataset and column
    failures: list[dict[str, Any]]
    tuning: float = 0.0  # the share of the labelled nodes that searches saw and that no split tests

    def find(self, output: str, measure: str, *, dataset: str = "", column: str = "", **setting: Any) -> list[Cell]:
        """The cells of an output that match; `setting` holds `train` and the parameters that a figure varies."""
        train = setting.pop("train", None)
        return [
            one
            for one in self.cells
            if (one.output, one.measure) == (output, measure)
            and dataset in ("", one.dataset)
            and column in ("", one.column)
            and train in (None, one.train)
            and setting.items() <= one.setting.items()
        ]

    def datasets(self, output: str) -> list[str]:
        """The datasets that an output has cells of, in order."""
        return list(dict.fromkeys(one.dataset for one in self.cells if one.output == output))


def summarise(series: Sequence[Series], store: Store, *, scale: str, failures: Sequence[dict[str, Any]]) -> Results:
    """The results of all series; a run that failed is left out of the means."""
    cells: list[Cell] = []
    data: dict[str, Record] = {}
    maps: dict[tuple[str, str], Record] = {}
    for one in series:
        records = [record for training in one.trainings if (record := store.get(training)) is not None]
        if not records:
            continue
        data[one.dataset] = records[0]["data"]
        if one.output == "map":
            maps[one.dataset, one.column.name] = records[0]["map"]
        code = store.fingerprint(one.trainings[0])
        there = [measure for measure in _measures(one.output) if measure[0] in records[0]]
        cells += [_cell(one, records, code, *measure) for measure in there]
    return Results(scale, cells, data, maps, list(failures), TUNING)


def _measures(output: str) -> list[tuple[str, float | None]]:
    """The measures that an output shows, each with its training share where it has one."""
    if output in ("clustering", "map"):
        return [(name, None) for name in CLUSTERING]
    if output == "links":
        return [(name, None) for name in LINK_MEASURES]
    if output == "convergence":
        return [("loss", None)]
    names = ("macro_f1", "micro_f1") if output == "classification" else ("macro_f1",)
    return [(name, share) for name in names for share in SHARES]


def _value(record: Record, measure: str, train: float | None) -> float:
    """A measure of one run: the last loss, or the mean over its splits or starts."""
    if measure == "loss":
        return float(record["loss"][-1])
    return float(np.mean(record[measure] if train is None else record[measure][f"{train:g}"]))


def _cell(series: Series, records: list[Record], code: str, measure: str, train: float | None) -> Cell:
    values = [_value(record, measure, train) for record in records]
    reference = _published(series, measure, train)
    mean, column = float(np.mean(values)), series.column
    return Cell(
        output=series.output,
        dataset=series.dataset,
        column=column.name,
        method=column.method,
        heading=column.heading if column.group != OURS else f"{OURS} ({column.heading})",
        group=column.group,
        measure=measure,
        train=train,
        setting=series.setting,
        mean=round(mean, 6),
        sd=round(Repeats(tuple(values)).sd, 6),
        runs=len(values),
        values=[round(value, 6) for value in values],
        seconds=round(float(np.mean([record["seconds"] for record in records])), 3),
        peak_mb=max(record["peak_mb"] for record in records),
        published=reference,
        published_on=plan.counterpart(series.dataset) if reference is not None else "",
        difference=None if reference is None else round(mean - reference, 6),
        digest=records[0]["data"]["digest"],
        parameters=series.trainings[0].deciding_parameters(),
        versions=records[0]["machine"]["packages"] | {"python": records[0]["machine"]["python"]},
        machine="; ".join(dict.fromkeys(machine_name(record["machine"]) for record in records)),
        curve=_curve(records) if series.output == "convergence" else [],
        tuned=series.tuned,
        fingerprint=code,
    )


def _published(series: Series, measure: str, train: float | None) -> float | None:
    """The paper's number beside a series; its other figures have no numbers."""
    method, dataset = series.column.method, plan.counterpart(series.dataset)
    if series.output == "classification" and measure == "macro_f1" and train is not None:
        row = plan.macro_f1(method, dataset)
        return None if row is None else row[SHARES.index(train)]
    return plan.nmi(method, dataset) if (series.output, measure) == ("clustering", "nmi") else None


def _curve(records: list[Record]) -> list[list[float]]:
    epochs = min(len(record["loss"]) for record in records)
    table = np.array([record["loss"][:epochs] for record in records])
    return [[round(float(column.mean()), 6), round(Repeats(tuple(column)).sd, 6)] for column in table.T]


def read_json(path: Path) -> Results:
    """The results that `write_json` wrote, without their maps."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    cells = [Cell(**one) for one in kept["cells"]]
    return Results(kept["scale"], cells, kept["data"], {}, kept["failures"], kept.get("tuning", 0.0))


def stale(results: Results) -> list[str]:
    """The methods that compute something else today than when some of their cells were computed.

    A cell that does not say what its method was then is left out.
    """
    known = {(one.method, one.fingerprint): one for one in results.cells if one.fingerprint}
    changed = (one.method for one in known.values() if fingerprint(one.method, one.parameters) != one.fingerprint)
    return list(dict.fromkeys(changed))


def write_json(results: Results, path: Path, **more: Any) -> None:
    """Write results.json."""
    record = {"scale": results.scale, "tuning": results.tuning, "data": results.data, "failures": results.failures}
    record |= more
    record["cells"] = [asdict(cell) for cell in results.cells]
    with atomic(path) as draft:
        draft.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_csv(results: Results, path: Path) -> None:
    """Write results.csv: a line per cell, nested values as JSON."""
    rows = [
        {name: _flat(value) for name, value in asdict(cell).items() if name not in ("values", "curve")}
        for cell in results.cells
    ]
    with atomic(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["output"])
        writer.writeheader()
        writer.writerows(rows)


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
