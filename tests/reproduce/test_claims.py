import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from neural_brane.reproduce.claims import FAILS, HOLDS, PARTLY, claims
from neural_brane.reproduce.duels import duels
from neural_brane.reproduce.plan import choose_columns
from neural_brane.reproduce.results import Cell, Results

KEPT = Path(__file__).parents[2] / "docs" / "results" / "results.json"


def said(results, words):
    """The one claim that has these words in it."""
    (found,) = [claim for claim in claims(results) if words in claim.claim]
    return found


def lower(dataset, by, recipe="released"):
    """A change that takes something off Neural-Brane's scores on a dataset."""

    def change(training, record):
        if training.parameters.get("recipe") == recipe and training.dataset == dataset:
            record["macro_f1"] = {share: (np.array(v) - by).tolist() for share, v in record["macro_f1"].items()}
        return record

    return change


def lower_all(training, record):
    """A change that takes a tenth off all scores of every method."""
    record["macro_f1"] = {share: (np.array(v) - 0.1).tolist() for share, v in record["macro_f1"].items()}
    return record


def test_claims_hold_or_not_by_the_numbers(fill):
    paper = fill(["classification"], ["citeseer", "reed98"])
    assert said(paper, "all ten competing").verdict == HOLDS
    assert said(paper, "spectral baselines").verdict == PARTLY
    assert "citeseer at 30/50/70 %" in said(paper, "spectral baselines").evidence
    assert said(paper, "minus 0.02").verdict == HOLDS
    worse = fill(["classification"], ["citeseer", "reed98"], change=lower("citeseer", 0.2))
    claim = said(worse, "all ten competing")
    assert claim.verdict == PARTLY
    assert "first in 3 of 6 rows" in claim.evidence
    assert "With the default recipe: first in 6 of 6." in claim.evidence


def test_cells_below_the_papers_are_named_with_how_far(fill):
    results = fill(["classification"], ["citeseer", "reed98"], change=lower("reed98", 0.05))
    claim = said(results, "minus 0.02")
    assert claim.verdict == PARTLY
    assert "3 of 6 cells do" in claim.evidence
    cell = results.find("classification", "macro_f1", dataset="reed98", column="neural-brane", train=0.7)[0]
    assert f"reed98 at 70 %: {cell.mean:.4f} against 0.9033, {0.9033 - cell.mean:.4f} below" in claim.evidence


def test_the_recipe_nearest_to_the_paper_is_named(fill):
    ours = choose_columns(["neural-brane"])
    for lowered, nearest in (("default", "released recipe"), ("released", "default")):
        results = fill(["classification"], ["citeseer"], ours, change=lower("citeseer", 0.1, recipe=lowered))
        claim = said(results, "The recipe that")
        assert claim.claim == f"The recipe that reproduces the published figures is Neural-Brane ({nearest})."
        assert f"Neural-Brane ({nearest}): 0.00" in claim.evidence


def test_that_no_recipe_reproduces_the_paper_is_said(fill):
    results = fill(["classification"], ["citeseer"], choose_columns(["neural-brane"]), change=lower_all)
    assert said(results, "recipe reproduces").claim.startswith(
        "No recipe reproduces all published figures; the nearest"
    )


def test_arnetminer_is_said_to_be_another_version(fill):
    results = fill(["classification"], ["arnetminer"])
    assert "5,509 nodes, the paper's has 15,753" in said(results, "not the paper's version").evidence
    assert not [claim for claim in claims(results) if "minus 0.02" in claim.claim]
    assert said(results, "GraphSAGE does not finish").verdict == FAILS


def test_convergence_and_pooling_are_judged(fill):
    def slow(training, record):
        if record["loss"]:
            record["loss"] = np.linspace(0.7, 0.1, 30).tolist()
        return record

    assert said(fill(["convergence"]), "converges").verdict == HOLDS
    assert said(fill(["convergence"], change=slow), "converges").verdict == FAILS
    assert said(fill(["pooling"]), "Max pooling").verdict == HOLDS
    assert said(fill(["dimension"]), "rises").verdict == HOLDS


def test_nothing_is_said_of_what_was_not_measured(fill):
    assert claims(fill(["map"], ["reed98"])) == []


def test_the_sentences_and_tests_of_the_kept_results_are_those_made_of_their_numbers():
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    cells = [Cell(**one) for one in kept["cells"]]
    results = Results(kept["scale"], cells, kept["data"], maps={}, failures=kept["failures"])
    assert [asdict(claim) for claim in claims(results)] == kept["claims"]
    assert [duel.as_dict() for duel in duels(results)] == kept["tests"]
