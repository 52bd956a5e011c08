import numpy as np
import pytest

from neural_brane.errors import EmbeddingError, GraphError, ParameterError
from neural_brane.experiments.compute import TASKS, align_labels, choose_tasks
from neural_brane.graph import AttributedGraph
from neural_brane.graph.labels import MultiLabels


def names(tasks):
    return [task.name for task in tasks]


def test_by_default_a_graph_is_compared_by_all_it_allows(graph):
    tasks, notes = choose_tasks(None, graph)
    assert (names(tasks), notes) == (["classify", "cluster", "retrieve", "link"], [])
    for labels in (None, [""] * len(graph), ["one"] * len(graph)):
        tasks, (note,) = choose_tasks(None, graph.relabelled(labels))
        assert names(tasks) == ["link"]
        assert "no labels" in note


def test_tasks_come_in_one_order_whatever_was_asked(graph):
    assert names(choose_tasks(["link", "classify"], graph)[0]) == ["classify", "link"]
    assert names(choose_tasks("cluster", graph)[0]) == ["cluster"]


def test_what_cannot_be_scored_is_told_before_anything_is_trained(graph):
    with pytest.raises(ParameterError, match=r"task 'clasify' \(did you mean 'classify'\?\)"):
        choose_tasks(["clasify"], graph)
    with pytest.raises(GraphError, match=r"'cluster'.*labels"):
        choose_tasks(["link", "cluster"], graph.relabelled(None))
    lonely = ["rare", *(["a", "b"] * len(graph))[: len(graph) - 1]]
    with pytest.raises(EmbeddingError, match="class 'rare'"):
        choose_tasks(None, graph.relabelled(lonely))
    with pytest.raises(ParameterError, match=r"share=0\.1"):
        choose_tasks(["link"], AttributedGraph.from_edges([(0, 1), (1, 2)]))


@pytest.mark.parametrize(
    ("task", "record", "measure", "value"),
    [
        ("classify", {"macro_f1": {"0.5": [0.25, 0.75]}}, "macro_f1", 0.5),
        ("cluster", {"nmi": 0.5}, "nmi", 0.5),
        ("link", {"scorer_auc": 0.75}, "scorer_auc", 0.75),
        ("link", {"scorer_auc": 0.75}, "auc_of_cosines", None),
    ],
)
def test_a_run_has_one_value_of_a_measure(task, record, measure, value):
    assert TASKS[task].value(record, measure) == value


def test_bars_begin_where_no_skill_is_needed():
    assert [TASKS["link"].share(score) for score in (0.4, 0.5, 0.75, 1.0)] == [0.0, 0.0, 0.5, 1.0]
    assert TASKS["classify"].share(0.5) == 0.5


def test_labels_that_are_several_or_numbers_choose_their_tasks(graph):
    several = MultiLabels.from_labels([["a", "b"], ["b"], ["c", "a"]] * 30)
    assert names(choose_tasks(None, graph, several)[0]) == ["multilabel", "retrieve", "link"]
    assert names(choose_tasks(None, graph, np.arange(90.0))[0]) == ["regress", "link"]
    with pytest.raises(ParameterError, match=r"'cluster'.*labels"):
        choose_tasks("cluster", graph, several)
    with pytest.raises(EmbeddingError, match="90 numbers"):
        choose_tasks(None, graph, np.ones(90))


def test_a_few_labelled_nodes_have_no_lists_of_the_nearest(graph):
    few = graph.relabelled(dict(zip(graph.ids[:10].tolist(), ["a", "b"] * 5, strict=True)))
    assert names(choose_tasks(None, few)[0]) == ["classify", "cluster", "link"]
    with pytest.raises(GraphError, match=r"10.*nodes.*10"):
        choose_tasks("retrieve", few)


def test_labels_by_id_become_labels_of_all_nodes(graph):
    numbers = align_labels(graph, graph.ids[[3, 1]], np.array([7.0, 8.0]))
    assert (numbers[3], numbers[1], np.isnan(numbers).sum()) == (7, 8, 88)
    several = align_labels(graph, graph.ids[[3, 1]], MultiLabels.from_labels([["x", "y"], ["y"]]))
    assert several.counts[[1, 3]].tolist() == [1, 2]
    assert (len(several), several.names) == (90, ("x", "y"))
    assert (
        several.digest()
        != align_labels(graph, graph.ids[[1, 3]], MultiLabels.from_labels([["x", "y"], ["y"]])).digest()
    )
    with pytest.raises(GraphError, match=r"labels.*99999"):
        align_labels(graph, np.array([99999]), np.array([1.0]))
