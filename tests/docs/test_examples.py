"""Every example of the gallery runs, prints and draws."""

import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9]*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_prints_and_draws(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURAL_BRANE_DATA", str(tmp_path / "none"))
    matplotlib.use("Agg")
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append([axes.get_title() for axes in plt.gcf().axes]))
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        plt.close("all")
    assert capsys.readouterr().out.strip()
    assert len(shown) == 1
    assert any(shown[0])


def test_examples_are_numbered_and_begin_with_a_title():
    assert EXAMPLES
    for path in EXAMPLES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0] == '"""'
        assert lines[2] == "=" * len(lines[1]), path.name
