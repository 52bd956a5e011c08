"""The paper's claims, judged by these results: every number and verdict in the sentences is computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from neural_brane.reproduce import paper
from neural_brane.reproduce.duels import CHANCE, Duel, best, duels
from neural_brane.reproduce.plan import ATTRIBUTES, DEFAULT, OURS, RECIPES, RELEASED
from neural_brane.reproduce.results import Cell, Results

HOLDS, PARTLY, FAILS, NOTE = "holds here", "holds in part", "does not hold here", "note"
SLACK = 0.02  # a cell that is lower than the paper's by no more than this counts as reproduced


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, whether it holds here, and the numbers that show it."""

    claim: str
    verdict: str
    evidence: str


def claims(results: Results) -> list[Claim]:
    """Every claim that these results can judge, in the order of the report."""
    parts = (
        _ranking, _recipes, _shortfalls, _chance, _pairs, _clustering, _dimension, _convergence, _pooling, _versions,
        _time,
    )  # fmt: skip
    return [claim for part in parts for claim in part(results)]


def _ranking(results: Results) -> Iterator[Claim]:
    ten = "Neural-Brane outperforms all ten competing methods at every training ratio."
    plain = "(Not in the paper) Neural-Brane is better than plain spectral baselines on the attributes."
    for claim, rivals, first, among in (
        (ten, "methods of the paper", "first", " against the methods of the paper that were run"),
        (plain, "attribute baselines", "ahead of the best of them", ""),
    ):
        rows = [duel for duel in duels(results) if duel.rivals == rivals]
        if rows:
            won, lost = _split(rows)
            evidence = f"It is {first} in {len(won)} of {len(rows)} rows{among}." + _losses(lost)
            yield Claim(claim, _verdict(len(won), len(rows)), evidence + _default(results, rivals))


def _recipes(results: Results) -> Iterator[Claim]:
    distance = {}
    for column in RECIPES:
        cells = _comparable(results, column)
        if cells:
            near = sum(abs(one.difference or 0.0) <= SLACK for one in cells)
            mean = sum(abs(one.difference or 0.0) for one in cells) / len(cells)
            distance[cells[0].heading] = (mean, near, len(cells))
    if len(distance) > 1:
        closest = min(distance, key=lambda name: distance[name])
        told = "; ".join(f"{name}: {mean:.4f}, {near} of {n}" for name, (mean, near, n) in distance.items())
        _, near, all_of_them = distance[closest]
        yield Claim(
            f"The recipe that reproduces the published figures is {closest}."
            if near == all_of_them
            else f"No recipe reproduces all published figures; the nearest is {closest}.",
            NOTE,
            f"Mean distance from the published Macro-F1, and cells within {SLACK}: {told}. "
            "Counted on the graphs that are the paper's own.",
        )


def _shortfalls(results: Results) -> Iterator[Claim]:
    cells = _comparable(results, RELEASED)
    if cells:
        low = [one for one in cells if (one.difference or 0.0) < -SLACK]
        told = "; ".join(
            f"{_row(one)}: {one.mean:.4f} against {one.published:.4f}, {-(one.difference or 0.0):.4f} below"
            for one in low
        )
        yield Claim(
            f"Neural-Brane's own cells (released recipe) come out no lower than the paper's minus {SLACK}.",
            _verdict(len(cells) - len(low), len(cells)),
            f"{len(cells) - len(low)} of {len(cells)} cells do." + (f" Below: {told}." if low else ""),
        )


def _chance(results: Results) -> Iterator[Claim]:
    rows = [duel for duel in duels(results) if duel.rivals == "methods of the paper" and duel.p is not None]
    if rows:
        sure = [duel for duel in rows if duel.significant and duel.difference > 0]
        worse = [duel for duel in rows if duel.significant and duel.difference < 0]
        yield Claim(
            f"The lead over the runner-up is statistically significant (paired t-test, p < {CHANCE}).",
            _verdict(len(sure), len(rows)),
            f"A lead that chance does not explain in {len(sure)} of {len(rows)} rows"
            + (f"; a deficit that it does not explain in {len(worse)}" if worse else "")
            + ". The test pairs runs, which have the same splits.",
        )


