"""Summarise finished trainings as results, and judge the paper's claims by them."""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.compare import paired
from neural_brane.experiments.reproduce import plan
from neural_brane.experiments.reproduce.plan import (
    ATTRIBUTES,
    CLUSTERED,
    DEFAULT,
    OURS,
    RECIPES,
    RELEASED,
    SHARES,
    Series,
)
from neural_brane.experiments.store import Record, Store, fingerprint, machine_name
from neural_brane.experiments.tune import TUNING
from neural_brane.files.storage import atomic

CLUSTERING = ("nmi", "purity", "ari")
WITHOUT_SHARES = {  # output: measures that do not depend on the share of training nodes
    "clustering": CLUSTERING,
    "map": CLUSTERING,
    "links": ("auc_of_cosines", "scorer_auc"),
    "convergence": ("loss",),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table or figure: the mean over runs, its time and memory, and the published number."""

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
    values: list[float]  # one per run: the mean over its splits
    seconds: float  # mean over runs of the seconds of a training
    peak_mb: float  # largest peak memory of a training process
    published: float | None
    published_on: str  # dataset of the published number
    difference: float | None
    digest: str
    parameters: dict[str, Any]
    versions: dict[str, str]
    machine: str
    curve: list[list[float]] = field(default_factory=list)  # (mean, sd) of the loss by epoch
    tuned: bool = False  # True if a search found its parameters
    fingerprint: str = ""  # fingerprint of the method when the cell was computed

    @property
    def on_gpu(self) -> bool:
        """True if its trainings ran on a GPU."""
        return self.parameters.get("device") == "cuda"

    @property
    def comparable(self) -> bool:
        """True if the published number belongs to the same graph."""
        return self.published is not None and self.published_on == self.dataset


@dataclass(frozen=True, slots=True)
class Results:
    """All measurements of a reproduction."""

    scale: str
    cells: list[Cell]
    data: dict[str, Record]
    maps: dict[tuple[str, str], Record]  # by dataset and column
    failures: list[dict[str, Any]]
    tuning: float = 0.0  # share of the labelled nodes reserved for searches; no split tests these nodes

    def find(self, output: str, measure: str, *, dataset: str = "", column: str = "", **setting: Any) -> list[Cell]:
        """Return the matching cells of an output; `setting` may contain `train` and the parameters a figure varies."""
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
        """Return the datasets that have cells of an output, in order."""
        return list(dict.fromkeys(one.dataset for one in self.cells if one.output == output))


def summarise(series: Sequence[Series], store: Store, *, scale: str, failures: Sequence[dict[str, Any]]) -> Results:
    """Return the results of all series; failed runs are left out of the means."""
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
    """Return the measures that an output shows, each with its share of training nodes or None."""
    if output in WITHOUT_SHARES:
        return [(name, None) for name in WITHOUT_SHARES[output]]
    names = ("macro_f1", "micro_f1") if output == "classification" else ("macro_f1",)
    return [(name, share) for name in names for share in SHARES]


def _cell(series: Series, records: list[Record], code: str, measure: str, train: float | None) -> Cell:
    """Return the cell of one measure: per run the last loss, or the mean over splits."""
    curve = []
    if measure == "loss":
        values = [float(record["loss"][-1]) for record in records]
        epochs = zip(*(record["loss"] for record in records), strict=False)  # ends with the shortest run
        curve = [[round(float(np.mean(losses)), 6), round(Repeats(losses).sd, 6)] for losses in epochs]
    else:
        found = [record[measure] if train is None else record[measure][f"{train:g}"] for record in records]
        values = [float(np.mean(one)) for one in found]
    reference = _published(series, measure, train)
    mean, column = float(np.mean(values)), series.column
    return Cell(
        output=series.output, dataset=series.dataset, column=column.name, method=column.method,
        heading=column.heading if column.group != OURS else f"{OURS} ({column.heading})", group=column.group,
        measure=measure, train=train, setting=series.setting, mean=round(mean, 6),
        sd=round(Repeats(tuple(values)).sd, 6), runs=len(values), values=[round(value, 6) for value in values],
        seconds=round(float(np.mean([record["seconds"] for record in records])), 3),
        peak_mb=max(record["peak_mb"] for record in records), published=reference,
        published_on=plan.counterpart(series.dataset) if reference is not None else "",
        difference=None if reference is None else round(mean - reference, 6), digest=records[0]["data"]["digest"],
        parameters=series.trainings[0].deciding_parameters(),
        versions=records[0]["machine"]["packages"] | {"python": records[0]["machine"]["python"]},
        machine="; ".join(dict.fromkeys(machine_name(record["machine"]) for record in records)), curve=curve,
        tuned=series.tuned, fingerprint=code,
    )  # fmt: skip


def _published(series: Series, measure: str, train: float | None) -> float | None:
    """Return the published number of a series, or None; the paper prints no numbers for its other figures."""
    method, dataset = series.column.method, plan.counterpart(series.dataset)
    if series.output == "classification" and measure == "macro_f1" and train is not None:
        row = plan.macro_f1(method, dataset)
        return None if row is None else row[SHARES.index(train)]
    return plan.printed("nmi", dataset).get(method) if (series.output, measure) == ("clustering", "nmi") else None


def read_json(path: Path) -> Results:
    """Read the results that `write_json` wrote; maps are not among them."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    cells = [Cell(**one) for one in kept["cells"]]
    return Results(kept["scale"], cells, kept["data"], {}, kept["failures"], kept.get("tuning", 0.0))


def stale(results: Results) -> list[str]:
    """Return the methods that compute other results than some of their cells, if these have fingerprints."""
    known = {(one.method, one.fingerprint): one for one in results.cells if one.fingerprint}
    changed = (one.method for one in known.values() if fingerprint(one.method, one.parameters) != one.fingerprint)
    return list(dict.fromkeys(changed))


def write_json(results: Results, path: Path, **more: Any) -> None:
    """Write results.json; `more` adds entries."""
    record = {"scale": results.scale, "tuning": results.tuning, "data": results.data, "failures": results.failures}
    record |= more
    record["cells"] = [asdict(cell) for cell in results.cells]
    with atomic(path) as draft:
        draft.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_csv(results: Results, path: Path) -> None:
    """Write results.csv: one row per cell, nested values as JSON."""
    rows = [
        {
            name: json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
            for name, value in asdict(cell).items()
            if name not in ("values", "curve")
        }
        for cell in results.cells
    ]
    with atomic(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else ["output"])
        writer.writeheader()
        writer.writerows(rows)


SIGNIFICANCE = 0.01  # the paper's level of significance


@dataclass(frozen=True, slots=True)
class Duel:
    """Neural-Brane and its best rival in one row of the table."""

    dataset: str
    train: float | None
    rivals: str  # group of the rival: "methods of the paper" or "attribute baselines"; else the rival's heading
    ours: Cell
    rival: Cell
    t: float | None  # paired t-test over the runs that both have; None if there are too few
    p: float | None

    @property
    def difference(self) -> float:
        """The lead of Neural-Brane; negative if the rival leads."""
        return self.ours.mean - self.rival.mean

    @property
    def runs(self) -> int:
        """The number of runs that both have."""
        return min(self.ours.runs, self.rival.runs)

    @property
    def significant(self) -> bool:
        """True if the test's p-value is below SIGNIFICANCE."""
        return self.p is not None and self.p < SIGNIFICANCE

    @property
    def outcome(self) -> str:
        """The result of the test: "won", "lost", or "open" if not significant."""
        return "open" if not self.significant else "won" if self.difference > 0 else "lost"

    def as_dict(self) -> dict[str, object]:
        """Return all fields as plain values, for JSON."""
        return {
            "dataset": self.dataset, "train": self.train, "rivals": self.rivals, "rival": self.rival.column,
            "neural_brane": self.ours.mean, "runner_up": self.rival.mean, "difference": round(self.difference, 6),
            "runs": self.runs, "t": self.t, "p": self.p,
        }  # fmt: skip


def duels(results: Results, column: str = RELEASED) -> list[Duel]:
    """Compare a recipe in every row of the classification table with the paper's methods, then with the baselines."""
    found = []
    for ours in results.find("classification", "macro_f1", column=column):
        row = results.find("classification", "macro_f1", dataset=ours.dataset, train=ours.train)
        paper = [one for one in row if one.group not in (OURS, ATTRIBUTES)]
        baselines = [one for one in row if one.group == ATTRIBUTES]
        for name, rivals in (("methods of the paper", paper), ("attribute baselines", baselines)):
            if rivals:
                found.append(duel(ours, best(rivals), name))
    return found


def duel(ours: Cell, rival: Cell, rivals: str = "") -> Duel:
    """Compare two cells by a paired test of their runs."""
    t, p = paired(ours.values, rival.values)
    return Duel(ours.dataset, ours.train, rivals or rival.heading, ours, rival, t, p)


def best(cells: Sequence[Cell]) -> Cell:
    """Return the cell with the highest mean."""
    return max(cells, key=lambda one: one.mean)


# The functions below judge the paper's claims; every number and verdict in their sentences is computed.
#
# A claimed difference holds if it is significant in every row. It does not hold if the opposite is significant in at
# least one row. Otherwise the results are inconclusive.

HOLDS, FAILS, INCONCLUSIVE = "holds", "does not hold", "inconclusive"
SLACK = 0.02  # a score at most this far below the published one counts as reproduced


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, whether it holds here, and the numbers that show it."""

    claim: str
    verdict: str
    evidence: str
    count: str = ""  # for example "3 of 4 graphs"

    @property
    def headline(self) -> str:
        """The verdict with its count."""
        return f"{self.verdict} ({self.count})" if self.count else self.verdict


def claims(results: Results) -> list[Claim]:
    """Return every claim that these results have numbers for, in the order of the report."""
    parts = (
        _ranking, _shortfalls, _chance, _pairs, _clustering, _lead_in_clusters, _dimension, _convergence, _pooling,
        _time,
    )  # fmt: skip
    return [claim for part in parts for claim in part(results)]


def verdict(outcomes: Sequence[str]) -> str:
    """Return the verdict on a claim from the outcomes of its rows: "won", "lost" or "open".

    >>> verdict(["won", "open"]), verdict(["won", "lost", "open"])
    ('inconclusive', 'does not hold')
    """
    if "lost" in outcomes:
        return FAILS
    return HOLDS if all(one == "won" for one in outcomes) else INCONCLUSIVE


def _judged(claim: str, outcomes: Sequence[str], evidence: str, unit: str) -> Claim:
    return Claim(claim, verdict(outcomes), evidence, f"{outcomes.count('won')} of {len(outcomes)} {unit}")


def _ranking(results: Results) -> Iterator[Claim]:
    ten = "Neural-Brane outperforms all ten competing methods at every training ratio."
    plain = "(Not in the paper) Neural-Brane is better than plain spectral baselines on the attributes."
    for claim, rivals in ((ten, "methods of the paper"), (plain, "attribute baselines")):
        rows = [one for one in duels(results) if one.rivals == rivals]
        if rows:
            others = [one for one in duels(results, DEFAULT) if one.rivals == rivals]
            default = f" With the default recipe: {_leads(others)}." if others else ""
            evidence = f"It is ahead of all {rivals} in {_leads(rows)}." + _losses(rows) + default
            yield _judged(claim, [one.outcome for one in rows], evidence, "rows")


def _shortfalls(results: Results) -> Iterator[Claim]:
    cells = [one for one in results.find("classification", "macro_f1", column=RELEASED) if one.comparable]
    if cells:
        low = [one for one in cells if (one.difference or 0.0) < -SLACK]
        list_of_low = "; ".join(
            f"{one.dataset} at {100 * (one.train or 0):g} %: {one.mean:.4f} against {one.published:.4f}, "
            f"{-(one.difference or 0.0):.4f} below"
            for one in low
        )
        outcomes = ["won"] * len(cells)
        for at, one in enumerate(cells):
            if one in low:
                _, p = paired(one.values, [(one.published or 0.0) - SLACK] * one.runs)
                outcomes[at] = "lost" if p is not None and p < SIGNIFICANCE else "open"
        claim = f"Neural-Brane's scores (released recipe) are at most {SLACK} below the published ones."
        lower = f" Lower: {list_of_low}; significantly lower: {outcomes.count('lost')}." if low else ""
        yield _judged(claim, outcomes, f"{len(cells) - len(low)} of {len(cells)} scores are.{lower}", "scores")


def _chance(results: Results) -> Iterator[Claim]:
    rows = [one for one in duels(results) if one.rivals == "methods of the paper" and one.p is not None]
    if rows:
        outcomes = [one.outcome for one in rows]
        claim = f"The lead over the runner-up is statistically significant (paired t-test, p < {SIGNIFICANCE})."
        ahead = f"Neural-Brane is significantly ahead in {outcomes.count('won')} of {len(rows)} rows"
        behind = f"significantly behind in {outcomes.count('lost')}. The test pairs runs with the same splits."
        yield _judged(claim, outcomes, f"{ahead} and {behind}", "rows")


def _pairs(results: Results) -> Iterator[Claim]:
    """Judge the paper's remarks on pairs of methods."""
    for better, worse in ((RELEASED, "graph2gauss"), ("tadw", "deepwalk"), ("deepwalk+nnmf", "deepwalk")):
        rows = [
            duel(one, other)
            for one in results.find("classification", "macro_f1", column=better)
            for other in results.find("classification", "macro_f1", column=worse, dataset=one.dataset, train=one.train)
        ]
        if rows:
            lead = sum(row.difference for row in rows) / len(rows)
            claim = f"{rows[0].ours.heading} is better than {rows[0].rival.heading}."
            evidence = f"It is ahead in {_leads(rows)}; the mean difference is {lead:+.3f}.{_gains(rows)}"
            yield _judged(claim, [row.outcome for row in rows], evidence, "rows")


def _gains(rows: Sequence[Duel]) -> str:
    """Return Neural-Brane's lead in percent on citeseer, the graph for which the paper states it."""
    stated = [row for row in rows if row.dataset == "citeseer" and row.ours.column == RELEASED]
    if not stated or any(row.ours.published is None or row.rival.published is None for row in stated):
        return ""
    here = ", ".join(f"{row.ours.mean / row.rival.mean - 1:+.1%}" for row in stated)
    there = ", ".join(f"{(row.ours.published or 0) / (row.rival.published or 1) - 1:+.1%}" for row in stated)
    return f" On citeseer the difference is {here}; published: {there}."


def _clustering(results: Results) -> Iterator[Claim]:
    for dataset in results.datasets("clustering"):
        cells = results.find("clustering", "nmi", dataset=dataset)
        ours = [one for one in cells if one.column == RELEASED]
        rivals = [one for one in cells if one.group not in (OURS, ATTRIBUTES)]
        baselines = [one for one in cells if one.group == ATTRIBUTES]
        if not ours or not rivals:
            continue
        row = duel(ours[0], best(rivals))
        first, rival = row.ours, row.rival
        apart = f"{abs(first.mean / rival.mean - 1):.1%} {'higher' if row.difference > 0 else 'lower'}"
        also = "".join(f" With the default recipe: {one.mean:.4f}." for one in cells if one.column == DEFAULT)
        if baselines and best(baselines).mean > first.mean:
            also += f" The attribute baseline {best(baselines).heading} has {best(baselines).mean:.4f}."
        source = f" (published: {first.published:.4f})" if first.published is not None and first.comparable else ""
        here = "" if dataset in CLUSTERED else "(Not in the paper, which clusters citeseer and Arnetminer only) "
        claim = f"{here}Neural-Brane's clusters have the best NMI on {dataset}."
        found = f"NMI {first.mean:.4f}{source}; the best competitor, {rival.heading}, has {rival.mean:.4f},"
        yield Claim(claim, verdict([row.outcome]), f"{found} so Neural-Brane's is {apart}{_unsure(row)}.{also}")


def _lead_in_clusters(results: Results) -> Iterator[Claim]:
    """State the paper's lead over its best competitor on another version of a graph; it prints only the percentage."""
    for dataset in results.datasets("clustering"):
        other = plan.counterpart(dataset)
        for name, lead in plan.printed("nmi_lead", other).items() if other != dataset else ():
            ours = results.find("clustering", "nmi", dataset=dataset, column=RELEASED)
            theirs = results.find("clustering", "nmi", dataset=dataset, column=name)
            if ours and theirs:
                rival, why = theirs[0].heading, "and the paper does not print the two scores."
                claim = f"On {dataset} the NMI of Neural-Brane's clusters is {lead:.1%} above that of {rival}."
                evidence = f"Here the NMI is {ours[0].mean:.4f} and {theirs[0].mean:.4f}, but on another version of the"
                yield Claim(claim, INCONCLUSIVE, f"{evidence} graph, {why}")


def _dimension(results: Results) -> Iterator[Claim]:
    changes, outcomes = [], []
    for dataset in results.datasets("dimension"):
        points = results.find("dimension", "macro_f1", dataset=dataset, train=0.7)
        points.sort(key=lambda one: one.setting["dim"])
        if len(points) < 3:
            continue
        low, middle, high = points[0], points[len(points) // 2 - (len(points) % 2 == 0)], points[-1]
        rise, after = duel(middle, low), duel(high, middle)
        outcomes.append("lost" if after.significant else rise.outcome)
        widths = [one.setting["dim"] for one in (low, middle, high)]
        found = f"{dataset}: {rise.difference:+.3f} from {widths[0]} to {widths[1]}{_unsure(rise)},"
        changes.append(f"{found} {after.difference:+.3f} from there to {widths[2]}{_unsure(after)}")
    if changes:
        held = f"It rises significantly and then does not change significantly on {outcomes.count('won')} of"
        evidence = f"{held} {len(changes)} graphs. {'; '.join(changes)}."
        yield _judged("Macro-F1 first rises with the dimension and then stays level.", outcomes, evidence, "graphs")


def _convergence(results: Results) -> Iterator[Claim]:
    shares, outcomes = [], []
    for cell in results.find("convergence", "loss"):
        curve = [mean for mean, _ in cell.curve]
        if len(curve) <= 10:
            continue
        share = (curve[0] - curve[9]) / (curve[0] - min(curve)) if curve[0] > min(curve) else 1.0
        outcomes.append("won" if share >= 0.9 else "lost")
        shares.append(f"{cell.dataset}: {share:.0%}, loss {curve[9]:.3f} at epoch 10 and {curve[-1]:.3f} at the end")
    if shares:
        done = f"The first 10 epochs make at least 90 % of the decrease on {outcomes.count('won')} of {len(shares)}"
        evidence = f"{done} graphs. {'; '.join(shares)}."
        yield _judged("The loss converges within about 10 epochs.", outcomes, evidence, "graphs")


def _pooling(results: Results) -> Iterator[Claim]:
    rows = []
    for dataset in results.datasets("pooling"):
        pair = [results.find("pooling", "macro_f1", dataset=dataset, train=0.7, pooling=how) for how in ("max", "sum")]
        if all(pair):
            rows.append(duel(pair[0][0], pair[1][0]))
    if rows:
        pairs = (f"{row.dataset}: {row.ours.mean:.4f} against {row.rival.mean:.4f}{_unsure(row)}" for row in rows)
        claim, evidence = "Max pooling is better than sum pooling.", f"At 70 %: {'; '.join(pairs)}."
        yield _judged(claim, [row.outcome for row in rows], evidence, "graphs")


def _time(results: Results) -> Iterator[Claim]:
    for one in results.find("classification", "macro_f1", column="graphsage", train=0.7):
        other = plan.counterpart(one.dataset)
        if other != one.dataset and plan.macro_f1("graphsage", other) is None:
            claim = f"GraphSAGE does not finish on {one.dataset} within two days on 64 cores."
            took = f"Here it took {one.seconds:,.0f} seconds on {'a GPU' if one.on_gpu else 'one core'}, with our own"
            yield Claim(claim, INCONCLUSIVE, f"{took} implementation and on the smaller version of the graph.")


def _leads(rows: Sequence[Duel]) -> str:
    """Count the rows in which the first of two is ahead, and in which its lead is significant."""
    ahead, sure = sum(row.difference > 0 for row in rows), sum(row.outcome == "won" for row in rows)
    return f"{ahead} of {len(rows)} rows, significantly in {sure}"


def _losses(rows: Sequence[Duel]) -> str:
    """Return a sentence that says, by dataset, which rivals are ahead of Neural-Brane and by how much."""
    lost, losses = [row for row in rows if row.difference <= 0], []
    for dataset in dict.fromkeys(row.dataset for row in lost):
        here = [row for row in lost if row.dataset == dataset]
        shares = "/".join(f"{100 * (row.train or 0):g}" for row in here)
        rivals = " or ".join(dict.fromkeys(row.rival.heading for row in here))
        gaps = [-row.difference for row in here]
        gap = f"{gaps[0]:.3f}" if len(gaps) == 1 else f"{min(gaps):.3f} to {max(gaps):.3f}"
        losses.append(f"on {dataset} at {shares} %, {rivals} is ahead by {gap}")
    return f" In the other rows: {'; '.join(losses)}." if losses else ""


def _unsure(row: Duel) -> str:
    return "" if row.significant else " (not significant)"


@dataclass(frozen=True, slots=True)
class Note:
    """A statement and the numbers behind it."""

    note: str
    evidence: str


def notes(results: Results) -> list[Note]:
    """Return every note that these results have numbers for, in the order of the report."""
    return [note for part in (_recipes, _competitors, _graphs, _versions) for note in part(results)]


def _recipes(results: Results) -> Iterator[Note]:
    distance = {}
    for column in RECIPES:
        cells = [one for one in results.find("classification", "macro_f1", column=column) if one.comparable]
        if cells:
            near = sum(abs(one.difference or 0.0) <= SLACK for one in cells)
            mean = sum(abs(one.difference or 0.0) for one in cells) / len(cells)
            distance[cells[0].heading] = (mean, near, len(cells))
    if len(distance) > 1:
        closest = min(distance, key=lambda name: distance[name])
        distances = "; ".join(f"{name}: {mean:.4f}, {near} of {n}" for name, (mean, near, n) in distance.items())
        _, near, count = distance[closest]
        yield Note(
            f"The recipe that reproduces the published scores is {closest}."
            if near == count
            else f"No recipe reproduces all published scores; the nearest is {closest}.",
            f"Mean distance from the published Macro-F1, and number of scores within {SLACK} of it: {distances}. "
            "Only graphs in the paper's version count.",
        )


def _competitors(results: Results) -> Iterator[Note]:
    """Compare the competitors' scores with the published ones, the likely reason for a different ranking."""
    cells = [one for one in results.find("classification", "macro_f1") if one.comparable]
    cells = [one for one in cells if one.group not in (OURS, ATTRIBUTES)]
    if cells:
        differences = {one.heading: one.difference or 0.0 for one in sorted(cells, key=lambda one: one.difference or 0)}
        most, difference = list(differences.items())[-1]
        above = sum((one.difference or 0.0) > 0 for one in cells)
        mean = sum(one.difference or 0.0 for one in cells) / len(cells)
        yield Note(
            f"{above} of {len(cells)} comparable scores of the competitors are higher than the published ones.",
            f"The mean difference is {mean:+.3f}; the largest is {difference:+.3f}, for {most}. This is the likely "
            "reason if the paper's ranking does not hold here: competitors score higher than published, and "
            "Neural-Brane about as published.",
        )


def _graphs(results: Results) -> Iterator[Note]:
    """Name the graphs whose counts differ from those in the paper."""
    differences = []
    for dataset, facts in results.data.items():
        printed = plan.printed("graph", dataset)
        differences += [
            f"{dataset} has {facts[what]:,} {what}, but {count:,} in the paper"
            for what, count in printed.items()
            if facts[what] not in (0, count)
        ]
        if printed.get("attributes") and not facts["attributes"]:
            differences.append(f"{dataset} has no attributes here, because their file is not available")
    if differences:
        yield Note(
            "Some counts of the published files differ from the paper.",
            f"{'; '.join(differences)}. An edge that a file lists in both directions or repeatedly counts once.",
        )


def _versions(results: Results) -> Iterator[Note]:
    for dataset, facts in results.data.items():
        other = plan.counterpart(dataset)
        if other == dataset:
            continue
        components, there = "", results.data.get(other, {})
        if "components" in facts:
            largest = f"the largest with {facts['largest_component']:,} nodes"
            components = f" It has {facts['components']:,} connected components, {largest}"
            if "components" in there:
                components += f" (the paper's version: {there['components']:,} and {there['largest_component']:,})"
            components += ", so random walks reach only a small part of it."
        nodes = plan.printed("graph", other)["nodes"]
        yield Note(
            f"{dataset} here is not the paper's version of the graph.",
            f"It has {facts['nodes']:,} nodes, the paper's version {nodes:,}. The published scores are shown, but "
            "a difference from them says nothing about a method. Its links partly repeat its attributes, so read its "
            "scores with care." + components,
        )
