import inspect
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import neural_brane
from neural_brane import METHODS, load
from neural_brane.cli.app import app
from neural_brane.embedding import Embedding
from neural_brane.errors import GraphError
from neural_brane.files.vectors.parts import write_parts

HEAVY = {"numba", "sklearn", "matplotlib", "polars", "scipy", "numpy"}


@pytest.fixture
def failing(monkeypatch):
    """Make `brane datasets` raise a given error."""

    def install(error):
        def fail():
            raise error

        monkeypatch.setattr("neural_brane.files.datasets.list_datasets", fail)
        return CliRunner().invoke(app, ["datasets"])

    return install


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout == f"brane {neural_brane.__version__}\n"


def commands():
    """Return all commands by the words that call them."""
    found = {}
    for name, command in get_command(app).commands.items():
        found |= {(name, inner): one for inner, one in getattr(command, "commands", {None: command}).items()}
    return {tuple(filter(None, words)): command for words, command in found.items()}


def examples(words):
    """Return the examples in the help of a command, as lists of words."""
    text = inspect.getdoc(commands()[words].callback) if words else app.info.help
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith(("brane ", "torchrun "))]
    return [shlex.split(re.split(r"\s{2,}", line)[0]) for line in lines]


@pytest.mark.parametrize("words", [(), *commands()], ids=" ".join)
def test_help_fits_a_screen_of_eighty_columns_and_its_examples_are_commands(words):
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) <= 55
    for example in examples(words):
        assert " ".join(example) in result.stdout, "folded"
        given = example[1:] if example[0] == "brane" else example[example.index("neural_brane") + 1 :]
        name = next(name for name in commands() if tuple(given[: len(name)]) == name)
        commands()[name].make_context(name[-1], given[len(name) :])  # raises UsageError


# Examples of other commands train for long, open a browser or need several processes.
RUN = ("embed", "transform", "update", "evaluate", "nearest", "explain", "suggest", "cluster", "convert", "inspect",
       "info", "split-edges", "shard", "methods", "datasets", "formats")  # fmt: skip
# The bundled dataset and its nodes replace a dataset that may be missing.
HERE = {"citeseer": "stdlib", "100157": "json", "102879": "pickle", "17": "json", "204": "pickle"}


def quickly(words):
    """Return the words of an example, with a dataset that is here and little training."""
    words = [HERE.get(word, word) for word in words]
    if words[0] != "embed":
        return words
    known = METHODS[words[words.index("--method") + 1] if "--method" in words else "neural-brane"].parameters()
    quick = {"dim": 4, "epochs": 1, "batches_per_epoch": 1, "walks_per_node": 1}
    for name, value in quick.items():
        words += ["--set", f"{name}={value}"] if name in known and f"--{name}" not in words else []
    return words


@pytest.fixture(scope="module")
def example_files(tmp_path_factory):
    """Return a folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    people = [f"p{at:02}" for at in range(11)] + ["ann"]
    ring = "".join(f"{one},{other}\n" for one, other in zip(people, people[1:] + people[:1], strict=True))
    title = "name,age,team\n"
    files = {
        "graph.txt": ring.replace(",", " "),
        "words.txt": "".join(f"{one} {at % 3}:1\n" for at, one in enumerate(people)),
        "classes.txt": "".join(f"{one}\t{'ab'[at % 2]}\n" for at, one in enumerate(people)),
        "edges.csv": f"follower,followed\n{ring}",
        "changed.csv": f"follower,followed\n{ring}p03,p07\n",
        "people.csv": title + "".join(f"{one},{20 + at % 5},{'ab'[at % 2]}\n" for at, one in enumerate(people)),
        "new_people.csv": f"{title}zoe,21,a\n",
        "new_edges.csv": "source,target\nzoe,ann\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "folder-of-parquet").mkdir()
    for name in ("edges.parquet", "folder-of-parquet/edges.parquet"):
        pl.read_csv(folder / "edges.csv").rename({"follower": "source", "followed": "target"}).write_parquet(
            folder / name
        )
    ids = np.array([*load("stdlib").ids, *people])
    made = Embedding(np.random.default_rng(0).normal(size=(len(ids), 3)), ids)
    made.save(folder / "vectors.npz")
    Embedding(made.vectors[-12:], people).save(folder / "gensim.txt")
    write_parts(folder / "folder", made.ids, made.vectors, parts=2)
    table = ["--nodes", str(folder / "people.csv")]
    for words in (
        ["embed", str(folder / "edges.csv"), *table, "--save-model", str(folder / "m.brane")],
        ["split-edges", "stdlib", "-o", str(folder / "train.npz"), "--held-out", str(folder / "pairs.npz")],
    ):
        assert CliRunner().invoke(app, quickly(words)).exit_code == 0
    return folder


@pytest.mark.parametrize("command", RUN)
def test_examples_of_help_run(command, example_files, tmp_path, monkeypatch):
    shutil.copytree(example_files, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    for _, *words in examples((command,)):
        shutil.rmtree("shards", ignore_errors=True)
        result = CliRunner().invoke(app, quickly(words))
        assert result.exit_code == 0, (words, result.output)


def test_a_foreseen_error_is_one_line_and_exit_code_2(failing):
    result = failing(GraphError("g.txt:3: weight -1 is below zero"))
    assert (result.exit_code, result.stderr) == (2, "error: g.txt:3: weight -1 is below zero\n")


def test_a_file_that_cannot_be_opened_is_an_error_too(failing):
    result = failing(PermissionError(13, "Permission denied", "/locked"))
    assert (result.exit_code, result.stderr) == (2, "error: /locked: Permission denied\n")


def test_an_interrupt_leaves_cleanly(failing):
    result = failing(KeyboardInterrupt())
    assert (result.exit_code, result.stderr) == (130, "stopped\n")


def test_a_mistake_of_ours_is_not_hidden(failing):
    assert isinstance(failing(ZeroDivisionError()).exception, ZeroDivisionError)


def test_an_unknown_option_leaves_with_code_2():
    result = CliRunner().invoke(app, ["embed", "citeseer", "-o", "v.npz", "--secret", "3"])
    assert result.exit_code == 2
    assert "--secret" in result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["embed", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code = "import neural_brane.cli; neural_brane.cli.main()"
    process = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines}
    assert "neural_brane" in imported
    assert imported.isdisjoint(HEAVY)
