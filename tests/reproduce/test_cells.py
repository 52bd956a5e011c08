import json

import pytest

from neural_brane import __version__
from neural_brane.errors import EmbeddingError
from neural_brane.methods.neural_brane.recipes import RECIPES
from neural_brane.reproduce import cells
from neural_brane.reproduce.cells import Store, compute, identity, key
from neural_brane.reproduce.plan import Cell

SCORING = {"train": [0.3, 0.5, 0.7], "splits": 2, "starts": 3, "C": 1.0}


def cell(method="attributes", seed=0, mapped=False, **parameters):
    return Cell(method, {"dim": 4} | parameters, "stdlib", seed, SCORING, mapped)


def test_a_cell_is_trained_scored_and_described():
    record = json.loads(json.dumps(compute(cell(seed=3, mapped=True))))
    assert record["identity"]["method"] == "attributes"
    assert record["identity"]["seed"] == 3
    assert record["identity"]["version"] == __version__
    assert {share: len(values) for share, values in record["macro_f1"].items()} == {"0.3": 2, "0.5": 2, "0.7": 2}
    assert len(record["nmi"]) == len(record["purity"]) == len(record["ari"]) == 3
    assert len(record["map"]["points"]) == len(record["map"]["labels"]) == record["data"]["nodes"] == 554
    assert record["seconds"] > 0
    assert record["peak_mb"] > 50
    assert record["loss"] == []
    assert "numpy" in record["machine"]["packages"]


def test_the_loss_of_every_epoch_is_kept():
    record = compute(cell("neural-brane", epochs=3, batches_per_epoch=10))
    assert len(record["loss"]) == 3
    assert "map" not in record


def test_another_run_has_other_splits():
    first, second = compute(cell()), compute(cell(seed=1))
    assert first["macro_f1"] != second["macro_f1"]
    assert first["macro_f1"] == compute(cell())["macro_f1"]


@pytest.mark.parametrize(
    "other",
    [
        cell(dim=5),
        cell(seed=1),
        cell("tadw"),
        Cell("attributes", {"dim": 4}, "stdlib", 0, SCORING | {"splits": 3}, False),
    ],
)
def test_what_makes_another_cell(other):
    assert key(identity(cell(), "aa")) != key(identity(other, "aa"))


def test_data_and_version_make_another_cell_but_a_default_spelt_out_does_not(monkeypatch):
    same = key(identity(cell("neural-brane", pooling="max"), "aa"))
    assert key(identity(cell("neural-brane"), "aa")) == same
    assert key(identity(cell("neural-brane"), "bb")) != same
    monkeypatch.setattr(cells, "__version__", "9.9")
    assert key(identity(cell("neural-brane"), "aa")) != same


def test_what_a_recipe_stands_for_makes_another_cell_when_it_changes(monkeypatch):
    same = key(identity(cell("neural-brane"), "aa"))
    assert key(identity(cell("neural-brane", l2=RECIPES["default"]["l2"]), "aa")) == same
    monkeypatch.setitem(RECIPES["default"], "l2", 0.5)
    assert key(identity(cell("neural-brane"), "aa")) != same


def test_a_kept_cell_comes_back_and_a_damaged_one_is_told(tmp_path):
    store = Store(tmp_path)
    assert store.get(cell()) is None
    store.put(cell(), {"nmi": [0.5]})
    assert store.get(cell()) == {"nmi": [0.5]}
    assert len(list(tmp_path.iterdir())) == 1
    store.path(cell()).write_text("{")
    with pytest.raises(EmbeddingError, match="remove it, and it is computed again"):
        store.get(cell())
