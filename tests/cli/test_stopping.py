import os
import pty
import shlex
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from neural_brane import NeuralBrane
from neural_brane.cli import embed as module
from neural_brane.cli.app import app
from neural_brane.cli.terminal import Stopped, explaining_stop
from neural_brane.embedding import Embedding

SHORT = ["embed", "stdlib", "--epochs", "3", "--set", "batches_per_epoch=5", "--dim", "8", "--threads", "1"]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def signalled(monkeypatch):
    """Send a signal in the second epoch of a training."""
    plain = module.train

    def use(number):
        def report(progress):
            if progress.epoch == 2:
                signal.raise_signal(number)

        def train(model, graph, labels=None):
            return model.set_params(progress=report).fit(graph, labels=labels)

        monkeypatch.setattr(module, "train", train)

    yield use
    monkeypatch.setattr(module, "train", plain)


@pytest.mark.parametrize("number", CODES)
def test_a_signal_ends_with_a_kept_checkpoint_and_the_command_that_goes_on(number, folder, signalled, monkeypatch):
    command = [*SHORT, "-o", "my vectors.npz", "--checkpoint", "run.checkpoint"]
    signalled(number)
    stopped = CliRunner().invoke(app, command)
    assert stopped.exit_code == CODES[number]
    said, typed = stopped.stderr.splitlines()[-2:]
    assert "run.checkpoint" in said
    assert shlex.split(typed) == ["brane", *command]
    assert [path.name for path in folder.iterdir()] == ["run.checkpoint"]
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert CliRunner().invoke(app, shlex.split(typed)[1:]).exit_code == 0
    found = Embedding.load(folder / "my vectors.npz")
    assert found.provenance["training"]["triplets"] > 0


@pytest.mark.parametrize("number", CODES)
def test_without_a_checkpoint_it_says_that_nothing_was_kept(number, folder, signalled):
    signalled(number)
    stopped = CliRunner().invoke(app, [*SHORT, "-o", "v.npz"])
    assert (stopped.exit_code, stopped.stderr.splitlines()[-1]) == (CODES[number], "stopped; nothing was saved")
    assert not list(folder.iterdir())


def test_after_a_long_training_it_says_how_to_keep_the_next_one():
    times = iter([0.0, 60.0])
    with pytest.raises(Stopped) as stopped, explaining_stop(NeuralBrane(), clock=lambda: next(times)):
        raise KeyboardInterrupt
    assert stopped.value.message.startswith("stopped; nothing was saved")
    assert stopped.value.add == ("--checkpoint", "run.checkpoint")


def test_a_checkpoint_that_does_not_exist_yet_keeps_nothing(folder):
    model = NeuralBrane(checkpoint="run.checkpoint")
    with (
        pytest.raises(Stopped, match=r"run\.checkpoint"),
        explaining_stop(model),
    ):
        raise KeyboardInterrupt


def test_signals_are_as_before_after_a_command(folder):
    before = [signal.getsignal(number) for number in CODES]
    CliRunner().invoke(app, ["methods"])
    assert [signal.getsignal(number) for number in CODES] == before


LONG = ["embed", "synthetic:2000", "--set", "recipe=released", "-o", "v.npz", "--checkpoint", "run.checkpoint"]


@pytest.mark.slow
def test_a_lost_terminal_ends_with_a_kept_checkpoint(folder):
    """Close the terminal while a bar is drawn on it, so that nothing can be printed any more."""
    code = f"import sys; sys.argv = ['brane', *{LONG!r}]; from neural_brane.cli import main; main()"
    process, terminal = pty.fork()
    if process == 0:
        os.execv(sys.executable, [sys.executable, "-c", code])  # noqa: S606
    seen = b""
    while b"epoch 2" not in seen:
        seen += os.read(terminal, 10_000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 129
    assert [path.name for path in folder.iterdir()] == ["run.checkpoint"]


@pytest.mark.slow
@pytest.mark.parametrize("number", CODES)
def test_a_real_signal_leaves_no_traceback(number, folder):
    command = [sys.executable, "-c", "from neural_brane.cli import main; main()", *LONG]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = []
        while not any("epoch" in line for line in said):
            said.append(process.stderr.readline())
        process.send_signal(number)
        said += process.stderr.readlines()
    assert process.returncode == CODES[number]
    assert "Traceback" not in "".join(said)
    assert said[-1].startswith("  brane embed synthetic:2000")
    assert [path.name for path in folder.iterdir()] == ["run.checkpoint"]
