import numpy as np

from neural_brane import load
from neural_brane.cli.compare import choose_labels
from neural_brane.graph.labels import MultiLabels


def test_a_file_of_labels_is_taken_for_what_it_holds(tmp_path):
    graph = load("stdlib")
    (tmp_path / "tags.txt").write_text("json\ttext\njson\tfiles\ncsv\ttext\n")
    (tmp_path / "classes.txt").write_text("json\ttext\ncsv\tfiles\n")
    same, several = choose_labels(graph, str(tmp_path / "tags.txt"), [], from_table=False)
    assert isinstance(several, MultiLabels)
    assert (len(several), several.counts.sum(), same is graph) == (len(graph), 3, True)
    relabelled, targets = choose_labels(graph, str(tmp_path / "classes.txt"), [], from_table=False)
    assert targets is None
    assert sorted(set(relabelled.labels.tolist())) == ["", "files", "text"]


def test_labels_of_a_table_may_be_numbers(small_graph):
    sizes = {name: f"{at / 7:.3f}" for at, name in enumerate(small_graph.ids.tolist())}
    graph = small_graph.relabelled(sizes)
    _, numbers = choose_labels(graph, None, ["regress"], from_table=True)
    np.testing.assert_allclose(numbers, np.arange(12) / 7, atol=1e-3)
    assert choose_labels(graph, None, ["classify"], from_table=True)[1] is None
    assert choose_labels(graph, None, [], from_table=False)[0] is graph
