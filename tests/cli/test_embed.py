import json
import os
import pty
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.cli.terminal import file_size
from neural_brane.embedding import Embedding
from neural_brane.experiments.tune import Tuned

SHORT = ["--epochs", "2", "--set", "batches_per_epoch=5", "--dim", "8", "--seed", "1"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A ring of twenty nodes in the published format; the command runs beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph.txt").write_text("20 20\n" + "".join(f"{i} {(i + 1) % 20}\n" for i in range(20)))
    (tmp_path / "words.txt").write_text("".join(f"{i} {i % 3}:1 {3 + i % 4}:1\n" for i in range(20)))
    (tmp_path / "labels.txt").write_text("".join(f"{i}\t{'ab'[i < 10]}\n" for i in range(20)))
    return tmp_path


def embed(*arguments):
    return CliRunner().invoke(app, ["embed", *map(str, arguments)])


@pytest.mark.parametrize("suffix", ["npz", "txt", "w2v", "tsv", "parquet"])
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


@pytest.mark.parametrize(
    "option", ["dim=8", "epochs=1", "seed=4", "threads=1", "device=cpu", "checkpoint=run.safetensors"]
)
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


def test_another_method(files):
    result = embed("graph.txt", "--attributes", "words.txt", "-o", "v.npz", "--method", "attributes", "--dim", 4)
    assert result.exit_code == 0, result.stderr
    assert Embedding.load(files / "v.npz").dim == 4


def test_any_parameter_can_be_set_by_name(files):
    command = ["graph.txt", "--attributes", "words.txt", "-o", "v.npz", "--epochs", 1, "--dim", 8]
    result = embed(*command, *("--set", "batches-per-epoch=5", "--set", "seed = 3", "--set", "bias=true"))
    assert result.exit_code == 0, result.stderr
    parameters = Embedding.load(files / "v.npz").provenance["parameters"]
    assert (parameters["batches_per_epoch"], parameters["seed"], parameters["bias"]) == (5, 3, True)


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
    assert "'neural-brane' are kept for 'cora', only for stdlib" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-graph", "-o", "v.npz"], "no-such-graph"),
        (["graph.txt", "-o", "v.json"], "v.json: cannot tell its format; name a file ending in .npz"),
        (
            ["graph.txt", "-o", "v.npz", "--method", "magic"],
            "method 'magic' is unknown; choose one of neural-brane",
        ),
        (
            ["graph.txt", "-o", "v.npz", "--method", "attributes", "--epochs", "3"],
            "method 'attributes' has no parameter 'epochs'; it has dim, seed, threads, device, progress",
        ),
        (["graph.txt", "-o", "v.npz", "--method", "atributes"], "(did you mean 'attributes'?)"),
        (
            ["graph.txt", "-o", "v.npz", "--method", "attributes", "--set", "sead=1"],
            "method 'attributes' has no parameter 'sead' (did you mean 'seed'?); it has dim, ",
        ),
        (["graph.txt", "-o", "v.npz", "--set", "l2=soft"], "l2=soft: give a number from 0, or None, as in l2=0.1"),
        (["graph.txt", "-o", "v.npz", "--dim", "8", "--set", "dim=9"], "dim=9: dim is given twice; leave one out"),
        (["stdlib", "-o", "v.npz", "--tuned", "--method", "attributes"], "'attributes' are kept for 'stdlib'"),
        (["graph.txt", "-o", "v.npz", "--dim", "-3"], "dim=-3"),
        (["graph.txt", "-o", "v.npz", "--attributes", "gone.txt"], "gone.txt"),
        (["spaced.npz", "-o", "v.txt"], "cannot hold id 'New York'; write .csv, .npz or .parquet instead"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(arguments, message, files):
    from neural_brane.files.graphs.formats import write_graph
    from neural_brane.graph import AttributedGraph

    towns = AttributedGraph.from_edges([("New York", "Rome"), ("Rome", "Oslo"), ("Oslo", "Bonn")])
    write_graph(towns, files / "spaced.npz")
    result = embed(*arguments)
    assert result.exit_code == 2
    last = result.stderr.splitlines()[-1]
    assert last.startswith("error: ")
    assert message in last
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


@pytest.mark.parametrize(("number", "text"), [(12, "12 bytes"), (2_100_000, "2.1 MB"), (5_000_000_000, "5.0 GB")])
def test_sizes_are_readable(number, text, tmp_path):
    with open(tmp_path / "f", "wb") as file:
        file.truncate(number)
    assert file_size(tmp_path / "f") == text
