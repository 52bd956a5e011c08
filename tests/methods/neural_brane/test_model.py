import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from neural_brane import AttributedGraph, NeuralBrane, load
from neural_brane.errors import GraphError, ParameterError, UntrainedWarning
from neural_brane.kernels import reference
from neural_brane.kernels.model import Model
from neural_brane.methods.neural_brane.model import RECIPES
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.sampling.triplets import TripletSampler

GOLDEN = [0.455889, 0.270973, 0.208996]
LEARNED = {"spectral_dim": 0, "centre": False, "length": 0}  # the learned part alone, as training has made it
SHORT = {"dim": 10, "epochs": 2, "batches_per_epoch": 20, "batch_size": 30, "seed": 3} | LEARNED


TRAIN_AND_PRINT = """
import hashlib
from neural_brane import NeuralBrane, load
vectors = NeuralBrane(dim=40, epochs=2, batches_per_epoch=50, seed=1).fit_transform(load("stdlib")).vectors
print(hashlib.sha256(vectors.tobytes()).hexdigest())
"""


def test_threads_and_processes_do_not_change_a_bit():
    digests = {
        subprocess.run(
            [sys.executable, "-c", TRAIN_AND_PRINT],
            env=os.environ | {"NUMBA_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "2")
    }
    assert len(digests) == 1


def test_another_seed_gives_other_vectors(small_graph):
    first, other = (NeuralBrane(**SHORT | {"seed": seed}).fit_transform(small_graph).vectors for seed in (3, 4))
    assert (first != other).any()


def test_training_lowers_the_loss(small_graph):
    history = NeuralBrane(**SHORT | {"epochs": 30, "batches_per_epoch": 100}).fit(small_graph).loss_history_
    assert history[0] == pytest.approx(np.log(2), abs=0.05)
    assert history[-1] < 0.6 * history[0]


def test_the_reference_kernel_learns_the_same_vectors(small_graph):
    """The estimator with the kernels of `reference` gives the same vectors from the same start and triplets."""
    method = NeuralBrane(**SHORT).fit(small_graph)
    start = NeuralBrane(**SHORT | {"learning_rate": 1e-30, "l2": 0.0}).fit(small_graph)
    options = {name: method.settings_[name] for name in ("negative_power", "allow_self_negative")}
    sampler = TripletSampler(small_graph.adjacency, seed=method.seed_, **options)
    triplets = sampler.draw(0, 2 * 20 * 30).reshape(40, 30, 3)
    reference.train(start.model_, *method.bags_, triplets, method.kernel_settings_)
    nodes = np.arange(len(small_graph))
    expected = reference.embed(start.model_, *method.bags_, nodes, method.kernel_settings_)
    np.testing.assert_allclose(method.embedding_.vectors, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")  # two epochs on twelve nodes
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_trains(recipe, small_graph):
    method = NeuralBrane(recipe=recipe, **SHORT).fit(small_graph)
    assert {name: method.settings_[name] for name in RECIPES[recipe] if name not in SHORT} == {
        name: value for name, value in RECIPES[recipe].items() if name not in SHORT
    }
    assert np.isfinite(method.embedding_.vectors).all()


@pytest.mark.parametrize(("recipe", "width"), [("default", 28), ("released", 75), ("paper", 75)])
def test_a_recipe_divides_a_vector_between_attributes_and_neighbours(recipe, width):
    assert NeuralBrane(recipe=recipe).parameters_in_force()["attribute_dim"] == width
    assert NeuralBrane(recipe=recipe, attribute_dim=10).parameters_in_force()["attribute_dim"] == 10


def test_a_given_parameter_outweighs_the_recipe(small_graph):
    method = NeuralBrane(recipe="released", output="pooled", negative_power=0.0, **SHORT).fit(small_graph)
    assert method.settings_["output"] == "pooled"
    assert method.settings_["negative_power"] == 0.0
    assert method.settings_["zero_floor"] is True


def test_outputs_are_what_they_say(small_graph):
    pooled, hidden, released = (
        NeuralBrane(output=output, attribute_dim=4, **SHORT).fit(small_graph)
        for output in ("pooled", "hidden", "released")
    )
    model = pooled.model_
    f = pooled.embedding_.vectors
    np.testing.assert_allclose(hidden.embedding_.vectors, reference.hide(model, f), rtol=1e-5, atol=1e-7)
    own = np.hstack([model.neighbour_table[:, :6], np.maximum(f[:, :4], 0)])
    np.testing.assert_array_equal(released.embedding_.vectors, own)


@pytest.mark.parametrize("regularise", ["hidden", "parameters"])
def test_rows_take_the_step_of_batch_100_whatever_the_batch(small_graph, regularise):
    """With three copies of 100 triplets in a batch, rows move three times as far, but the layer as far as with one."""
    shape = {"dim": 10, "table_std": 0.5, "weight_std": 0.5} | LEARNED
    method = NeuralBrane(**shape, l2=0.01, regularise=regularise, bias=True, seed=3)
    start = method.set_params(epochs=1, batches_per_epoch=1, learning_rate=1e-30).fit(small_graph)
    triplets = TripletSampler(small_graph.adjacency, seed=1).draw(0, 100)[None]
    moved = []
    for repeats in (1, 3):
        settings = method.set_params(learning_rate=0.1, batch_size=100 * repeats).parameters_in_force()
        model = Model(*(theta.astype(np.float64) for theta in start.model_))
        reference.train(model, *start.bags_, np.tile(triplets, (1, repeats, 1)), kernel_settings(settings))
        moved.append([after - before for after, before in zip(model, start.model_, strict=True)])
    for once, thrice, times in zip(*moved, (3, 3, 1, 1), strict=True):
        np.testing.assert_allclose(thrice, times * once, rtol=1e-6, atol=1e-12)


def test_tolerance_stops_a_flat_run(small_graph):
    settings = SHORT | {"epochs": 200, "batches_per_epoch": 50}
    stopped = NeuralBrane(tolerance=0.2, **settings).fit(small_graph).loss_history_
    assert 4 <= len(stopped) < 200
    assert stopped[-4] - stopped[-1] < 0.2 * stopped[-4]


def test_tolerance_waits_while_the_loss_sits_at_its_start(small_graph):
    settings = SHORT | {"epochs": 6, "learning_rate": 1e-6}
    assert len(NeuralBrane(tolerance=0.5, **settings).fit(small_graph).loss_history_) == 6


def test_a_pair_of_matrices_is_a_graph(small_graph):
    pair = (small_graph.adjacency, small_graph.attributes)
    np.testing.assert_array_equal(
        NeuralBrane(**SHORT).fit_transform(pair).vectors, NeuralBrane(**SHORT).fit_transform(small_graph).vectors
    )
    with pytest.raises(GraphError, match=r"dict.*AttributedGraph"):
        NeuralBrane(**SHORT).fit({"a": "b"})


def test_a_graph_without_attributes_is_fine(small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    vectors = NeuralBrane(**SHORT).fit_transform(bare).vectors
    assert vectors.shape == (len(bare), 10)
    assert vectors.any(axis=0).all()


def test_progress_reports_up_to_the_end(small_graph):
    seen = []
    NeuralBrane(progress=seen.append, **SHORT).fit(small_graph)
    assert {report.epoch for report in seen} == {1, 2}
    assert seen[-1].done == seen[-1].total == 2 * 20 * 30
    assert seen[-1].rate > 0


def test_a_complete_graph_is_refused():
    complete = sparse.csr_array(1 - np.eye(5, dtype=np.float32))
    with pytest.raises(GraphError, match="rank"):
        NeuralBrane(**SHORT).fit((complete, complete))


def test_divergence_is_told(small_graph):
    with pytest.raises(ParameterError, match=r"training.*learning_rate=100000"):
        NeuralBrane(**SHORT | {"learning_rate": 100_000, "loss": "sum", "epochs": 20}).fit(small_graph)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"recipe": "secret"}, "recipe='secret' makes no sense; give one of released, paper, default"),
        ({"attribute_dim": 11}, r"attribute_dim=11.*0 to 10"),
        ({"output": "hidden", "hidden": 7}, r"hidden=7.*10"),
        ({"regularise": "parameters", "l2": 20, "batch_size": 1000}, "l2=20.0 makes no sense; give a smaller number"),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(parameters, message, small_graph):
    with pytest.raises(ParameterError, match=message):
        NeuralBrane(**SHORT | parameters).fit(small_graph)


def test_golden_losses():
    """A change of these is a change of what everybody's seed gives: it belongs in the changelog.

    Max pooling turns another processor's last bits into other winners, and so into losses a few in a thousand apart.
    """
    short = {"epochs": 3, "batch_size": 100, "batches_per_epoch": 200}
    method = NeuralBrane(dim=40, weight_std=0.5, seed=0, **short, **LEARNED)
    losses = method.fit(load("stdlib")).loss_history_
    assert losses == pytest.approx(GOLDEN, rel=0.01)


def test_a_run_that_ends_at_chance_says_so(small_graph):
    with pytest.warns(UntrainedWarning, match=r"loss.*epochs=4"):
        NeuralBrane(**SHORT | {"learning_rate": 1e-6}).fit(small_graph)
