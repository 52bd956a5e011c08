"""Options that commands share: their values and the tables that they name."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from neural_brane import NeuralBrane, PropagatedAttributes
from neural_brane.cli.app import app
from neural_brane.cli.options import parse_grid, parse_settings, split_names
from neural_brane.embedding import Embedding
from neural_brane.errors import ParameterError
from neural_brane.files.graphs.formats import read_graph


def test_settings_are_parsed_by_their_declarations():
    assert parse_settings(NeuralBrane, ["batches-per-epoch=5", "seed = 3", "bias=true"]) == {
        "batches_per_epoch": 5, "seed": 3, "bias": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["dim=1", "dim=2"], "dim=2"),
        (["dim"], "name=value"),
        (["sead=1"], "'seed'"),
    ],
)
def test_mistakes_are_told(texts, message):
    with pytest.raises(ParameterError, match=message):
        parse_settings(NeuralBrane, texts)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("embed stdlib --nodes a.csv -o v.npz --nodes b.csv", "--nodes"),
        ("embed stdlib -o a.npz --output b.npz", "--output"),
        ("estimate stdlib --dim 8 --dim=16", "--dim"),
        ("distributed embed stdlib -o a -o b", "--output"),
    ],
)
def test_a_second_value_is_refused_unless_an_option_takes_several(command, option):
    result = CliRunner().invoke(app, command.split())
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(f"error: {option} is given twice")
    several = "estimate stdlib --set dim=8 --set epochs=1 --ignore a --ignore b --no-time --no-time"
    assert "twice" not in CliRunner().invoke(app, several.split()).stderr


def test_a_grid_is_a_list_of_values():
    grid = parse_grid(PropagatedAttributes, ["dim=1,2", "weights=1,2;3,4"])
    assert grid == {"dim": [1, 2], "weights": [(1.0, 2.0), (3.0, 4.0)]}


def test_names_come_by_commas_and_by_repeating_the_option():
    assert split_names(["tadw, line", "pte,"]) == ["tadw", "line", "pte"]
    assert split_names(None) == []


SHORT = ["--epochs", "1", "--set", "batches_per_epoch=2", "--dim", "4", "--seed", "1"]
NODES = 60


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write a ring of people as CSV and a table of their ages, lands, teams and hobbies; commands run there."""
    monkeypatch.chdir(tmp_path)
    names = [f"p{at:02}" for at in range(NODES)]
    pl.DataFrame({"from": names, "to": names[1:] + names[:1]}).write_csv("edges.csv")
    table = {
        "name": names,
        "age": [18 + 7 * at % 60 for at in range(NODES)],
        "land": [["IN", "FR", None][at % 3] for at in range(NODES)],
        "team": ["red" if at < NODES // 2 else "blue" for at in range(NODES)],
        "hobbies": [["tea;chess", "tea", "chess;pie"][at % 3] for at in range(NODES)],
        "mail": [f"{name}@example.org" for name in names],
    }
    pl.DataFrame(table).write_csv("people.csv")
    return tmp_path


def brane(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_one_command_from_tables_to_vectors(files):
    result = brane("embed", "edges.csv", "--nodes", "people.csv", "--label", "team", "-o", "v.parquet", *SHORT)
    assert result.exit_code == 0, result.stderr
    found = Embedding.load("v.parquet")
    assert found.ids.tolist() == [f"p{at:02}" for at in range(NODES)]
    kinds = {column["name"]: column["kind"] for column in found.provenance["encoder"]["columns"]}
    expected = {"name": "id", "age": "number", "land": "category", "team": "label", "hobbies": "list"}
    assert kinds == expected | {"mail": "ignored"}
    for name, kind in kinds.items():
        assert any(line.split()[:2] == [name, kind] for line in result.stderr.splitlines()), name
    assert "nearly every row has a different value" in result.stderr
    scored = brane("evaluate", "v.parquet", "--labels", "people.csv", "--id", "name", "--label", "team", "--json")
    assert scored.exit_code == 0, scored.stderr
    assert '"classification"' in scored.stdout
    assert "encoder" not in scored.stdout


def test_options_say_what_columns_are(files):
    graph = "people"
    given = ["--id", "name", "--column", "age:number:2", "--column", "hobbies:category", "--ignore", "team"]
    given += ["--missing", "attribute", "--source", "to", "--target", "0"]
    result = brane(
        "split-edges", "edges.csv", "--nodes", "people.csv", *given, "-o", f"{graph}.npz", "--held-out", "h.npz"
    )
    assert result.exit_code == 0, result.stderr
    names = read_graph(f"{graph}.npz").attribute_names.tolist()
    assert [name for name in names if name.startswith("age=")] == ["age=18..47", "age=48..77"]
    assert "hobbies=tea;chess" in names
    assert "land=missing" in names
    assert not any(name.startswith("team") for name in names)


@pytest.mark.slow
def test_labels_of_a_table_serve_the_comparison_and_the_search(files):
    table = ["--nodes", "people.csv", "--label", "team"]
    small = ["--methods", "attributes", "--task", "cluster", "--runs", "1", "--dim", "4", "--jobs", "1"]
    result = brane("compare", "edges.csv", *table, *small)
    assert result.exit_code == 0, result.stderr
    result = brane("tune", "attributes", "edges.csv", *table, "--grid", "dim=1,2", "--runs", "1", "--jobs", "1")
    assert result.exit_code == 0, result.stderr
    assert "experiments/tuned.toml" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["embed", "edges.csv", "--label", "team"], "label is for a table of nodes"),
        (["embed", "edges.csv", "--nodes", "none.csv"], "none.csv: there is no such file"),
        (["embed", "edges.csv", "--nodes", "people.csv", "--id", "nmae"], "people.csv: there is no column 'nmae'"),
        (
            ["embed", "edges.csv", "--nodes", "people.csv", "--column", "age:size"],
            "column 'age:size' is not valid",
        ),
        (["embed", "stdlib", "--nodes", "people.csv"], "dataset 'stdlib' has its own nodes; leave out people.csv"),
    ],
)
def test_what_makes_no_sense_is_refused(files, words, said):
    result = brane(*words, "-o", "v.npz", *SHORT)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (files / "v.npz").exists()


def test_a_table_of_labels_needs_its_columns_named(files):
    np.savez("v.npz", vectors=np.eye(NODES, 3, dtype=np.float32), ids=[f"p{at:02}" for at in range(NODES)])
    result = brane("evaluate", "v.npz", "--labels", "people.csv")
    assert result.exit_code == 2
    assert "--id NAME; the columns are 'name', 'age'" in result.stderr
