"""A closed, full or broken stream, or one with few characters, never loses vectors and never shows a traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli import terminal
from neural_brane.cli.app import app
from neural_brane.embedding import Embedding
from neural_brane.errors import LONGEST, BraneError, GraphError, NotFittedError

RUN = f"{sys.executable} -c 'from neural_brane.cli import main; main()'"
EMBED = f"{RUN} embed g.txt --method attributes --dim 2 -o v.npz"
ESCAPE = "\x1b[2J"


@pytest.fixture
def graph(tmp_path, monkeypatch) -> Path:
    """Write a graph of four nodes to the current folder; one id is the sequence that clears a terminal."""
    monkeypatch.chdir(tmp_path)
    path = Path("g.txt")
    path.write_text(f"a b\nb {ESCAPE}\n{ESCAPE} [red]x\n")
    Path("w.txt").write_text("a 1 2\nb 2 3\n")
    return path


def run(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a shell; the exit code is that of the command, not of the program that reads its pipe."""
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, env=os.environ | environment, check=False
    )


@pytest.mark.parametrize(
    ("redirection", "code"),
    [("2>&-", 0), ("2>/dev/full", 0), (">&- 2>&- <&-", 0), (">/dev/full", 1), (">/dev/full 2>/dev/full", 1)],
)
def test_a_stream_that_is_closed_or_full_does_not_cost_the_vectors(graph, redirection, code):
    ended = run(f"{EMBED} --attributes w.txt {redirection}")
    assert ended.returncode == code
    assert len(Embedding.load("v.npz")) == 4
    assert b"Traceback" not in ended.stdout + ended.stderr
    assert b"Exception ignored" not in ended.stderr
    if redirection == ">/dev/full":
        assert re.match(rb"error: .*standard output.*No space left on device", ended.stderr.splitlines()[-1])


def test_a_pipe_whose_reader_leaves_is_no_error(graph):
    ended = run(f"{RUN} methods | head -1")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert len(ended.stdout.splitlines()) == 1


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "NO_COLOR": "1"}])
def test_a_terminal_with_few_characters_or_colours_is_enough(graph, environment):
    Path("w.txt").write_text("a 1\nb 1\n")  # both rows are equal, so one of two columns is zero
    command = f"{EMBED} --attributes w.txt --log run.log && {RUN} evaluate v.npz --labels gone.txt"
    ended = run(command, **environment)
    assert ended.returncode == 2
    assert b"wrote 4 x 2 vectors to v.npz" in ended.stdout
    assert b"\nwarning: 1 of the 2 columns of these vectors are zero" in ended.stderr
    assert " WARNING 1 of the 2 columns of these vectors are zero" in Path("run.log").read_text(encoding="utf-8")
    assert ended.stderr.splitlines()[-1].startswith(b"error: ")
    assert b"Traceback" not in ended.stderr
    assert b"\x1b" not in ended.stdout + ended.stderr
    if "PYTHONIOENCODING" in environment:
        assert (ended.stdout + ended.stderr).isascii()


def test_warnings_that_are_errors_are_one_line(graph):
    Path("w.txt").write_text("a 1\nb 1\n")
    ended = run(f"{EMBED} --attributes w.txt", PYTHONWARNINGS="error")
    assert (ended.returncode, b"Traceback" in ended.stderr) == (2, False), ended.stderr
    assert re.match(rb"error: .*PYTHONWARNINGS", ended.stderr.splitlines()[-1])


def test_our_special_characters_are_replaced_in_ascii():
    terminal.codecs.register_error("brane", terminal.in_ascii)
    assert "0.8 ± 0.1 · 3 × 2 … é".encode("ascii", "brane") == b"0.8 +- 0.1 - 3 x 2 ... \\xe9"


def test_a_stream_that_fails_remembers_why(tmp_path):
    with open("/dev/full", "w") as full:
        stream = terminal._tolerant(full)
        print("lost", file=stream)
        assert terminal.write_error(stream).strerror == "No space left on device"


@pytest.mark.parametrize("kind", [BraneError, GraphError, NotFittedError])
def test_a_message_is_escaped_and_of_limited_length(kind):
    text = str(kind(f"no node '{ESCAPE}\u202e\n\x9b' here; mend it"))
    assert text == r"no node '\x1b[2J\u202e\n\x9b' here; mend it"
    long = str(kind(f"no node '{'x' * 10_000_000}' here; give another id"))
    assert len(long) < LONGEST
    assert long.startswith("no node 'xxx")
    assert long.endswith("' here; give another id")


def test_ids_and_names_are_shown_escaped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Embedding(np.eye(6)[:, :2], [*"abcd", f"{ESCAPE}", "[red]x"]).save("v.npz")
    Path("labels.txt").write_text("a\tone\nb\tone\nc\ttwo\nd\ttwo\n")
    cluster = ["--task", "clustering", "--starts", "1", "--labels"]
    shown = CliRunner().invoke(app, ["evaluate", "v.npz", *cluster, "labels.txt"])
    assert "a vector and no label, such as \\x1b[2J, [red]x" in shown.stdout
    refused = CliRunner().invoke(app, ["evaluate", "v.npz", *cluster, f"gone{ESCAPE}"])
    assert "\\x1b[2J" in refused.stderr
    assert "\x1b" not in shown.output + refused.output


def test_a_log_gets_the_error_too(graph):
    for _ in range(2):
        result = CliRunner().invoke(
            app, ["embed", "g.txt", "--attributes", "gone.txt", "-o", "v.npz", "--log", "run.log"]
        )
        assert result.exit_code == 2
    first, second = Path("run.log").read_text().splitlines()  # the second run appends its line
    assert " ERROR gone.txt: there is no such file" in first
    assert " ERROR gone.txt: there is no such file" in second


def test_a_log_that_cannot_be_written_is_refused_or_abandoned(graph, monkeypatch):
    result = CliRunner().invoke(app, ["embed", "g.txt", "-o", "v.npz", "--log", "g.txt/run.log"])
    assert (result.exit_code, Path("v.npz").exists()) == (2, False)
    assert "error: --log g.txt/run.log: " in result.stderr
    arguments = ["embed", "g.txt", "--attributes", "w.txt", "--method", "attributes", "--dim", "2", "-o", "v.npz"]
    result = CliRunner().invoke(app, [*arguments, "--log", "/dev/full"])
    assert (result.exit_code, Path("v.npz").exists()) == (0, True)
    assert re.search("warning: .*/dev/full.* without a log", result.stderr)
