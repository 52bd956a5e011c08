from __future__ import annotations

import pytest

from neural_brane.errors import GraphError
from neural_brane.files.graphs.formats import read_graph


@pytest.fixture
def cites(tmp_path):
    (tmp_path / "p.content").write_text("p1\t0\t1\t1\tTheory\n35\t0\t0\t0\tRule Learning\nx-9\t0\t0.5\t0\tTheory\n")
    path = tmp_path / "p.cites"
    path.write_text("35\tp1\np1\t35\nx-9\t35\np1\tp1\n")
    return path


def test_papers_keep_the_order_of_the_content_file(cites):
    graph = read_graph(cites)
    assert graph.name == "p"
    assert graph.ids.tolist() == ["p1", "35", "x-9"]
    assert graph.adjacency.toarray().tolist() == [[1, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert graph.attributes.toarray().tolist() == [[0, 1, 1], [0, 0, 0], [0, 0.5, 0]]
    assert graph.attribute_names.tolist() == [0, 1, 2]
    assert graph.labels.tolist() == ["Theory", "Rule Learning", "Theory"]


def test_rules(cites):
    assert read_graph(cites, self_loops="drop").edges == 2
    assert read_graph(cites, duplicates="sum").adjacency[0, 1] == 2


def test_the_content_file_may_be_elsewhere(cites, tmp_path):
    elsewhere = tmp_path / "words.txt"
    elsewhere.write_text((tmp_path / "p.content").read_text().replace("\t", " ").replace("Rule ", "Rule_"))
    (tmp_path / "p.content").unlink()
    assert read_graph(cites, attributes=elsewhere).classes.tolist() == ["Rule_Learning", "Theory"]
    with pytest.raises(GraphError, match=r"p\.content.*file"):
        read_graph(cites)


def test_a_separate_file_of_labels_is_refused(cites):
    with pytest.raises(GraphError, match=r"\.cites.*files"):
        read_graph(cites, labels="l.txt")


@pytest.mark.parametrize(
    ("cites", "content", "message"),
    [
        (
            "a b\n",
            "a 0 1 x\nb 0 x\n",
            "p.content:2: found 3 columns, expected 4",
        ),
        ("a b\n", "a\n", "p.content:1: found 1 columns"),
        (
            "a b\n",
            "a 0 x\nb 0 x\na 1 y\n",
            "p.content:3: paper 'a' appears again, first in line 1",
        ),
        (
            "a b\n",
            "a 0 x\nb yes x\n",
            "p.content:2: value 'yes'",
        ),
        (
            "a b\nb zoe\n",
            "a 0 x\nb 1 x\n",
            "p.cites:2: paper 'zoe' has no line in p.content",
        ),
        (
            "a b\nb\n",
            "a 0 x\nb 1 x\n",
            "p.cites:2: the line does not have two columns",
        ),
        ("", "a 0 x\n", "p.cites: the .cites file is empty"),
    ],
)
def test_linqs_files(read_malformed, cites, content, message):
    assert read_malformed({"p.cites": cites, "p.content": content}).startswith(message)
