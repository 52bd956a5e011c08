"""Node ids as input of scikit-learn's pipelines and searches."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from neural_brane import METHODS, Attributes, NodeEmbedder, link_scorer, load
from neural_brane.errors import GraphError, ParameterError
from neural_brane.evaluate import hold_out_edges
from neural_brane.methods import scikit_learn


@pytest.fixture(scope="module")
def graph():
    return load("stdlib")


@pytest.fixture(autouse=True)
def nothing_kept():
    scikit_learn._kept.clear()


@pytest.fixture
def trainings(monkeypatch):
    """Return a list that gets an entry for every training of `Attributes`."""
    count = []
    learn = Attributes._learn
    monkeypatch.setattr(Attributes, "_learn", lambda self, *given: count.append(self.dim) or learn(self, *given))
    return count


@pytest.mark.parametrize(
    "ids",
    [
        ["json", "re"],
        np.array(["json", "re"]),
        np.array([["json"], ["re"]]),
        np.array(["json", "re"], dtype=object),
        pd.Series(["json", "re"]),
        pd.DataFrame({"module": ["json", "re"]}),
    ],
    ids=["list", "array", "column", "objects", "series", "frame"],
)
def test_ids_come_in_any_form(graph, ids):
    embedder = NodeEmbedder(graph, Attributes(dim=4, seed=0)).fit(ids)
    whole = Attributes(dim=4, seed=0).fit_transform(graph)
    np.testing.assert_array_equal(embedder.transform(ids), [whole["json"], whole["re"]])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["json", "nonsense"], "X.*'nonsense'.*node"),
        ([["json", "re"]], r"shape \(1, 2\).*ids"),
        ([[["json"]]], r"shape \(1, 1, 1\).*ids"),
        (np.empty((3, 0)), r"X has 0 feature\(s\)"),
        (np.array([1j]), "Complex data not supported: give ids"),
        (sparse.eye_array(3), "sparse.*ids"),
        ([1.5], "X, ids of nodes,"),
    ],
)
def test_what_is_no_node_is_refused(graph, ids, message):
    embedder = NodeEmbedder(graph, Attributes(dim=4, seed=0)).fit()
    with pytest.raises(GraphError, match=message):
        embedder.transform(ids)


def test_unfitted_and_a_method_that_is_none_are_refused(graph):
    with pytest.raises(NotFittedError, match="not fitted"):
        NodeEmbedder(graph).transform(["json"])
    with pytest.raises(ParameterError, match="give a method"):
        NodeEmbedder(graph, "attributes").fit()


def test_a_frame_comes_out_where_one_is_asked_for(graph):
    embedder = NodeEmbedder(graph, Attributes(dim=2, seed=0)).set_output(transform="pandas")
    frame = clone(embedder).fit_transform(pd.DataFrame({"module": ["json", "re"]}, index=[7, 9]))
    assert frame.columns.tolist() == ["nodeembedder0", "nodeembedder1"]
    assert frame.index.tolist() == [7, 9]


def test_copies_share_the_graph_and_own_their_method(graph):
    embedder = NodeEmbedder(graph, Attributes(dim=2, seed=0))
    copied = clone(embedder).set_params(method__dim=3)
    assert copied.graph is graph
    assert (embedder.method.dim, copied.method.dim) == (2, 3)


def test_folds_with_the_same_parameters_train_once(graph, trainings):
    labelled = graph.labels != ""
    pipe = make_pipeline(NodeEmbedder(graph, Attributes(dim=6, seed=0)), LogisticRegression(max_iter=500, tol=0.1))
    cross_val_score(pipe, graph.ids[labelled], graph.labels[labelled], cv=3)
    assert trainings == [6]
    cross_val_score(pipe.set_params(nodeembedder__method__seed=1), graph.ids[labelled], graph.labels[labelled], cv=3)
    assert trainings == [6, 6]


def test_without_a_seed_every_fit_draws_one(graph, trainings):
    embedder = NodeEmbedder(graph, Attributes(dim=6))
    assert embedder.fit().method_.seed_ != embedder.fit().method_.seed_
    assert trainings == [6, 6]


def test_few_trainings_are_kept(graph):
    for seed in range(scikit_learn.KEPT + 2):
        NodeEmbedder(graph, Attributes(dim=2, seed=seed)).fit()
    assert len(scikit_learn._kept) == scikit_learn.KEPT


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_search_over_dim_gives_the_same_whatever_the_jobs(graph, jobs):
    labelled = graph.labels != ""
    classifier = LogisticRegression(max_iter=500, tol=0.01)
    pipe = make_pipeline(NodeEmbedder(graph, Attributes(seed=0)), classifier)
    search = GridSearchCV(pipe, {"nodeembedder__method__dim": [1, 8]}, cv=2, n_jobs=jobs, error_score="raise")
    search.fit(graph.ids[labelled], graph.labels[labelled])
    assert search.best_params_ == {"nodeembedder__method__dim": 8}
    scores = [
        cross_val_score(
            classifier,
            Attributes(dim=dim, seed=0).fit_transform(graph).vectors[labelled],
            graph.labels[labelled],
            cv=2,
        ).mean()
        for dim in (1, 8)
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores)


def test_links_choose_parameters(graph):
    held_out = hold_out_edges(graph, share=0.2)
    search = GridSearchCV(
        NodeEmbedder(held_out.graph, Attributes(seed=0)),
        {"method__dim": [1, 64]},
        cv=2,
        scoring=link_scorer(),
        error_score="raise",
    )
    search.fit(*held_out.labelled_pairs())
    assert search.best_params_ == {"method__dim": 64}


def test_links_are_scored_by_the_cosine(graph):
    held_out = hold_out_edges(graph, share=0.2)
    model = NodeEmbedder(held_out.graph, Attributes(dim=16, seed=0)).fit()
    pairs, truth = held_out.labelled_pairs()
    cosines = model.embedding_.similarity(*pairs.T)
    scorer = pickle.loads(pickle.dumps(link_scorer()))  # noqa: S301, as a worker process receives it
    assert scorer(model, pairs, truth) == roc_auc_score(truth, cosines) > 0.6


def test_links_that_were_learned_are_refused(graph):
    held_out = hold_out_edges(graph)
    seen = NodeEmbedder(graph, Attributes(dim=4, seed=0)).fit()
    with pytest.raises(GraphError, match=r"276.*276 links"):
        link_scorer()(seen, *held_out.labelled_pairs())


@pytest.mark.filterwarnings("ignore::UserWarning")  # the small matrices of the checks give columns of zeros
@pytest.mark.parametrize("nodes", [False, True], ids=["features", "nodes"])
def test_scikit_learns_checks_pass_but_for_those_listed(graph, nodes):
    exceptions = scikit_learn.NODE_EMBEDDER_EXCEPTIONS if nodes else {}
    method = Attributes(dim=2, seed=0)
    estimator = NodeEmbedder(graph, method) if nodes else method
    results = check_estimator(estimator, expected_failed_checks=exceptions, on_skip=None, on_fail=None)
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert not failed
    needed = {one["check_name"] for one in results if one["status"] == "xfail"}
    assert needed == set(exceptions), "an exception that is not needed"


def test_only_a_method_without_links_learns_from_features_alone():
    taking = [title for title, one in METHODS.items() if "links" not in one.uses]
    assert taking == ["attributes"]
    features = np.random.default_rng(0).random((20, 30))
    for title, method in METHODS.items():
        if title != "attributes" and "attributes" in method.uses and not method.uses_labels:
            with pytest.raises(GraphError, match=r"20 x 30.*prefix"):
                method().fit(features)


@pytest.mark.filterwarnings(
    "ignore:.*neither a known attribute nor a link to a known node:UserWarning"
)  # for modules without a docstring
def test_features_go_through_a_pipeline(graph):
    labelled = graph.labels != ""
    pipe = make_pipeline(Attributes(dim=32, seed=0), LogisticRegression(max_iter=500, tol=0.01))
    scores = cross_val_score(pipe, graph.attributes[labelled], graph.labels[labelled], cv=3, error_score="raise")
    assert scores.mean() > 0.5
