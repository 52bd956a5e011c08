import numpy as np
import polars as pl
import pytest

from neural_brane.errors import GraphError
from neural_brane.files import datasets
from neural_brane.graph.labels import MultiLabels


def labels_of(found):
    ids, several = found
    assert isinstance(several, MultiLabels)
    table = several.members.toarray()
    return {
        node: [several.names[at] for at in np.flatnonzero(row)] for node, row in zip(ids.tolist(), table, strict=True)
    }


@pytest.fixture
def write(tmp_path):
    def write(text, name="labels.txt"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_a_node_on_several_lines_has_several_labels_and_spaces_stay(write):
    path = write("b\tgraph mining\na\ttext\nb\ttext\n")
    assert labels_of(datasets.read_targets(path)) == {"b": ["graph mining", "text"], "a": ["text"]}
    assert datasets.read_targets(path)[0].tolist() == ["b", "a"]  # keeps the order of the file


def test_labels_between_separators_are_several(write):
    lines = "".join(f"{node}\t{'net;text' if node % 2 else 'net'}\n" for node in range(12))
    found = labels_of(datasets.read_targets(write(lines)))
    assert (found[0], found[1]) == (["net"], ["net", "text"])
    ids, classes = datasets.read_targets(write(lines), kind="class")
    assert classes[ids == 1].tolist() == ["net;text"]


def test_numbers_of_labels_between_spaces_when_asked_for(write):
    path = write("1 3 17\n2 3\n3 17 40\n")
    assert labels_of(datasets.read_targets(path, kind="several")) == {1: ["17", "3"], 2: ["3"], 3: ["17", "40"]}
    assert labels_of(datasets.read_targets(write("1\ta b/c d\n2\tc d\n"), separator="/"))[1] == ["a b", "c d"]


def test_many_fractions_are_numbers_and_few_are_classes(write):
    lines = [f"{node}\t{node / 4}\n" for node in range(1, 40)]
    ids, numbers = datasets.read_targets(write("".join(lines)))
    assert numbers.dtype == np.float64
    assert numbers[ids == 6].tolist() == [1.5]
    assert datasets.read_targets(write("".join(lines[:15])))[1].dtype.kind == "U"
    assert datasets.read_targets(write("".join(f"{node}\t{node}\n" for node in range(99))))[1].dtype.kind == "U"
    assert datasets.read_targets(write("1\t5\n2\t7\n"), kind="number")[1].tolist() == [5.0, 7.0]


def test_a_table_may_hold_lists_text_or_numbers(tmp_path):
    path = tmp_path / "people.parquet"
    people = {"name": ["a", "b", "c"], "tags": [["x", "y"], ["y"], None], "age": [1.5, None, 2.5]}
    pl.DataFrame(people).write_parquet(path)
    assert labels_of(datasets.read_targets(path, id="name", label="tags")) == {"a": ["x", "y"], "b": ["y"]}
    ids, ages = datasets.read_targets(path, id="name", label="age", kind="number")
    assert (ids.tolist(), ages.tolist()) == (["a", "c"], [1.5, 2.5])
    with pytest.raises(GraphError, match=r"people\.parquet: .*lists.*multilabel"):
        datasets.read_targets(path, id="name", label="tags", kind="number")


def test_labels_of_a_graph_are_classes_unless_asked_otherwise():
    ids, classes = datasets.read_targets("stdlib")
    assert classes.dtype.kind == "U"
    assert labels_of(datasets.read_targets("stdlib", kind="several"))[ids[0].item()] != []


def test_what_is_wrong_is_described(write):
    with pytest.raises(GraphError, match=r"label 'old'.*'b'"):
        datasets.read_targets(write("a\t1\nb\told\n"), kind="number")
    with pytest.raises(GraphError, match="node 'a'"):
        datasets.read_targets(write("a\t1\na\t2\n"), kind="number")
    with pytest.raises(GraphError, match=r"node 'a'.*1"):
        datasets.read_targets(write("a\tx\na\ty\n"), kind="class")
