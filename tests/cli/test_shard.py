import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.files.graphs.formats import read_graph
from neural_brane.files.graphs.shards import open_shards


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture
def edges(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "edges.csv"
    path.write_text("who,whom,often\nann,bob,2\nbob,cid,3\ncid,cid,1\nbob,ann,4\n")
    return path


def test_a_table_of_edges_becomes_parts_that_info_describes(edges):
    (edges.parent / "words.txt").write_text("ann chess:2 go\ncid go\n")
    options = ("--source", "who", "--target", "whom", "--weight", "often", "--duplicates", "sum")
    result = run(
        "shard", edges, "-o", "parts", "--parts", 2, *options, "--attributes", "words.txt", "--memory", "200MB"
    )
    assert result.exit_code == 0, result.stderr
    assert "wrote 3 nodes, 3 edges and 2 attributes to parts, in 2 shards" in result.stdout
    shards = open_shards("parts")
    assert shards.shard(0).adjacency.data.tolist() == [6.0]
    assert np.concatenate([shards.ids(0), shards.ids(1)]).tolist() == ["ann", "bob", "cid"]
    shown = run("info", "parts").stdout
    assert shown.startswith("parts: graph in shards (")
    found = json.loads(run("info", "parts", "--json").stdout)
    assert (found["nodes"], found["edges"], found["entries"], found["parts"]) == (3, 3, 3, 2)
    assert (found["weights"], found["amounts"], found["ids"], found["first nodes"]) == (True, True, "string", [0, 1])


@pytest.mark.filterwarnings("ignore:.*column 'often' and the direction:neural_brane.errors.ReadingWarning")
def test_what_cannot_be_read_in_pieces_is_read_as_a_whole(edges):
    result = run("shard", "stdlib", "-o", "known", "--parts", 3)
    assert result.exit_code == 0, result.stderr
    assert "into memory" in result.stderr
    assert len(open_shards("known")) == 3
    (edges.parent / "people.csv").write_text("id,age\nann,31\nbob,27\ncid,40\n")
    result = run("shard", edges, "--nodes", "people.csv", "-o", "people")
    assert result.exit_code == 0, result.stderr
    graph = read_graph(edges, nodes=edges.parent / "people.csv")
    assert open_shards("people").attribute_names().tolist() == graph.attribute_names.tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("edges.csv", "-o", "parts", "--memory", "much"), "--memory much"),
        (("edges.csv", "-o", "parts", "--memory", "1kB"), "memory is 1,000 bytes"),
        (("edges.csv", "-o", "parts", "--parts", "0"), "parts is 0"),
        (("edges.csv", "-o", "edges.csv"), "is also read as SOURCE"),
        (("nothing.csv", "-o", "parts"), "neither a file nor a dataset"),
        (("edges.csv", "-o", "parts", "--source", "nobody"), "there is no column 'nobody'"),
    ],
)
def test_requests_that_make_no_sense_are_one_line(edges, arguments, message):
    result = run("shard", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_folder_that_is_complete_is_not_touched(edges):
    assert run("shard", edges, "-o", "parts").exit_code == 0
    result = run("shard", edges, "-o", "parts")
    assert result.exit_code == 2
    assert "contains a graph in shards" in result.stderr
    assert "is already a graph in shards" in run("shard", "parts", "-o", "again").stderr


def test_a_folder_without_a_manifest_is_no_file(edges):
    assert "is a folder" in run("info", edges.parent).stderr
