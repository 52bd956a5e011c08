from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.compare import Standing


def test_each_task_has_its_best_method(standing, comparison):
    found = comparison(
        classify=[standing("classify", "tadw", 0.80, 0.82), standing("classify", "line", 0.30, 0.31)],
        link=[standing("link", "tadw", 0.70, 0.71), standing("link", "line", 0.9, 0.9, scorer_auc=None)],
    )
    assert found.advice == ("Take tadw for classes (Macro-F1 .810 ± .014), line for links (AUC by cosine .900 ± .000).")


def test_one_method_that_is_best_at_all_is_named_once(standing, comparison):
    tasks = {task: [standing(task, "tadw", 0.8), standing(task, "line", 0.3)] for task in ("classify", "cluster")}
    links = standing("link", "tadw", 0.8, scorer_auc=Repeats((0.9,)))
    assert comparison(**tasks, link=[links]).advice == (
        "Take tadw for classes (Macro-F1 .800), clusters (NMI .800) and links (AUC by link scorer .900)."
    )


def test_one_that_is_nearly_as_good_in_half_the_time_is_named_and_the_fastest_of_them(standing, comparison):
    methods = [
        standing("link", "best", 0.900, seconds=20.0, scorer_auc=None),
        standing("link", "near", 0.895, seconds=5.0),
        standing("link", "nearer", 0.899, seconds=9.0),
        standing("link", "poor", 0.7, seconds=0.1),
    ]
    assert comparison(link=methods).advice == (
        "Take best for links (AUC by cosine .900); near is within 0.01 of the best for links in 5.00 s instead of "
        "20.0 s."
    )
    slow = [standing("link", "best", 0.9, seconds=20.0), standing("link", "near", 0.9, seconds=15.0)]
    assert "instead of" not in comparison(link=slow).advice


def test_those_level_with_the_best_are_named_or_counted(standing, comparison):
    methods = [standing("cluster", "a", 0.5, 0.7), standing("cluster", "b", 0.6, 0.5)]
    assert comparison(cluster=methods).advice == "Take a for clusters (NMI .600 ± .141, level with b)."
    methods.append(standing("cluster", "c", 0.6, 0.4))
    assert "level with 2 others)" in comparison(cluster=methods).advice


def test_a_task_that_every_method_failed_is_left_out_and_without_any_the_first_reason_is_told(standing, comparison):
    failed = Standing("pte", failure="it needs attributes")
    found = comparison(classify=[failed], cluster=[standing("cluster", "tadw", 0.5)])
    assert found.advice == "Take tadw for clusters (NMI .500)."
    assert comparison(classify=[failed], link=[failed]).advice == (
        "No method could be trained. The first error: it needs attributes."
    )
