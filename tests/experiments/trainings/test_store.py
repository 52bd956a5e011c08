import json

import pytest

from neural_brane import load
from neural_brane.errors import BraneError
from neural_brane.experiments.store import Store


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def test_a_kept_record_comes_back(store, training):
    assert store.get(training()) is None
    store.put(training(), {"nmi": [0.5]})
    assert store.get(training()) == {"nmi": [0.5]}
    assert store.get(training(seed=1)) is None


def test_a_file_has_a_name_to_read_and_says_what_it_is_of(store, training):
    store.put(training(seed=3), {})
    (path,) = store.folder.iterdir()
    assert path.name.startswith("stdlib-attributes-3-")
    content = json.loads(path.read_text())["training"]
    assert (content["method"], content["seed"], content["data"]) == ("attributes", 3, load("stdlib").digest())
    assert content["parameters"]["dim"] == 4


def test_what_other_code_has_computed_is_not_finished(store, training):
    store.put(training(), {})
    assert Store(store.folder, fingerprint=lambda method, parameters: "00").get(training()) is None
    assert Store(store.folder, digest=lambda dataset: "00").get(training()) is None


def test_names_that_no_file_may_have(tmp_path, training):
    store = Store(tmp_path, digest=lambda dataset: "00", fingerprint=lambda method, parameters: "ff")
    one = training()
    object.__setattr__(one, "dataset", "synthetic:10/../x")
    store.put(one, {"nmi": []})
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("synthetic_10_.._x-attributes-0-")


@pytest.mark.parametrize("text", ["{", "[]", "{}", ""])
def test_a_damaged_file_is_named_with_how_to_mend_it(store, training, text):
    store.put(training(), {})
    store.path(training()).write_text(text)
    with pytest.raises(BraneError, match=r"stdlib-attributes-0-\w+\.json: not the record .* remove the file"):
        store.get(training())


def test_equal_trainings_are_counted_once_and_finished_ones_are_not_missing(store, training):
    one, same, other = training("tadw"), training("tadw", epochs=20), training("tadw", epochs=21)
    assert len(store.distinct([one, same, other])) == 2
    store.put(one, {})
    assert store.missing([one, same, other]) == [other]
