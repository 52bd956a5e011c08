"""`brane info` and `brane inspect`."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import NeuralBrane
from neural_brane.cli.app import app
from neural_brane.evaluate.labelled import Splits
from neural_brane.evaluate.link import hold_out_edges
from neural_brane.files.graphs.formats import write_graph
from neural_brane.files.vectors.formats import VectorFile
from neural_brane.graph import AttributedGraph

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning"),
    pytest.mark.filterwarnings("ignore::neural_brane.errors.UntrainedWarning"),
]


@pytest.fixture
def model(small_graph, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return NeuralBrane(dim=6, epochs=2, batches_per_epoch=5, seed=3, checkpoint="run.checkpoint").fit(small_graph)


def info(*arguments):
    return CliRunner().invoke(app, ["info", *map(str, arguments)])


def facts(path):
    result = info(path, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_model(model):
    model.save("m.brane")
    found = facts("m.brane")
    assert found["kind"] == "model"
    assert (found["method"], found["nodes"], found["dim"], found["seed"]) == ("neural-brane", 12, 6, 3)
    assert found["graph"]["digest"] == model.graph_.digest()
    assert found["parameters"]["batches_per_epoch"] == 5
    assert found["loss"] == model.loss_history_[-1]
    text = info("m.brane").stdout
    assert text.startswith("m.brane: model, 12 x 6 (")
    assert "'small': 12 nodes, 14 edges, 5 attributes (digest " in text
    assert "learned_weight=0.25" in text


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_vectors_with_provenance(model, suffix):
    model.embedding_.save(f"v.{suffix}")
    found = facts(f"v.{suffix}")
    assert (found["kind"], found["nodes"], found["dim"]) == ("vectors", 12, 6)
    assert found["method"] == "neural-brane"
    assert found["graph"]["name"] == "small"


@pytest.mark.parametrize("suffix", ["txt", "tsv", "csv"])
def test_vectors_as_text(model, suffix):
    model.embedding_.save(f"v.{suffix}")
    found = facts(f"v.{suffix}")
    assert (found["kind"], found["dim"]) == ("vectors", 6)


def test_a_checkpoint(model):
    found = facts("run.checkpoint")
    assert (found["kind"], found["method"], found["seed"]) == ("checkpoint", "neural-brane", 3)
    assert found["steps done"]["learned part"] > 0
    assert found["graph"]["nodes"] == 12


@pytest.mark.parametrize("layout", ["graph", "scipy"])
def test_a_graph(small_graph, tmp_path, layout):
    small_graph.save(tmp_path / "g.npz", layout=layout)
    found = facts(tmp_path / "g.npz")
    assert (found["kind"], found["nodes"], found["attributes"], found["labels"]) == ("graph", 12, 5, True)


def test_splits_and_held_out_pairs(small_graph, tmp_path):
    Splits.draw(small_graph.ids, small_graph.labels, splits=3, seed=1).save(tmp_path / "s.json")
    found = facts(tmp_path / "s.json")
    assert (found["kind"], found["nodes"], found["splits"], found["seed"]) == ("splits", 12, 3, 1)
    held = hold_out_edges(small_graph, share=0.3)
    held.save(tmp_path / "pairs.npz")
    found = facts(tmp_path / "pairs.npz")
    assert (found["kind"], found["positives"]) == ("held-out pairs", len(held.positives))
    assert found["training_digest"] == held.training_digest


def test_files_of_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.zeros((3, 2), np.float32))
    np.savez("a.npz", weights=np.zeros((3, 2)))
    (tmp_path / "a.csv").write_text("from,to\nann,bob\n")
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b\x08\x00")
    (tmp_path / "a").write_bytes(b"\xff\xfe\xfd")
    (tmp_path / "empty").write_bytes(b"")
    assert facts("a.npy")["shape"] == [3, 2]
    assert facts("a.npz")["arrays"] == {"weights": "float64 3 x 2"}
    assert (facts("a.csv")["kind"], facts("a.csv")["see"]) == ("text", "brane inspect a.csv")
    assert [facts(name)["kind"] for name in ("a.gz", "a", "empty")] == ["compressed by gzip", "unknown", "text"]


def test_safetensors_of_others(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file({"emb": np.zeros((3, 2), np.float32)}, tmp_path / "a.safetensors", metadata={"by": "hand"})
    found = facts(tmp_path / "a.safetensors")
    assert found["kind"] == "safetensors"
    assert found["metadata"] == {"by": "hand"}
    assert found["arrays"] == {"emb": "F32 3 x 2"}


def test_what_is_not_there_is_one_line(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        result = info(path)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1


@pytest.fixture
def inspect(tmp_path):
    """Return a function that writes files, inspects the first (with the second as nodes) and returns the output."""

    def run(**files: str) -> str:
        words = ["inspect"]
        for name, text in files.items():
            path = tmp_path / name.replace("_", ".")
            path.write_bytes(text.encode())
            words += ["--nodes", str(path)] if name.startswith("nodes") else [str(path)]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, result.output
        return result.stdout.replace(f"{tmp_path}/", "")

    return run


EDGES = "from,to,weight,kind\nann,bob,1,friend\nbob,ann,2,friend\nbob,bob,3,friend\nann,dan,1,friend\n"


def test_a_table_of_edges(inspect):
    text = inspect(edges_csv=EDGES)
    assert (
        "edges.csv: CSV separated by ',', with a header, UTF-8; edges from 'from' to 'to', weighted by 'weight'" in text
    )
    assert "columns not used: 'kind'" in text
    assert "nodes 3; edges 3; ids strings; weights 1 to 3" in text
    assert "note: column 'kind' has one value in all rows, 'friend'" in text
    assert "note: 1 edges are repeated" in text
    assert "note: 1 edges join a node to itself" in text


def test_a_table_of_nodes_beside_its_edges(inspect):
    text = inspect(edges_csv=EDGES, nodes_csv="name,age,town\nann,31,Ulm\nbob,44,Ulm\neve,22,Bonn\n")
    assert "column of ids name; nodes of the edges with a row 2" in text
    assert "note: 1 nodes of the edges have no row, such as 'dan'" in text
    assert "note: 1 ids of column 'name' are in no edge, such as 'eve'" in text
    assert [word in text for word in ("number", "category", "44")] == [True] * 3


def test_a_table_of_nodes_alone_is_no_table_of_edges(inspect):
    text = inspect(people_csv="name,age,town,team\nann,31,Ulm,red\nbob,44,Ulm,red\neve,22,Bonn,blue\n")
    assert "reads as a table of nodes; give it with --nodes" in text


def test_lines_of_words(inspect):
    assert "note: the first line, '7 2', is read as a header: 7 nodes" in inspect(g_txt="7 2\n1 3\n2 4\n")
    ring = "".join(f"n{at} n{(at + 1) % 9}\n" for at in range(9))
    assert "note: the first edge, 'one two', has two nodes that no other edge has" in inspect(g_txt=f"one two\n{ring}")
    assert "no problems found" in inspect(g_txt=ring)


def test_what_does_not_print_is_escaped(inspect):
    text = inspect(edges_csv="source,target\nann\x1b[31m,bob\nbob,cid\n")
    assert "\x1b" not in text
    assert "ann\\x1b[31m" in text


def test_graphs_and_vectors_of_ours(tmp_path):
    graph = AttributedGraph.from_edges([("a", "b")], ids=["a", "b", "c"], labels={"a": "x"}, attributes={"a": ["k"]})
    write_graph(graph, tmp_path / "g.npz")
    for name in ("v.npz", "v.txt", "v.tsv", "v.parquet"):
        VectorFile(tmp_path / name).write(graph.ids, [np.eye(3, 5, dtype=np.float32)], dim=5)
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "g.npz")])
    assert "nodes 3; edges 1; attributes 1; classes 1; nodes with a label 1" in result.stdout
    assert "note: 1 nodes have no edge" in result.stdout
    for name in ("v.npz", "v.txt", "v.tsv", "v.parquet"):
        result = CliRunner().invoke(app, ["inspect", str(tmp_path / name)])
        assert f"{name}: vectors, .{name[2:]}\n  nodes 3; dim 5\n" in result.stdout, name


def test_a_file_that_cannot_be_read_is_one_line_on_stderr(tmp_path):
    text = "graph [\n node [ id 1 ]\n node [ id 2 ]\n edge [ source 1 target 2 ]\n]\n"
    (tmp_path / "g.txt").write_text(text)
    (tmp_path / "g.gml").write_text(text)
    assert "nodes 2; edges 1" in CliRunner().invoke(app, ["inspect", str(tmp_path / "g.gml")]).stdout
    result = CliRunner().invoke(app, ["inspect", str(tmp_path / "g.txt")])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {tmp_path}/g.txt: the graph file is a GML file")
