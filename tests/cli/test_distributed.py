"""`brane distributed embed` before any rank is started."""

import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.distributed import launch
from neural_brane.distributed.launch import ADVICE, advice, forgo_restarts


def refused(*words):
    done = CliRunner().invoke(app, ["distributed", "embed", "stdlib", *map(str, words)])
    assert done.exit_code == 2, done.output
    return done.stderr


@pytest.fixture(autouse=True)
def all_installed(monkeypatch):
    monkeypatch.setattr(launch, "require_packages", lambda: None)


def test_ranks_must_come_from_somewhere(tmp_path):
    assert "--ranks N" in refused("-o", tmp_path / "v")


def test_ranks_that_torchrun_started_are_not_started_again(tmp_path, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert "torchrun" in refused("--ranks", 2, "-o", tmp_path / "v")


def test_an_output_that_is_something_else_is_refused_before_the_work(tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": "something else"}')
    assert "manifest.json" in refused("--ranks", 2, "-o", tmp_path)
    assert "v.json" in refused("--ranks", 2, "-o", tmp_path / "v.json")


def test_parameters_are_checked_before_the_work(tmp_path):
    assert "dim=none" in refused("--ranks", 2, "--dim", "none", "-o", tmp_path / "v")


def test_a_store_that_restarts_share_is_reported():
    assert advice({"TORCHELASTIC_USE_AGENT_STORE": "True"}) == ADVICE
    assert advice({"TORCHELASTIC_USE_AGENT_STORE": "False"}) is None


def test_without_an_agent_nobody_is_signalled():
    forgo_restarts({})
