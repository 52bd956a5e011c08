from typer.testing import CliRunner

from neural_brane import datasets
from neural_brane.cli.app import app
from neural_brane.methods import METHODS


def lines(command):
    result = CliRunner().invoke(app, [command])
    assert result.exit_code == 0, result.stderr
    return {line.split()[0]: line for line in result.stdout.splitlines() if line.split()}


def test_datasets_are_listed_with_counts_and_state():
    found = lines("datasets")
    for record in datasets.describe():
        assert record.state in found[record.name]
    assert "3,312" in found["citeseer"]
    assert "in the package" in found["stdlib"]


def test_methods_are_listed_with_what_they_use():
    found = lines("methods")
    for name, kind in METHODS.items():
        assert kind.growth in found[name]
        assert ", ".join(kind.uses) in found[name]
