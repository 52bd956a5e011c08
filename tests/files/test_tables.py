import json

import numpy as np
import polars as pl
import pytest

from neural_brane.errors import DatasetError, GraphError, ParameterError
from neural_brane.files.datasets import read, read_labels
from neural_brane.files.graphs.formats import read_graph, write_graph
from neural_brane.files.nodes import read_label_table
from neural_brane.files.npz import open_npz, write_npz

EDGES = pl.DataFrame({"from": ["ann", "bob", "cid"], "to": ["bob", "cid", "dan"], "weight": [1.0, 2.5, 1.0]})
PEOPLE = pl.DataFrame(
    {
        "name": ["ann", "bob", "cid", "dan", "eve"],
        "age": [31, None, 45, 31, 22],
        "land": ["IN", None, "FR", "IN", "FR"],
        "member": [True, False, True, None, True],
        "about": ["likes old books", "likes new books", None, "reads old news", "hates most pies"],
        "team": ["red", "red", None, "blue", "blue"],
    }
)
WRITERS = {
    "csv": pl.DataFrame.write_csv,
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "parquet": pl.DataFrame.write_parquet,
    "jsonl": pl.DataFrame.write_ndjson,
    "arrow": pl.DataFrame.write_ipc,
}


@pytest.fixture
def table(tmp_path):
    """Return a function that writes both tables in a format and returns their paths."""

    def write(suffix):
        paths = tmp_path / f"edges.{suffix}", tmp_path / f"people.{suffix}"
        for frame, path in zip((EDGES, PEOPLE), paths, strict=True):
            WRITERS[suffix](frame, path)
        return paths

    return write


@pytest.mark.parametrize("suffix", WRITERS)
def test_every_format_gives_the_same_bits(suffix, table):
    from neural_brane.graph import AttributedGraph

    edges, people = table(suffix)
    graph = read_graph(edges, nodes=people, label="team")
    expected = AttributedGraph.from_frames(EDGES, PEOPLE, label="team")
    assert graph.digest() == expected.digest()
    assert graph.encoder.as_dict() == expected.encoder.as_dict()
    assert graph.labels.tolist() == ["red", "red", "", "blue", "blue"]
    assert graph.adjacency[1, 2] == 2.5


def test_a_table_of_nodes_joins_edges_of_any_format(table, tmp_path):
    _, people = table("parquet")
    (tmp_path / "graph.txt").write_text("ann bob\nbob cid\ncid dan\n")
    assert read_graph(tmp_path / "graph.txt", nodes=people).attribute_names.tolist()[:2] == ["age=22", "age=31"]


def test_an_npz_keeps_the_encoder_and_a_damaged_one_is_refused(table, tmp_path):
    edges, people = table("csv")
    graph = read(edges, nodes=people, label="team", columns={"about": "text:2"})
    write_graph(graph, tmp_path / "g.npz")
    again = read_graph(tmp_path / "g.npz")
    assert again.digest() == graph.digest()
    assert again.encoder.as_dict() == graph.encoder.as_dict()
    with open_npz(tmp_path / "g.npz", GraphError, "arrays") as archive:
        kept = {name: archive[name] for name in archive.names}
    other = graph.encoder.as_dict()
    other["columns"] = other["columns"][:2]
    for damaged, said in (
        (b"{", "array 'encoder' is not JSON"),
        (b"\xff{", "array 'encoder' is not JSON"),
        (b"[]", "not .* encoder"),
        (json.dumps(other).encode(), "the encoder's 3 attributes"),
    ):
        write_npz(tmp_path / "bad.npz", kept | {"encoder": np.frombuffer(damaged, np.uint8)})
        with pytest.raises(GraphError, match=r"bad\.npz: " + said):
            read_graph(tmp_path / "bad.npz")


def test_a_rule_that_makes_no_sense_is_not_blamed_on_the_encoder(table, tmp_path):
    edges, people = table("csv")
    write_graph(read(edges, nodes=people), tmp_path / "g.npz")
    with pytest.raises(ParameterError, match="duplicates is 'least'"):
        read_graph(tmp_path / "g.npz", duplicates="least")


def test_a_graph_without_an_encoder_is_written_as_before(tmp_path):
    (tmp_path / "graph.txt").write_text("a b\n")
    write_graph(read_graph(tmp_path / "graph.txt"), tmp_path / "g.npz")
    assert "encoder" not in np.load(tmp_path / "g.npz")
    assert read_graph(tmp_path / "g.npz").encoder is None


def test_errors_name_the_file_and_the_line(table, tmp_path):
    edges, people = table("csv")
    people.write_text(people.read_text() + "ann,1,IN,true,x,red\n")
    with pytest.raises(GraphError, match=r"people\.csv:7.*node 'ann'.*2"):
        read_graph(edges, nodes=people)


def test_options_of_nodes_need_a_table_of_nodes(table):
    edges, people = table("csv")
    with pytest.raises(GraphError, match=r"label.*table of nodes.*add nodes"):
        read_graph(edges, label="team")
    with pytest.raises(DatasetError, match=r"'stdlib'.*nodes"):
        read("stdlib", nodes=people)


@pytest.mark.parametrize("suffix", WRITERS)
def test_labels_come_from_two_columns_of_a_table(suffix, table):
    _, people = table(suffix)
    ids, labels = read_label_table(people, id="name", label="team")
    assert dict(zip(ids.tolist(), labels.tolist(), strict=True)) == {
        "ann": "red",
        "bob": "red",
        "dan": "blue",
        "eve": "blue",
    }
    assert read_labels(people, id="name", label="team")[1].tolist() == labels.tolist()


def test_labels_by_number_match_ids_by_number(tmp_path):
    path = tmp_path / "labels.parquet"
    pl.DataFrame({"node": [1, 2], "class": [3.0, 4.0]}).write_parquet(path)
    ids, labels = read_labels(path)
    assert (ids.tolist(), labels.tolist()) == ([1, 2], ["3", "4"])


def test_a_table_of_labels_is_refused_with_what_is_there(table):
    _, people = table("csv")
    with pytest.raises(GraphError, match=r"column.*--label NAME.*'team'"):
        read_label_table(people, id="name")
    with pytest.raises(GraphError, match="column 'nmae'"):
        read_label_table(people, id="nmae", label="team")
