import numpy as np
import pytest

from neural_brane.experiments.reproduce.plan import choose_columns
from neural_brane.experiments.reproduce.results import notes


def noted(results, words):
    """Return the only note that contains these words."""
    (found,) = [note for note in notes(results) if words in note.note]
    return found


def raised(by, recipe):
    """Return a change that adds `by` to the scores of one recipe, or of all methods without a recipe if ""."""

    def change(training, record):
        if training.parameters.get("recipe", "") == recipe:
            record["macro_f1"] = {share: (np.array(v) + by).tolist() for share, v in record["macro_f1"].items()}
        return record

    return change


@pytest.mark.parametrize(("lowered", "nearest"), [("default", "released recipe"), ("released", "default")])
def test_the_recipe_nearest_to_the_paper_is_named(fill, lowered, nearest):
    results = fill(["classification"], ["citeseer"], choose_columns(["neural-brane"]), change=raised(-0.1, lowered))
    note = noted(results, "The recipe that")
    assert note.note == f"The recipe that reproduces the published scores is Neural-Brane ({nearest})."
    assert f"Neural-Brane ({nearest}): 0.00" in note.evidence


def test_that_no_recipe_reproduces_the_paper_is_said(fill):
    def lower(training, record):
        for recipe in ("released", "default", "paper"):
            record = raised(-0.1, recipe)(training, record)
        return record

    results = fill(["classification"], ["citeseer"], choose_columns(["neural-brane"]), change=lower)
    assert noted(results, "recipe reproduces").note.startswith("No recipe reproduces all published scores; the near")


def test_competitors_above_the_published_cells_are_counted_on_the_papers_graphs_alone(fill):
    graphs = ["citeseer", "arnetminer", "arnetminer-15753"]
    note = noted(fill(["classification"], graphs, change=raised(0.1, "")), "of the competitors are higher")
    assert note.note.startswith("39 of 39 comparable scores")  # ten methods and three, at three shares
    assert "is +0.1" in note.evidence
    below = noted(fill(["classification"], graphs, change=raised(-0.1, "")), "of the competitors are higher")
    assert below.note.startswith("0 of 39")


def test_counts_that_differ_from_the_papers_are_named(fill):
    note = noted(fill(["classification"]), "differ from the paper")
    assert "citeseer has 4,675 edges, but 4,732 in the paper" in note.evidence
    assert "caltech36 has 65 attributes, but 64 in the paper" in note.evidence
    assert "reed98 has 88 attributes, but 64 in the paper" in note.evidence
    assert "arnetminer-15753 has no attributes here" in note.evidence
    assert "nodes," not in note.evidence


def test_arnetminer_is_said_to_be_another_version_in_many_components(fill):
    both = noted(fill(["classification"], ["arnetminer", "arnetminer-15753"]), "not the paper's version").evidence
    assert "5,509 nodes, the paper's version 15,753" in both
    assert "1,836 connected components, the largest with 550 nodes (the paper's version: 5,251 and 1,575)" in both
    alone = noted(fill(["classification"], ["arnetminer"]), "not the paper's version").evidence
    assert "the largest with 550 nodes, so" in alone
