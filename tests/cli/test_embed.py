"""`brane embed`."""

import json
import os
import pty
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.embedding import Embedding
from neural_brane.experiments.tune import Tuned

SHORT = ["--epochs", "2", "--set", "batches_per_epoch=5", "--dim", "8", "--seed", "1"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write a ring of twenty nodes in the published format; the command runs in its folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.txt").write_text("20 20\n" + "".join(f"{i} {(i + 1) % 20}\n" for i in range(20)))
    (tmp_path / "words.txt").write_text("".join(f"{i} {i % 3}:1 {3 + i % 4}:1\n" for i in range(20)))
    (tmp_path / "labels.txt").write_text("".join(f"{i}\t{'ab'[i < 10]}\n" for i in range(20)))
    return tmp_path


def embed(*arguments):
    return CliRunner().invoke(app, ["embed", *map(str, arguments)])


@pytest.mark.parametrize("suffix", ["npz", "tsv"])
def test_vectors_are_written_with_ids_and_the_last_line_says_so(files, suffix):
    result = embed("graph.txt", "--attributes", "words.txt", "-o", f"v.{suffix}", *SHORT)
    assert result.exit_code == 0, result.stderr
    found = Embedding.load(files / f"v.{suffix}")
    assert found.ids.tolist() == list(range(20))
    assert found.dim == 8
    assert np.isfinite(found.vectors).all()
    last = result.stdout.splitlines()[-1]
    assert last.startswith(f"wrote 20 x 8 vectors to v.{suffix} (")
    assert last.endswith(" s")


def test_a_seed_gives_the_same_file_and_another_seed_another(files):
    for name, seed in (("a.npz", 1), ("b.npz", 1), ("c.npz", 2)):
        embed("graph.txt", "--attributes", "words.txt", "-o", name, *SHORT[:-1], seed)
    first, again, other = ((files / name).read_bytes() for name in ("a.npz", "b.npz", "c.npz"))
    assert first == again
    assert first != other


@pytest.mark.parametrize("option", ["dim=8", "device=cpu", "checkpoint=run.safetensors"])
def test_an_option_is_short_for_a_setting(option, files):
    name, _, value = option.partition("=")
    command = ["graph.txt", "--attributes", "words.txt", "-o", "v.npz", "--set", "batches_per_epoch=2"]
    given = {"--dim": "4", "--epochs": "1", "--seed": "3"}
    given.pop(f"--{name}", None)
    words = [word for pair in given.items() for word in pair]
    for setting in (["--set", option], [f"--{name}", value]):
        assert embed(*command, *words, *setting).exit_code == 0
        parameters = Embedding.load(files / "v.npz").provenance["parameters"]
        assert str(parameters.get(name, value)) == value
    twice = embed(*command, *words, f"--{name}", value, "--set", option)
    assert f"{name} is given twice; leave one out" in twice.stderr


def test_parameters_are_kept_in_the_file(files):
    embed("graph.txt", "--attributes", "words.txt", "-o", "v.npz", *SHORT, "--set", "pooling=mean")
    provenance = Embedding.load(files / "v.npz").provenance
    assert provenance["parameters"]["pooling"] == "mean"
    assert json.dumps(provenance)


def test_tuned_values_are_used_and_yield_to_what_is_typed(files, monkeypatch):
    kept = {"stdlib": {"neural-brane": Tuned({"dim": 10, "l2": 0.5, "batches_per_epoch": 2}, 0.9, 12)}}
    monkeypatch.setattr("neural_brane.experiments.tune.tuned", lambda: kept)
    result = embed("stdlib", "--tuned", "--set", "l2=0.25", "--epochs", "1", "-o", "v.npz")
    assert result.exit_code == 0, result.stderr
    parameters = Embedding.load(files / "v.npz").provenance["parameters"]
    assert {name: parameters[name] for name in ("dim", "l2", "epochs", "batches_per_epoch")} == {
        "dim": 10, "l2": 0.25, "epochs": 1, "batches_per_epoch": 2,
    }  # fmt: skip
    missing = embed("cora", "--tuned", "-o", "v.npz")
    assert "for 'cora', only for stdlib" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "noun"),
    [
        (["no-such-graph", "-o", "v.npz"], "no-such-graph"),
        (["graph.txt", "-o", "v.json"], "v.json"),
        (["graph.txt", "-o", "v.npz", "--method", "atributes"], "'attributes'"),
        (["graph.txt", "-o", "v.npz", "--method", "attributes", "--epochs", "3"], "'epochs'"),
        (["graph.txt", "-o", "v.npz", "--set", "l2=soft"], "l2=soft"),
        (["stdlib", "-o", "v.npz", "--tuned", "--method", "attributes"], "'stdlib'"),
        (["graph.txt", "-o", "v.npz", "--attributes", "gone.txt"], "gone.txt"),
        (["spaced.npz", "-o", "v.txt"], "'New York'"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(arguments, noun, files):
    from neural_brane.files.graphs.formats import write_graph
    from neural_brane.graph import AttributedGraph

    towns = AttributedGraph.from_edges([("New York", "Rome"), ("Rome", "Oslo"), ("Oslo", "Bonn")])
    write_graph(towns, files / "spaced.npz")
    result = embed(*arguments)
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert noun in last
    assert "Traceback" not in result.stderr
    assert not list(files.glob("v.*"))


def test_output_is_plain_in_a_pipe_and_a_bar_on_a_terminal(files):
    command = [sys.executable, "-c", "from neural_brane.cli import main; main()"]
    command += ["embed", "graph.txt", "-o", "v.npz", *SHORT]
    piped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "\x1b" not in piped.stderr + piped.stdout
    assert 1 <= len(piped.stderr.splitlines()) <= 6
    terminal, inner = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=inner, env=os.environ | {"TERM": "xterm"}) as run:
        assert run.wait() == 0
    os.close(inner)
    assert b"\x1b" in os.read(terminal, 100_000)
    os.close(terminal)


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
    assert "lane, tridnr" in str(other.stderr)
    (tmp_path / "g.txt").write_text("a b\nb c\n")
    bare = run("embed", tmp_path / "g.txt", "--method", "lane", "--learn-labels", "-o", tmp_path / "v.npz")
    assert bare.exit_code != 0
    assert "has no labels" in str(bare.stderr)


def test_scores_of_such_vectors_come_with_a_warning(plain, tmp_path):
    run(*EMBED, "--learn-labels", "-o", tmp_path / "told.npz")
    asked = ("--labels", "stdlib", "--task", "clustering", "--starts", "1")
    told, clean = (run("evaluate", tmp_path / name, *asked) for name in ("told.npz", "plain.npz"))
    assert "the labels of 554 nodes" in told.stderr
    assert clean.exit_code == told.exit_code == 0
    assert "labels of" not in clean.stderr


def test_the_list_of_methods_marks_them():
    lines = run("methods").stdout
    assert lines.count("labels †") == 2
    assert "uses       links, attributes, labels †" in run("methods", "lane").stdout
