"""`brane convert` writes the same vectors in another format, and lists the data that is lost."""

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.embedding import Embedding


def brane(*words):
    return CliRunner().invoke(app, ["convert", *map(str, words)])


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "v.npz"
    Embedding(np.eye(3), ["a", "b", "c"], {"method": "by hand"}, np.array(["known"] * 3)).save(path)
    return path


@pytest.mark.parametrize("suffix", [".safetensors", ".parquet", ".txt", ".projector"])
def test_vectors_pass_through_every_format(source, suffix, tmp_path):
    there, back = tmp_path / f"there{suffix}", tmp_path / "back.npz"
    result = brane(source, "-o", there)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"wrote 3 x 3 vectors to {there}\n")
    assert brane(there, "-o", back).exit_code == 0
    found = Embedding.load(back)
    assert (found.ids.tolist(), found.vectors.tolist()) == (["a", "b", "c"], np.eye(3).tolist())
    lost = [found.provenance == {}, found.made_from is None]
    words = ["the provenance", "what each vector was made from"]
    assert [word in result.stderr for word in words] == lost


def test_what_to_do_with_the_file_is_said(source, tmp_path):
    said = brane(source, "-o", tmp_path / "v.pgvector").stdout
    assert "CREATE TABLE nodes (id text PRIMARY KEY, embedding vector(3));" in said
    assert f"\\copy nodes FROM '{tmp_path}/v.pgvector'" in said
    assert "tensorboard --logdir" in brane(source, "-o", tmp_path / "v.projector").stdout


def test_ids_beside_an_array_are_found_or_named(tmp_path):
    np.save(tmp_path / "v.npy", np.eye(2))
    (tmp_path / "names").write_text("x\ny\n")
    assert brane(tmp_path / "v.npy", "--ids", tmp_path / "names", "-o", tmp_path / "v.csv").exit_code == 0
    assert Embedding.load(tmp_path / "v.csv").ids.tolist() == ["x", "y"]


def test_what_cannot_be_is_refused(source, tmp_path):
    assert "is also read as VECTORS" in brane(source, "-o", source).stderr
    Embedding(np.eye(1), ["New York"]).save(tmp_path / "w.csv")
    assert "id 'New York'" in brane(tmp_path / "w.csv", "-o", tmp_path / "w.bin").stderr
    (tmp_path / "w.ids.txt").write_text("mine")
    refused = brane(tmp_path / "w.csv", "--ids", tmp_path / "w.ids.txt", "-o", tmp_path / "w.npy")
    assert "w.ids.txt is also read as --ids" in refused.stderr
    assert not (tmp_path / "w.bin").exists()
