import re

from typer.testing import CliRunner

from neural_brane.cli.app import app


def reproduce(*arguments):
    return CliRunner().invoke(app, ["reproduce", *arguments])


def test_lines_tell_what_was_computed_and_a_second_run_computes_nothing(tmp_path):
    order = ("--quick", "--table", "classification", "--methods", "attributes", "--datasets", "stdlib", "--runs", "1")
    first = reproduce(*order, "-o", str(tmp_path))
    assert first.exit_code == 0, first.stderr
    lines = first.stderr.splitlines()
    assert lines[0] == f"trainings: 1, of which 0 are finished, in {tmp_path / 'trainings'}"
    assert lines[1].startswith("1/1 attributes on stdlib, run 0: ")
    assert "Macro-F1 0." in lines[1]
    assert f"wrote {tmp_path / 'report.html'}" in first.stdout
    again = reproduce(*order, "-o", str(tmp_path))
    assert again.stderr.splitlines() == [f"trainings: 1, of which 1 are finished, in {tmp_path / 'trainings'}"]


def test_links_have_a_table_of_their_own_and_stale_methods_are_named(tmp_path):
    order = ("--quick", "--table", "links", "--methods", "attributes", "--datasets", "stdlib", "--runs", "1")
    first = reproduce(*order, "-o", str(tmp_path))
    assert first.exit_code == 0, first.stderr
    assert ", AUC of links 0." in first.stderr.splitlines()[1]
    path = tmp_path / "results.json"
    path.write_text(re.sub(r'"fingerprint": "\w+"', '"fingerprint": "0123456789abcdef"', path.read_text()))
    again = reproduce(*order, "-o", str(tmp_path))
    assert again.stderr.splitlines()[1].endswith(": attributes")
    assert len(reproduce(*order, "-o", str(tmp_path)).stderr.splitlines()) == 1


def test_mistakes_are_told(tmp_path):
    assert "there is no method 'magic'" in reproduce("--methods", "magic", "-o", str(tmp_path)).stderr
    assert "runs=0" in reproduce("--runs", "0", "-o", str(tmp_path)).stderr
    assert reproduce("--figure", "sculpture").exit_code == 2
    assert not list(tmp_path.iterdir())
