import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import NeuralBrane
from neural_brane.cli.app import app
from neural_brane.evaluate.link import hold_out_edges
from neural_brane.evaluate.splits import Splits

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
    assert "learned_weight=0.35" in text


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