def _pairs(results: Results) -> Iterator[Claim]:
    """The paper's remarks on pairs of competitors."""
    for better, worse in (("tadw", "deepwalk"), ("deepwalk+nnmf", "deepwalk")):
        rows = [
            (one, other)
            for one in results.find("classification", "macro_f1", column=better)
            for other in results.find("classification", "macro_f1", column=worse, dataset=one.dataset, train=one.train)
        ]
        if rows:
            won = [one for one, other in rows if one.mean > other.mean]
            lead = sum(one.mean - other.mean for one, other in rows) / len(rows)
            first, second = rows[0][0].heading, rows[0][1].heading
            yield Claim(
                f"{first} is better than {second}.",
                _verdict(len(won), len(rows)),
                f"In {len(won)} of {len(rows)} rows, by {lead:+.3f} in the mean.",
            )


def _clustering(results: Results) -> Iterator[Claim]:
    for dataset in results.datasets("clustering"):
        cells = results.find("clustering", "nmi", dataset=dataset)
        ours = [one for one in cells if one.column == RELEASED]
        rivals = [one for one in cells if one.group not in (OURS, ATTRIBUTES)]
        baselines = [one for one in cells if one.group == ATTRIBUTES]
        if not ours or not rivals:
            continue
        first, rival = ours[0], best(rivals)
        also = "".join(f" With the default recipe: {one.mean:.4f}." for one in cells if one.column == DEFAULT)
        if baselines and best(baselines).mean > first.mean:
            also += f" The attribute baseline {best(baselines).heading} has {best(baselines).mean:.4f}."
        paper = f" (published: {first.published:.4f})" if first.published is not None and first.comparable else ""
        yield Claim(
            f"Neural-Brane's clusters are the best on {dataset} (NMI).",
            _verdict(int(first.mean > rival.mean), 1),
            f"NMI {first.mean:.4f}{paper}; the best competitor, {rival.heading}, has {rival.mean:.4f}, "
            f"so Neural-Brane is {abs(first.mean / rival.mean - 1):.1%} {_word(first.mean - rival.mean)}." + also,
        )


