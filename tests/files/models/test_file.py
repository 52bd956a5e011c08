"""A method that was saved and opened again is the one that was saved, to the bit; a damaged file is never opened."""

import json
import subprocess
import sys

import numpy as np
import pytest

from neural_brane import METHODS, AttributedGraph, Embedding, NeuralBrane, load_model
from neural_brane.errors import ModelError, NotFittedError
from neural_brane.files import tensors
from neural_brane.files.models import MODEL

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning"),
    pytest.mark.filterwarnings("ignore::neural_brane.errors.IgnoredAmountsWarning"),
    pytest.mark.filterwarnings("ignore::neural_brane.errors.UntrainedWarning"),
    pytest.mark.filterwarnings("ignore::neural_brane.errors.ZeroVectorWarning"),
]
FLIPS, CUTS = 400, 100


def newcomers():
    return AttributedGraph.from_edges(
        [("zoe", "ann"), ("yan", "zoe")], attributes={"zoe": ["tea", "opera"], "yan": ["beer"]}
    )


@pytest.fixture
def saved(small_graph, tmp_path):
    model = NeuralBrane(dim=6, epochs=2, batches_per_epoch=5, seed=3).fit(small_graph)
    model.save(tmp_path / "m.brane")
    return model, tmp_path / "m.brane"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_comes_back_as_it_was(name, fitted, small_graph, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "m.brane")
    again = load_model(tmp_path / "m.brane")
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.embedding_.vectors, model.embedding_.vectors)
    assert again.graph_.digest() == small_graph.digest()
    assert again.graph_.name == "small"
    assert again.get_params() == model.get_params()
    assert again.settings_ == model.settings_
    assert again.provenance() == model.provenance()
    if model.inductive:
        before, after = model.transform(newcomers()), again.transform(newcomers())
        np.testing.assert_array_equal(after.vectors, before.vectors)
        np.testing.assert_array_equal(after.made_from, before.made_from)
        np.testing.assert_array_equal(again.transform(small_graph).vectors, model.embedding_.vectors)


@pytest.mark.parametrize("settings", [{}, {"recipe": "paper"}, {"recipe": "released"}])
def test_scores_come_back_as_they_were(settings, small_graph, tmp_path):
    model = NeuralBrane(dim=6, epochs=2, batches_per_epoch=5, seed=3, **settings).fit(small_graph)
    model.save(tmp_path / "m.brane")
    again = load_model(tmp_path / "m.brane")
    pairs = [("ann", "bob"), ("ann", "leo")]
    np.testing.assert_array_equal(again.score(pairs), model.score(pairs))
    assert again.loss_history_ == model.loss_history_


def test_a_new_process_makes_the_same_vectors(saved, tmp_path):
    model, path = saved
    newcomers().save(tmp_path / "new.npz")
    code = (
        "import sys, neural_brane as nb; model = nb.load_model(sys.argv[1]);"
        "model.embedding_.save(sys.argv[3]); model.transform(model.graph_).save(sys.argv[4]);"
        "model.transform(nb.read(sys.argv[2])).save(sys.argv[5])"
    )
    names = [tmp_path / name for name in ("new.npz", "known.npz", "again.npz", "made.npz")]
    subprocess.run([sys.executable, "-c", code, path, *names], check=True)
    known, again, made = (Embedding.load(name).vectors for name in names[1:])
    np.testing.assert_array_equal(known, model.embedding_.vectors)
    np.testing.assert_array_equal(again, model.embedding_.vectors)
    np.testing.assert_array_equal(made, model.transform(newcomers()).vectors)


def accepted(path, content):
    path.write_bytes(content)
    try:
        load_model(path)
    except ModelError as error:
        return not str(error).startswith(str(path))
    return True


def test_no_flipped_byte_is_accepted(saved):
    _, path = saved
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    rng = np.random.default_rng(0)
    places = [*range(120), *rng.choice(header, FLIPS), *rng.integers(header, len(content), FLIPS)]
    for at in places:
        assert not accepted(path, content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]), at
    assert accepted(path, content)


