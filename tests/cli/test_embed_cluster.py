"""`brane embed --cluster` before any rank is started: what it refuses."""

import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.distributed import launch
from neural_brane.distributed.launch import ADVICE, advice, forgo_restarts


def refused(*words):
    done = CliRunner().invoke(app, ["embed", "stdlib", *words])
    assert done.exit_code == 2, done.output
    return done.output


@pytest.fixture
def all_installed(monkeypatch):
    monkeypatch.setattr(launch, "require_packages", lambda: None)


def test_options_of_a_cluster_need_it(tmp_path):
    assert "need --cluster" in refused("--ranks", "2", "-o", str(tmp_path / "v.npz"))


def test_ranks_must_come_from_somewhere(tmp_path, all_installed):
    assert "give --ranks N for this machine" in refused("--cluster", "-o", str(tmp_path / "v"))


@pytest.mark.parametrize("word", ["--tuned", "--dry-run"])
def test_what_a_cluster_does_not_know_is_refused(tmp_path, word):
    assert f"{word} does not go with --cluster" in refused("--cluster", "-o", str(tmp_path / "v"), word)


def test_an_output_that_is_something_else_is_refused_before_the_work(tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": "something else"}')
    assert "that is not of vectors" in refused("--cluster", "--ranks", "2", "-o", str(tmp_path))


def test_a_store_that_restarts_share_is_told():
    assert advice({"TORCHELASTIC_USE_AGENT_STORE": "True"}) == ADVICE
    assert advice({"TORCHELASTIC_USE_AGENT_STORE": "False"}) is None


def test_without_an_agent_nobody_is_signalled():
    forgo_restarts({})