def _dimension(results: Results) -> Iterator[Claim]:
    told, held = [], 0
    for dataset in results.datasets("dimension"):
        points = results.find("dimension", "macro_f1", dataset=dataset, train=0.7)
        points.sort(key=lambda one: one.setting["dim"])
        if len(points) < 3:
            continue
        low, middle, high = points[0], points[len(points) // 2 - (len(points) % 2 == 0)], points[-1]
        rise, after = middle.mean - low.mean, high.mean - middle.mean
        held += rise > 0 and abs(after) <= SLACK
        widths = [one.setting["dim"] for one in (low, middle, high)]
        told.append(f"{dataset}: {rise:+.3f} from {widths[0]} to {widths[1]}, {after:+.3f} from there to {widths[2]}")
    if told:
        yield Claim(
            "Macro-F1 first rises with the dimension and then stays level.",
            _verdict(held, len(told)),
            f"Rises, then changes by no more than {SLACK}, on {held} of {len(told)} graphs. {'; '.join(told)}.",
        )


def _convergence(results: Results) -> Iterator[Claim]:
    told, held = [], 0
    for cell in results.find("convergence", "loss"):
        curve = [mean for mean, _ in cell.curve]
        if len(curve) <= 10:
            continue
        share = (curve[0] - curve[9]) / (curve[0] - min(curve)) if curve[0] > min(curve) else 1.0
        held += share >= 0.9
        told.append(f"{cell.dataset}: {share:.0%} of the whole fall, loss {curve[9]:.3f} then {curve[-1]:.3f}")
    if told:
        yield Claim(
            "The loss converges within about 10 epochs.",
            _verdict(held, len(told)),
            f"By epoch 10 at least 90 % of the fall is done on {held} of {len(told)} graphs. {'; '.join(told)}.",
        )


def _pooling(results: Results) -> Iterator[Claim]:
    told, held = [], 0
    for dataset in results.datasets("pooling"):
        pair = [results.find("pooling", "macro_f1", dataset=dataset, train=0.7, pooling=how) for how in ("max", "sum")]
        if all(pair):
            most, total = (one[0].mean for one in pair)
            held += most > total
            told.append(f"{dataset}: {most:.4f} against {total:.4f}")
    if told:
        yield Claim(
            "Max pooling is better than sum pooling.",
            _verdict(held, len(told)),
            f"On {held} of {len(told)} graphs at 70 %. {'; '.join(told)}.",
        )


def _versions(results: Results) -> Iterator[Claim]:
    for dataset, facts in results.data.items():
        other = paper.counterpart(dataset)
        if other != dataset:
            nodes = int(other.rsplit("-", 1)[1])
            yield Claim(
                f"{dataset} here is not the paper's version of it.",
                NOTE,
                f"It has {facts['nodes']:,} nodes, the paper's has {nodes:,}. The published figures stand beside ours, "
                "but a difference between them says nothing about a method. Its links partly restate its attributes, "
                "so its scores want care.",
            )


def _time(results: Results) -> Iterator[Claim]:
    sage = results.find("classification", "macro_f1", column="graphsage", train=0.7)
    unfinished = [one for one in sage if paper.macro_f1("graphsage", paper.counterpart(one.dataset)) is None]
    for one in unfinished:
        if paper.counterpart(one.dataset) != one.dataset:
            yield Claim(
                f"GraphSAGE does not finish on {one.dataset} in two days on 64 cores.",
                FAILS,
                f"Here it took {one.seconds:,.0f} seconds on {'a GPU' if one.on_gpu else 'one core'}, on the smaller "
                "version of the graph.",
            )


def _comparable(results: Results, column: str) -> list[Cell]:
    return [one for one in results.find("classification", "macro_f1", column=column) if one.comparable]


def _split(rows: Sequence[Duel]) -> tuple[list[Duel], list[Duel]]:
    return [duel for duel in rows if duel.difference > 0], [duel for duel in rows if duel.difference <= 0]


def _losses(lost: Sequence[Duel]) -> str:
    """A sentence on the rows where Neural-Brane is not first: by dataset, who is ahead and by how much."""
    if not lost:
        return ""
    told = []
    for dataset in dict.fromkeys(duel.dataset for duel in lost):
        here = [duel for duel in lost if duel.dataset == dataset]
        shares = "/".join(f"{100 * duel.train:g}" for duel in here)
        rivals = " or ".join(dict.fromkeys(duel.rival.heading for duel in here))
        gaps = [-duel.difference for duel in here]
        gap = f"{gaps[0]:.3f}" if len(gaps) == 1 else f"{min(gaps):.3f} to {max(gaps):.3f}"
        told.append(f"{dataset} at {shares} %: {rivals} is ahead by {gap}")
    return f" Not on {'; '.join(told)}."


def _default(results: Results, rivals: str) -> str:
    """A sentence on the default recipe, against the same rivals as the released one."""
    rows = [duel for duel in duels(results, DEFAULT) if duel.rivals == rivals]
    return f" With the default recipe: first in {len(_split(rows)[0])} of {len(rows)}." if rows else ""


def _row(one: Cell) -> str:
    return f"{one.dataset} at {100 * (one.train or 0):g} %"


def _word(difference: float) -> str:
    return "higher" if difference > 0 else "lower"


def _verdict(held: int, total: int) -> str:
    return HOLDS if held == total else FAILS if held == 0 else PARTLY
