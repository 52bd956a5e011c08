import numpy as np

from neural_brane.experiments.reproduce.results import FAILS, HOLDS, INCONCLUSIVE, claims


def said(results, words):
    """Return the only claim that contains these words."""
    (found,) = [claim for claim in claims(results) if words in claim.claim]
    return found


def lower(dataset, by, recipe="released"):
    """Return a change that lowers Neural-Brane's scores on a dataset by `by`."""

    def change(training, record):
        if training.parameters.get("recipe") == recipe and training.dataset == dataset:
            record["macro_f1"] = {share: (np.array(v) - by).tolist() for share, v in record["macro_f1"].items()}
        return record

    return change


def noisy(training, record):
    """Replace all scores by random ones, so that no difference is significant."""
    if "macro_f1" in record:
        rng = np.random.default_rng([len(training.method), training.seed, len(str(training.parameters))])
        record["macro_f1"] = {share: [0.6 + rng.normal(0, 0.05)] for share in record["macro_f1"]}
    return record


def test_claims_hold_or_not_by_the_numbers(fill):
    paper = fill(["classification"], ["citeseer", "reed98"], runs=10)
    assert said(paper, "all ten competing").headline == "holds (6 of 6 rows)"
    assert said(paper, "spectral baselines").headline == "does not hold (3 of 6 rows)"
    assert "citeseer at 30/50/70 %" in said(paper, "spectral baselines").evidence
    assert said(paper, "at most 0.02").headline == "holds (6 of 6 scores)"
    worse = fill(["classification"], ["citeseer", "reed98"], change=lower("citeseer", 0.2), runs=10)
    claim = said(worse, "all ten competing")
    assert claim.headline == "does not hold (3 of 6 rows)"
    assert "With the default recipe: 6 of 6 rows, significantly in 6." in claim.evidence


def test_verdicts_are_three_and_insignificant_differences_are_inconclusive(fill):
    results = fill(change=noisy)
    said_of_differences = [
        said(results, words)
        for words in ("all ten competing", "is statistically significant", "better than G2G", "Max pooling", "rises")
    ]
    assert {claim.verdict for claim in said_of_differences} == {INCONCLUSIVE}
    assert {claim.verdict for claim in claims(results)} <= {HOLDS, FAILS, INCONCLUSIVE}
    assert {claim.verdict for claim in claims(fill())} <= {HOLDS, FAILS, INCONCLUSIVE}


def test_cells_below_the_papers_are_named_with_how_far(fill):
    results = fill(["classification"], ["citeseer", "reed98"], change=lower("reed98", 0.05))
    claim = said(results, "at most 0.02")
    assert claim.headline == "does not hold (3 of 6 scores)"
    cell = results.find("classification", "macro_f1", dataset="reed98", column="neural-brane", train=0.7)[0]
    assert f"reed98 at 70 %: {cell.mean:.4f} against 0.9033, {0.9033 - cell.mean:.4f} below" in claim.evidence
    assert "significantly lower: 3" in claim.evidence


def test_a_cell_that_is_too_low_by_chance_alone_is_not_judged(fill):
    def wide(training, record):
        if training.parameters.get("recipe") == "released":
            record["macro_f1"]["0.3"] = [0.8788 - 0.025 + 0.05 * (-1) ** training.seed]
        return record

    claim = said(fill(["classification"], ["reed98"], change=wide), "at most 0.02")
    assert claim.headline == "inconclusive (2 of 3 scores)"
    assert "significantly lower: 0" in claim.evidence


def test_g2g_is_compared_by_percentages_too(fill):
    claim = said(fill(["classification"], ["citeseer"], runs=10), "better than G2G")
    assert claim.headline == "holds (3 of 3 rows)"
    assert "published: +8.8%, +8.6%, +8.4%" in claim.evidence


def test_what_another_graph_would_have_to_show_is_not_judged(fill):
    results = fill(["classification", "clustering"], ["arnetminer"])
    assert not [claim for claim in claims(results) if "at most 0.02" in claim.claim]
    assert said(results, "GraphSAGE does not finish").verdict == INCONCLUSIVE
    lead = said(results, "34.5% above that of DeepWalk")
    assert lead.verdict == INCONCLUSIVE
    assert "another version" in lead.evidence


def test_clusters_that_the_paper_does_not_look_at_are_said_to_be(fill):
    results = fill(["clustering"], ["citeseer", "reed98"])
    assert said(results, "best NMI on citeseer").claim.startswith("Neural-Brane's clusters")
    assert said(results, "best NMI on reed98").claim.startswith("(Not in the paper, which clusters citeseer and Arnet")
    assert said(results, "best NMI on citeseer").verdict == HOLDS


def test_convergence_and_pooling_are_judged(fill):
    def slow(training, record):
        if record["loss"]:
            record["loss"] = np.linspace(0.7, 0.1, 30).tolist()
        return record

    def swap(training, record):
        sign = {"max": -1, "sum": 1}.get(training.parameters.get("pooling"), 0)
        if training.parameters.get("dim") == 300:
            sign = 1
        record["macro_f1"] = {share: (np.array(v) + 0.1 * sign).tolist() for share, v in record["macro_f1"].items()}
        return record

    assert said(fill(["convergence"]), "converges").headline == "holds (4 of 4 graphs)"
    assert said(fill(["convergence"], change=slow), "converges").verdict == FAILS
    assert said(fill(["pooling"], runs=10), "Max pooling").headline == "holds (4 of 4 graphs)"
    assert said(fill(["pooling"], runs=10, change=swap), "Max pooling").verdict == FAILS
    assert said(fill(["dimension"], runs=10), "rises").headline == "holds (4 of 4 graphs)"
    assert said(fill(["dimension"], runs=10, change=swap), "rises").verdict == FAILS


def test_without_measurements_there_are_no_claims(fill):
    assert claims(fill(["map"], ["reed98"])) == []
