import subprocess
import sys

import pytest
from typer.testing import CliRunner

import neural_brane
from neural_brane.cli import app as module
from neural_brane.cli.app import app
from neural_brane.errors import GraphError

HEAVY = {"numba", "sklearn", "matplotlib", "polars", "scipy", "numpy"}


@pytest.fixture
def failing(monkeypatch):
    """Make `brane datasets` raise what it is told to."""

    def install(error):
        def fail():
            raise error

        monkeypatch.setattr("neural_brane.files.datasets.list_datasets", fail)
        return CliRunner().invoke(app, ["datasets"])

    return install


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout == f"brane {neural_brane.__version__}\n"


def test_help_teaches_the_formats_within_eighty_columns():
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    for line in module.HELP.splitlines():
        if line.startswith("  "):
            assert line in text, f"folded: {line}"
    for part in ("u v weight", "17 3:1 8:1", "node<TAB>label", "nodes dim"):
        assert part in text


@pytest.mark.parametrize(
    "command", ["embed", "evaluate", "compare", "split-edges", "datasets", "methods", "tune", "reproduce", "demo"]
)
def test_every_command_has_help(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"brane {command}" in result.stdout


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
