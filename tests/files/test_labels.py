"""Label files, and those that cannot be read."""

from __future__ import annotations

import pytest

from neural_brane.errors import GraphError
from neural_brane.files.nodes import read_labels

OWN_LINE = "give the node a line of its own in the graph file, or remove this line"


def test_read_labels(write):
    ids, labels = read_labels(write("l.txt", "# node and label\n3\tred\n1 dark  green\n2,blue\n"))
    assert ids.tolist() == [3, 1, 2]
    assert labels.tolist() == ["red", "dark  green", "blue"]
    ids, labels = read_labels(write("l.txt", "x\t1\n2\t2\n"))
    assert ids.tolist() == ["x", "2"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n", "l.txt: the label file is empty; write one entry per line"),
        ("0\tx\n1\t\n", "l.txt:2: '1' has no label; write a node, a tab and its label, or remove the line"),
        ("0\tx\n0\ty\n", "l.txt:2: node '0' already has line 1; join the two lines or remove one"),
        ("0\tx\n1\tnan\n", "l.txt:2: the label 'nan' stands for no value; remove the line, or give the label"),
        ("0\tx\n1\tNone\n", "l.txt:2: the label 'None' stands for no value; remove the line, or give the label"),
        ("nan\tx\n1\ty\n", "l.txt:1: the node 'nan' stands for no value; remove the line, or give the node"),
        ("node\tlabel\n1\ty\n", "l.txt:1: 'node\\tlabel' are titles of columns; put # before them"),
        ("0\tx\nbob\ty\n", f"l.txt:2: node 'bob' is not in the graph; {OWN_LINE}"),
    ],
)
def test_label_file(read_malformed, content, message):
    assert read_malformed({"g.txt": "3 2\n0 1\n1 2\n", "l.txt": content}) == message


def test_label_file_alone(tmp_path):
    (tmp_path / "l.txt").write_text("a\tx\nb\ty\na\tz\n")
    with pytest.raises(GraphError, match=r"l\.txt:3.*node 'a'.*1"):
        read_labels(tmp_path / "l.txt")