@pytest.mark.slow
def test_no_flipped_byte_of_a_whole_file_is_accepted(saved):
    _, path = saved
    content = path.read_bytes()
    assert not [
        at
        for at in range(len(content))
        if accepted(path, content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
    ]


def test_no_file_that_was_cut_off_is_accepted(saved):
    _, path = saved
    content = path.read_bytes()
    ends = np.random.default_rng(0).choice(len(content), CUTS, replace=False)
    assert not [end for end in [0, len(content) - 1, *ends.tolist()] if accepted(path, content[:end])]


def test_arrays_are_views_of_the_file(saved):
    array = load_model(saved[1]).embedding_.vectors
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    assert isinstance(array, np.memmap)


def test_vectors_that_two_parts_share_are_kept_once(saved):
    _, arrays = tensors.read(saved[1], MODEL)
    assert sum(array.shape == (12, 6) and array.dtype == np.float32 for array in arrays.values()) == 1


def rewrite(path, change):
    """Write the file again, with a proper checksum, after a change to what it says."""
    about, arrays = tensors.read(path, MODEL)
    change(about, arrays)
    tensors.write(path, MODEL, about, arrays)


@pytest.mark.parametrize("name", ["os.system", "graphsage weights"])
def test_a_file_names_nothing_that_its_method_does_not_declare(saved, name):
    assert name not in NeuralBrane.holds
    rewrite(saved[1], lambda about, arrays: about["learned"].update(type=name))
    with pytest.raises(ModelError, match=rf"m\.brane: .* KeyError: '{name}'"):
        load_model(saved[1])


def test_a_field_that_an_earlier_version_had_is_ignored_and_a_lacking_one_named(saved):
    rewrite(saved[1], lambda about, arrays: about["learned"]["fields"].update(layer={"type": "layer", "fields": {}}))
    np.testing.assert_array_equal(load_model(saved[1]).embedding_.vectors, saved[0].embedding_.vectors)
    rewrite(saved[1], lambda about, arrays: about["learned"]["fields"].pop("values"))
    with pytest.raises(ModelError, match=r"m\.brane: .* neural-brane without values"):
        load_model(saved[1])


def test_rows_that_lead_beyond_a_table_are_refused(saved):
    def lead_astray(about, arrays):
        bag = about["learned"]["fields"]["part"]["fields"]["bags"]["tuple"][0]["fields"]["indices"]["array"]
        arrays[bag] = arrays[bag].copy()
        arrays[bag][0] = 1_000_000

    rewrite(saved[1], lead_astray)
    with pytest.raises(ModelError, match=r"m\.brane: .*sparse entries"):
        load_model(saved[1])


def test_a_method_that_this_version_lacks_says_what_to_do(saved):
    rewrite(saved[1], lambda about, arrays: about.update({"method": "later", "written by": "9.1"}))
    with pytest.raises(ModelError, match=r"method 'later'.*9"):
        load_model(saved[1])


def test_another_format_says_what_to_do(saved):
    about, arrays = tensors.read(saved[1], MODEL)
    tensors.write(saved[1], MODEL._replace(format="2"), about, arrays)
    with pytest.raises(ModelError, match=r"model.*'2'.*1"):
        load_model(saved[1])


def test_the_version_that_learned_is_kept(saved):
    rewrite(saved[1], lambda about, arrays: about.update(version="0.0.7"))
    model = load_model(saved[1])
    assert model.provenance()["version"] == "0.0.7"
    model.save(saved[1])  # the file that it is a view of
    assert load_model(saved[1]).provenance()["version"] == "0.0.7"
    np.testing.assert_array_equal(load_model(saved[1]).embedding_.vectors, saved[0].embedding_.vectors)


def test_what_is_not_a_model_is_refused(saved, tmp_path):
    with pytest.raises(NotFittedError, match="fitted"):
        NeuralBrane().save(tmp_path / "m.brane")
    with pytest.raises(ModelError, match=r"m\.npz.*format"):
        saved[0].save(tmp_path / "m.npz")
    with pytest.raises(ModelError, match=r"none\.brane: does not exist"):
        load_model(tmp_path / "none.brane")
    (tmp_path / "text.brane").write_text("hello, this is no model")
    with pytest.raises(ModelError, match=r"text\.brane: is not a model"):
        load_model(tmp_path / "text.brane")


def test_the_file_tells_what_made_it_in_plain_json(saved):
    listed = tensors.list_arrays(saved[1], ModelError)
    about = json.loads(listed.metadata["about"])
    assert (about["method"], about["nodes"], about["dim"], about["epochs"]) == ("neural-brane", 12, 6, 2)
    assert about["graph"]["digest"] == saved[0].graph_.digest()
