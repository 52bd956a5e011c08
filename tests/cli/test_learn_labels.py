"""`brane embed --learn-labels`, and where methods that learn from labels are marked."""

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import Embedding
from neural_brane.cli.app import app

EMBED = ["embed", "stdlib", "--method", "lane", "--dim", "8", "--epochs", "1", "--seed", "0"]


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def plain(tmp_path):
    assert run(*EMBED, "-o", tmp_path / "plain.npz").exit_code == 0
    return Embedding.load(tmp_path / "plain.npz")


def test_labels_are_learned_from_only_where_asked(plain, tmp_path):
    result = run(*EMBED, "--learn-labels", "-o", tmp_path / "told.npz")
    assert result.exit_code == 0, result.stderr
    told = Embedding.load(tmp_path / "told.npz")
    assert (plain.provenance["labels"], told.provenance["labels"]) == (0, 554)
    assert not np.array_equal(plain.vectors, told.vectors)


def test_a_file_of_training_labels_is_enough(tmp_path):
    (tmp_path / "ring.txt").write_text("".join(f"{at} {(at + 1) % 20}\n" for at in range(20)))
    (tmp_path / "train.txt").write_text("".join(f"{at}\t{'ab'[at // 6]}\n" for at in range(12)))
    asked = ("--method", "lane", "--dim", "4", "--labels", tmp_path / "train.txt", "--learn-labels")
    result = run("embed", tmp_path / "ring.txt", *asked, "-o", tmp_path / "told.npz")
    assert result.exit_code == 0, result.stderr
    assert Embedding.load(tmp_path / "told.npz").provenance["labels"] == 12


def test_it_is_refused_where_it_makes_no_sense(tmp_path):
    other = run("embed", "stdlib", "--method", "attributes", "--learn-labels", "-o", tmp_path / "v.npz")
    assert other.exit_code != 0
    assert "attributes learns from no labels; leave it out, or choose from lane, tridnr" in str(other.stderr)
    (tmp_path / "g.txt").write_text("a b\nb c\n")
    bare = run("embed", tmp_path / "g.txt", "--method", "lane", "--learn-labels", "-o", tmp_path / "v.npz")
    assert bare.exit_code != 0
    assert "has no labels; give a file with --labels" in str(bare.stderr)


def test_scores_of_such_vectors_come_with_a_warning(plain, tmp_path):
    run(*EMBED, "--learn-labels", "-o", tmp_path / "told.npz")
    asked = ("--labels", "stdlib", "--task", "clustering", "--starts", "1")
    told, clean = (run("evaluate", tmp_path / name, *asked) for name in ("told.npz", "plain.npz"))
    assert "learned from the labels of 554 nodes too" in told.stderr
    assert clean.exit_code == told.exit_code == 0
    assert "learned from the labels" not in clean.stderr


def test_the_list_of_methods_marks_them():
    lines = run("methods").stdout
    assert lines.count("labels †") == 2
    assert "uses       links, attributes, labels †" in run("methods", "lane").stdout
