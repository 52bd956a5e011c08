"""Read label files; refuse malformed ones."""

from __future__ import annotations

import pytest

from neural_brane.errors import GraphError
from neural_brane.files.nodes import read_labels


def test_read_labels(write):
    ids, labels = read_labels(write("l.txt", "# node and label\n3\tred\n1 dark  green\n2,blue\n"))
    assert ids.tolist() == [3, 1, 2]
    assert labels.tolist() == ["red", "dark  green", "blue"]
    ids, labels = read_labels(write("l.txt", "x\t1\n2\t2\n"))
    assert ids.tolist() == ["x", "2"]


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ("\n", "", "empty"),
        ("0\tx\n1\t\n", ":2", "'1' label"),
        ("0\tx\n0\ty\n", ":2", "'0' line 1"),
        ("0\tx\n1\tnan\n", ":2", "label 'nan' remove"),
        ("0\tx\n1\tNone\n", ":2", "label 'None' remove"),
        ("nan\tx\n1\ty\n", ":1", "node 'nan' remove"),
        ("node\tlabel\n1\ty\n", ":1", "'node\\tlabel' titles #"),
        ("0\tx\nbob\ty\n", ":2", "node 'bob' graph"),
    ],
)
def test_label_file(read_malformed, content, place, words):
    message = read_malformed({"g.txt": "3 2\n0 1\n1 2\n", "l.txt": content})
    assert message.startswith(f"l.txt{place}: ")
    assert all(word in message for word in words.split())


def test_label_file_alone(tmp_path):
    (tmp_path / "l.txt").write_text("a\tx\nb\ty\na\tz\n")
    with pytest.raises(GraphError, match=r"l\.txt:3.*node 'a'.*1"):
        read_labels(tmp_path / "l.txt")
