"""Tables, progress and the log, on a terminal and elsewhere."""

import re
from itertools import chain, repeat

import numba
import pytest

from neural_brane.cli import terminal
from neural_brane.cli.terminal import file_size, show_table
from neural_brane.progress import Progress


def at(done, total=3_000_000, epoch=1, rate=100_000.0, loss=0.51234, **rest):
    return Progress(epoch=epoch, epochs=30, done=done, total=total, loss=loss, rate=rate, **rest)


def clock(*times):
    """Return a clock that shows these times, one per call, and then the last one."""
    return chain(times, repeat(times[-1])).__next__


def test_a_report_names_epoch_loss_and_speed():
    assert terminal.describe(at(0, epoch=3)) == "epoch 3/30 · loss 0.5123 · 100,000 triplets/s"


def test_a_report_without_a_loss_shows_none_and_names_what_it_counts():
    assert terminal.describe(at(0, loss=None, unit="pairs", rate=1234.0)) == "epoch 1/30 · 1,234 pairs/s"
    assert terminal.describe(at(0, loss=0.0, unit="iterations", rate=2.46)) == (
        "epoch 1/30 · loss 0.0000 · 2.5 iterations/s"
    )


def test_time_left_follows_the_present_rate():
    assert terminal.time_left(at(1_000_000)) == "0:20 left"
    assert terminal.time_left(at(0, rate=0.0)) == "0:00 left"
    assert terminal.time_left(at(3_000_000)) == "done"


def test_time_left_goes_by_the_mean_rate_where_units_differ(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with terminal.counting("comparison", steady=False, clock=clock(3.0, 13.0)) as report:
        report(at(2, total=8, rate=500.0, loss=None, unit="trainings"))
    assert "comparison: 2 of 8 trainings · 0:30 left" in capsys.readouterr().err


def test_away_from_a_terminal_a_few_plain_lines_are_printed(capsys):
    with terminal.reporting("citeseer") as report:
        for done in range(0, 3_000_001, 10_000):
            report(at(done))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "citeseer"
    assert len(err.splitlines()) == 1 + terminal.PROGRESS_LINES
    assert "\x1b" not in err


def test_away_from_a_terminal_a_long_run_tells_the_time_and_the_time_left_every_minute(capsys):
    with terminal.reporting("citeseer", clock=clock(0.0, 30.0, 61.0, 90.0, 3700.0)) as report:
        for done in (1000, 2000, 3000, 4000):
            report(at(done, total=1_000_000, rate=1000.0))
    assert capsys.readouterr().err.splitlines() == [
        "citeseer",
        "1:01 epoch 1/30 · loss 0.5123 · 1,000 triplets/s · 16:38 left",
        "1:01:40 epoch 1/30 · loss 0.5123 · 1,000 triplets/s · 16:36 left",
    ]


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_log_gets_the_same_lines_with_the_time_of_day(capsys, monkeypatch, tmp_path, on_terminal):
    monkeypatch.setattr("sys.stderr.isatty", lambda: on_terminal)
    monkeypatch.setenv("TERM", "xterm")
    terminal.log_to(tmp_path / "run.log")
    with terminal.reporting("[red]x\x1b[2J", clock=clock(0.0, 5.0)) as report:
        report(at(3_000_000))
    terminal.end_log()
    first, second = (tmp_path / "run.log").read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} INFO \[red\]x\\x1b\[2J", first)
    assert second.endswith("INFO 0:05 epoch 1/30 · loss 0.5123 · 100,000 triplets/s · done")
    assert "[red]x\\x1b[2J" in capsys.readouterr().err


def test_on_a_terminal_a_bar_shows_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with terminal.reporting("citeseer", clock=clock(3.0, 65.0)) as report:
        report(at(1_500_000, epoch=15))
    err = capsys.readouterr().err
    assert "epoch 15/30 · loss 0.5123 · 100,000 triplets/s · 0:15 left" in err
    assert "trained in 1:02" in err


@pytest.mark.parametrize("on_terminal", [False, True])
def test_a_kernel_that_is_compiled_is_told(capsys, monkeypatch, on_terminal):
    monkeypatch.setattr("sys.stderr.isatty", lambda: on_terminal)
    monkeypatch.setenv("TERM", "xterm")
    kernel = numba.njit(lambda x: x + 1)
    with terminal.reporting("first"):
        kernel(1)
    assert terminal.COMPILING in capsys.readouterr().err
    with terminal.reporting("second"):
        kernel(1)
    assert terminal.COMPILING not in capsys.readouterr().err


def test_an_evaluation_is_silent_for_two_seconds_and_then_says_how_far_it_is(capsys):
    with terminal.counting("classification", clock=clock(0.0, 1.0, 1.9, 2.1, 3.0, 4.0)) as report:
        for done in range(1, 6):
            report(at(done, total=5, loss=None, unit="regressions", rate=0.1))
    assert capsys.readouterr().err.splitlines() == [
        "0:02 classification: 3 of 5 regressions · 0:20 left",
        "0:03 classification: 4 of 5 regressions · 0:10 left",
        "0:04 classification: 5 of 5 regressions · done",
    ]


def test_on_a_terminal_an_evaluation_has_a_bar_that_goes_away(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with terminal.counting("clustering") as report:
        report(at(4, total=10, rate=0.5, loss=None, unit="starts"))
    assert "clustering: 4 of 10 starts · 0:12 left" in capsys.readouterr().err


def test_a_table_in_a_pipe_is_not_cut(capsys):
    show_table(("name", "nodes", "about"), [("cora", "2,708", "long " * 60)], title="graphs", right=("nodes",))
    title, heading, _, row = (line.split() for line in capsys.readouterr().out.splitlines() if line.split())
    assert title == ["graphs"]
    assert heading == ["name", "nodes", "about"]
    assert row == ["cora", "2,708", *["long"] * 60]


def test_brackets_are_printed_and_not_taken_for_markup(capsys):
    show_table(("a", "b"), [("[bold]x", "[y]")])
    assert "[bold]x" in (out := capsys.readouterr().out)
    assert "[y]" in out


@pytest.mark.parametrize(("number", "text"), [(12, "12 bytes"), (2_100_000, "2.1 MB"), (5_000_000_000, "5.0 GB")])
def test_sizes_are_readable(number, text, tmp_path):
    with open(tmp_path / "f", "wb") as file:
        file.truncate(number)
    assert file_size(tmp_path / "f") == text
