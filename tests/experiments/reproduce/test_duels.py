from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from neural_brane.experiments.compare import paired
from neural_brane.experiments.reproduce.plan import choose_columns
from neural_brane.experiments.reproduce.results import duel, duels


def test_the_paired_test_is_scipys():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.7, 0.01, 10), rng.normal(0.69, 0.01, 10)
    expected = stats.ttest_rel(ours, theirs)
    assert paired(ours, theirs) == (
        pytest.approx(expected.statistic, rel=1e-5),
        pytest.approx(expected.pvalue, rel=1e-5),
    )


def test_runs_are_paired_as_far_as_both_have_them():
    assert paired([0.6, 0.7, 0.8, 0.1], [0.5, 0.5, 0.5]) == paired([0.6, 0.7, 0.8], [0.5, 0.5, 0.5])


def test_there_is_no_test_of_one_run_or_of_equal_differences():
    assert paired([0.6], [0.5]) == (None, None)
    assert paired([0.6, 0.7], [0.5, 0.6]) == (None, None)


def test_rivals_are_the_best_of_the_paper_and_the_best_baseline(fill):
    rows = duels(fill(["classification"], ["citeseer"]))
    assert [(row.train, row.rivals) for row in rows] == [
        (share, rivals) for share in (0.3, 0.5, 0.7) for rivals in ("methods of the paper", "attribute baselines")
    ]
    assert [row.rival.column for row in rows if row.rivals == "methods of the paper"] == [
        "graph2gauss",
        "graph2gauss",
        "tadw",
    ]
    assert all(row.rival.group == "attribute baselines" for row in rows if row.rivals == "attribute baselines")
    assert all(row.difference > 0 and row.significant for row in rows if row.rivals == "methods of the paper")
    assert rows[0].as_dict()["runs"] == 3


def test_a_duel_is_won_or_lost_beyond_chance_or_open(fill):
    (cell,) = fill(["classification"], ["citeseer"], choose_columns(["tadw"])).find(
        "classification", "macro_f1", train=0.7
    )
    values = [0.70, 0.71, 0.72, 0.73]
    ours = replace(cell, values=values, mean=0.715)
    lower = replace(cell, values=[0.60, 0.605, 0.62, 0.625], mean=0.6125)
    near = replace(cell, values=[0.73, 0.69, 0.74, 0.69], mean=0.7125)
    assert (duel(ours, lower).outcome, duel(lower, ours).outcome, duel(ours, near).outcome) == ("won", "lost", "open")
    assert duel(ours, lower).rivals == "TADW"
