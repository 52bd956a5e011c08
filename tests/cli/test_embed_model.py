"""Models on the command line: kept with --save-model, and used for new nodes with --model."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from neural_brane import Embedding, load_model, read
from neural_brane.cli.app import app

SHORT = ["--epochs", "2", "--set", "batches_per_epoch=5", "--dim", "8", "--seed", "1"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning"),
    pytest.mark.filterwarnings("ignore::neural_brane.errors.UntrainedWarning"),
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A ring of twenty people as tables, and two more people; the command runs beside them."""
    monkeypatch.chdir(tmp_path)
    names = [f"p{at}" for at in range(20)]
    pl.DataFrame({"from": names, "to": names[1:] + names[:1]}).write_csv("edges.csv")
    people = pl.DataFrame({"name": names, "age": [20 + at % 5 for at in range(20)], "team": list("abcd") * 5})
    people.write_csv("people.csv")
    pl.DataFrame({"name": ["zoe", "yan"], "age": [21, 24], "team": ["a", "d"]}).write_csv("new_people.csv")
    pl.DataFrame({"from": ["zoe"], "to": ["p3"]}).write_csv("new_edges.csv")
    return tmp_path


def embed(*arguments):
    return CliRunner().invoke(app, ["embed", *map(str, arguments)])


@pytest.fixture
def model(files):
    result = embed("edges.csv", "--nodes", "people.csv", "--save-model", "m.brane", "-o", "v.npz", *SHORT)
    assert result.exit_code == 0, result.stderr
    assert "wrote 20 x 8 vectors to v.npz (" in result.stdout
    assert ") and the model to m.brane (" in result.stdout
    return files / "m.brane"


def test_the_model_is_that_of_the_vectors(model, files):
    np.testing.assert_array_equal(load_model(model).embedding_.vectors, Embedding.load(files / "v.npz").vectors)


def test_a_model_alone_can_be_written(files):
    result = embed("edges.csv", "--save-model", "m.brane", *SHORT)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("wrote the model to m.brane (")
    assert len(load_model("m.brane").embedding_.ids) == 20


def test_a_table_of_new_nodes_needs_no_links(model):
    result = embed("--nodes", "new_people.csv", "--model", "m.brane", "-o", "new.npz")
    assert result.exit_code == 0, result.stderr
    assert "made from: attributes 2\nwrote 2 x 8 vectors to new.npz" in result.stdout
    made = Embedding.load("new.npz")
    assert made.ids.tolist() == ["zoe", "yan"]
    expected = load_model(model).transform(pl.read_csv("new_people.csv"))
    np.testing.assert_array_equal(made.vectors, expected.vectors)


def test_new_nodes_with_links_to_known_ones(model):
    result = embed("new_edges.csv", "--nodes", "new_people.csv", "--model", "m.brane", "-o", "new.npz")
    assert result.exit_code == 0, result.stderr
    assert "made from: attributes and links 1, known 1, attributes 1" in result.stdout
    tables = (pl.read_csv("new_edges.csv"), pl.read_csv("new_people.csv"))
    np.testing.assert_array_equal(Embedding.load("new.npz").vectors, load_model(model).transform(tables).vectors)


def test_new_nodes_by_their_links_alone(model):
    result = embed("new_edges.csv", "--model", "m.brane", "-o", "new.npz")
    assert result.exit_code == 0, result.stderr
    np.testing.assert_array_equal(
        Embedding.load("new.npz").vectors, load_model(model).transform(read("new_edges.csv")).vectors
    )


@pytest.fixture
def grown(files):
    """The tables of all people, with the two that came."""
    for name in ("edges", "people"):
        pl.concat([pl.read_csv(f"{name}.csv"), pl.read_csv(f"new_{name}.csv")]).write_csv(f"all_{name}.csv")
    return ["all_edges.csv", "--nodes", "all_people.csv"]


def test_a_model_goes_on_with_a_graph_that_has_grown(model, grown):
    result = embed(*grown, "--model", "m.brane", "--update", "--save-model", "m2.brane", "-o", "v2.npz")
    assert result.exit_code == 0, result.stderr
    assert "wrote 22 x 8 vectors to v2.npz (" in result.stdout
    assert ") and the model to m2.brane (" in result.stdout
    vectors, updated, kept = Embedding.load("v2.npz"), load_model("m2.brane"), load_model(model)
    np.testing.assert_array_equal(updated.embedding_.vectors, vectors.vectors)
    assert {"zoe", "yan"} < set(vectors.ids.tolist())
    assert updated.provenance()["updated"]["times"] == vectors.provenance["updated"]["times"] == 1
    assert "updated" not in kept.provenance()  # the file of the model that it went on from is as it was
    np.testing.assert_array_equal(kept.update(updated.graph_).embedding_.vectors, vectors.vectors)


def test_a_model_can_be_updated_in_its_own_file_time_and_again(model, grown):
    for times in (1, 2):
        result = embed(*grown, "--model", "m.brane", "--update", "--save-model", "m.brane")
        assert result.exit_code == 0, result.stderr
        assert load_model(model).provenance()["updated"]["times"] == times


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["edges.csv"], "nothing to write; give --output FILE for the vectors, --save-model FILE, or both"),
        (["-o", "v.npz"], "no SOURCE; give a dataset's name or a graph file, or --model and --nodes for new nodes"),
        (["edges.csv", "-o", "v.npz", "--update"], "--update goes on from a model; give one with --model"),
        (["--model", "m.brane", "-o", "v.npz"], "no new nodes; give SOURCE, a graph file, or --nodes"),
        (["edges.csv", "--model", "m.brane", "-o", "v.npz", "--dim", "3"], "'dim=3' says how to learn, and the model"),
        (["edges.csv", "--model", "m.brane", "-o", "v.npz", "--method", "line"], "'--method line' says how to learn"),
        (["edges.csv", "--model", "m.brane", "-o", "v.npz", "--ignore", "age"], "--ignore says how a table is read"),
        (["edges.csv", "--model", "m.brane", "--save-model", "n.brane"], "add --update, or leave it out"),
        (["edges.csv", "--save-model", "m.txt"], "m.txt: cannot tell its format; name a file ending in .brane"),
        (["edges.csv", "--save-model", "v.brane", "-o", "v.brane"], "--save-model v.brane is also written as --output"),
        (["edges.csv", "--model", "m.npz", "-o", "v.npz"], "m.npz: there is no such file"),
    ],
)
def test_what_does_not_go_together_is_refused_before_the_work(files, arguments, reason):
    result = embed(*arguments)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert not (files / "v.npz").exists()


def test_a_method_that_cannot_says_so(files):
    embed("edges.csv", "--method", "nnmf", "--dim", "4", "--save-model", "m.brane")
    result = embed("new_edges.csv", "--model", "m.brane", "-o", "v.npz")
    assert result.exit_code == 2
    assert "method 'nnmf' makes no vectors for nodes it never saw" in result.stderr
