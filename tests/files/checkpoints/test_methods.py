"""Every method that trains in steps resumes from its checkpoint and ends with the bits of an uninterrupted run."""

import math
import signal
from functools import partial

import numpy as np
import pytest

from neural_brane import METHODS, Graph2Gauss, GraphSAGE, NeuralBrane, load, synthetic
from neural_brane.errors import CheckpointError, ParameterError
from neural_brane.files.checkpoints import Checkpoint
from neural_brane.methods import base
from neural_brane.methods.neural_brane.training import is_flat

pytestmark = pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")
# These methods train for moments only, or compute a decomposition without steps.
AT_ONCE = {"attributes", "smoothed-attributes", "propagated-attributes", "grarep", "fastrp", "prone"}
SHORT = {
    "neural-brane": {"epochs": 12, "batches_per_epoch": 30},
    "deepwalk": {"walks_per_node": 2, "epochs": 5},
    "node2vec": {"walks_per_node": 2, "epochs": 5, "walk_length": 20},
    "line": {"samples": 1_600_000},
    "pte": {"samples": 1_600_000},
    "deepwalk+nnmf": {"walks_per_node": 1, "epochs": 3, "nnmf_epochs": 5},
    "nnmf": {"epochs": 9},
    "tadw": {"epochs": 5, "text_dim": 30},
    "aane": {"epochs": 5},
    "lane": {"epochs": 5},
    "tridnr": {"walks_per_node": 2, "epochs": 5},
    "graphsage": {"walks_per_node": 2, "epochs": 2, "batch_size": 300, "device": "cpu"},
    "graph2gauss": {"epochs": 6, "hidden": 16, "device": "cpu"},
    "dgi": {"epochs": 4, "nodes_per_step": 90, "device": "cpu"},
    "cca-ssg": {"epochs": 4, "nodes_per_step": 90, "device": "cpu"},
    "graphmae": {"epochs": 4, "nodes_per_step": 90, "device": "cpu"},
    "pane": {"epochs": 5},
    "hne": {"epochs": 6},
    "sdne": {"epochs": 4, "hidden": 16, "batch_size": 90, "device": "cpu"},
    "dngr": {"epochs": 3, "hidden": 16, "batch_size": 90, "device": "cpu"},
    "ep": {"epochs": 4},
    "upp-sne": {"walks_per_node": 20, "walk_length": 20, "batch_size": 8},
}
RUN = {"dim": 10, "threads": 1, "epochs": 6, "batches_per_epoch": 20, "batch_size": 30, "seed": 3, "spectral_dim": 0}


class HaltError(Exception):
    """An error that stops a run in these tests."""


class Halting(Checkpoint):
    """A checkpoint that lets a run take three steps, and no more."""

    def __init__(self, *arguments, steps=3, **options):
        super().__init__(*arguments, interval=0, share=math.inf, **options)
        self.left = steps

    def begin_step(self):
        if self.left == 0:
            raise HaltError
        self.left -= 1
        super().begin_step()


def test_every_method_that_takes_steps_has_a_checkpoint():
    assert {name for name in METHODS if "checkpoint" in METHODS[name].parameters()} == set(METHODS) - AT_ONCE
    assert set(SHORT) == set(METHODS) - AT_ONCE


@pytest.mark.parametrize("name", SHORT)
def test_a_run_stopped_again_and_again_ends_with_the_same_bits(name, tmp_path, monkeypatch):
    """The number of threads alternates between runs; the first run draws the seed and saves it."""
    if extra := METHODS[name].extra:
        pytest.importorskip(extra)
    graph, settings = synthetic(200, seed=5), {"dim": 12} | SHORT[name]
    monkeypatch.setattr(base, "Checkpoint", Halting)
    for halts in range(100):
        method = METHODS[name](checkpoint=tmp_path / "run.checkpoint", threads=1 + halts % 2, **settings)
        try:
            method.fit(graph)
            break
        except HaltError:
            pass
    assert halts > 0
    whole = METHODS[name](seed=method.seed_, **settings).fit(graph)
    np.testing.assert_array_equal(method.embedding_.vectors, whole.embedding_.vectors)
    assert getattr(method, "loss_history_", None) == getattr(whole, "loss_history_", None)
    assert method.provenance() == whole.provenance()
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]


@pytest.mark.parametrize("recipe", ["released", "paper"])
def test_the_other_recipes_of_neural_brane_resume_too(recipe, small_graph, tmp_path, monkeypatch):
    settings = RUN | {"recipe": recipe}
    monkeypatch.setattr(base, "Checkpoint", Halting)
    with pytest.raises(HaltError):
        NeuralBrane(checkpoint=tmp_path / "run", **settings).fit(small_graph)
    monkeypatch.undo()
    resumed = NeuralBrane(checkpoint=tmp_path / "run", **settings).fit(small_graph)
    whole = NeuralBrane(**settings).fit(small_graph)
    np.testing.assert_array_equal(resumed.embedding_.vectors, whole.embedding_.vectors)
    assert resumed.loss_history_ == whole.loss_history_


def test_a_run_resumes_in_the_middle_of_an_epoch(tmp_path, monkeypatch):
    """An epoch has more triplets than are trained at a time."""
    graph, settings = synthetic(200, seed=5), {"dim": 8, "epochs": 2, "batches_per_epoch": 70, "batch_size": 1_000}
    monkeypatch.setattr(base, "Checkpoint", partial(Halting, steps=1))
    with pytest.raises(HaltError):
        NeuralBrane(checkpoint=tmp_path / "run", seed=1, **settings).fit(graph)
    monkeypatch.undo()
    seen = []
    resumed = NeuralBrane(checkpoint=tmp_path / "run", progress=seen.append, **settings).fit(graph)
    whole = NeuralBrane(seed=1, **settings).fit(graph)
    np.testing.assert_array_equal(resumed.embedding_.vectors, whole.embedding_.vectors)
    assert resumed.loss_history_ == whole.loss_history_
    assert seen[0].done > 50_000


def test_ctrl_c_saves_the_state_and_then_interrupts(small_graph, tmp_path):
    """The usual interval has not passed, so the interrupt itself saves the state."""

    def report(progress):
        if progress.epoch == 4:
            signal.raise_signal(signal.SIGINT)

    path = tmp_path / "run.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        NeuralBrane(checkpoint=path, progress=report, **RUN).fit(small_graph)
    seen = []
    resumed = NeuralBrane(checkpoint=path, progress=seen.append, **RUN).fit(small_graph)
    assert seen[0].epoch == 5
    np.testing.assert_array_equal(resumed.embedding_.vectors, NeuralBrane(**RUN).fit_transform(small_graph).vectors)


def test_an_error_of_the_reporter_loses_at_most_one_step(small_graph, tmp_path):
    def report(progress):
        if progress.epoch == 4:
            raise RuntimeError("nobody listens")

    path, seen = tmp_path / "run.checkpoint", []
    with pytest.raises(RuntimeError, match="nobody listens"):
        NeuralBrane(checkpoint=path, progress=report, **RUN).fit(small_graph)
    NeuralBrane(checkpoint=path, progress=seen.append, **RUN).fit(small_graph)
    assert seen[0].epoch == 5


@pytest.mark.parametrize(
    "name", ["neural-brane", "nnmf", "tadw", "aane", "graph2gauss", "graphsage", "sdne", "dgi", "cca-ssg"]
)
def test_a_finished_run_can_be_made_longer_but_not_shorter(name, small_graph, tmp_path):
    if extra := METHODS[name].extra:
        pytest.importorskip(extra)
    settings = {"dim": 4, "seed": 2} | ({"device": "cpu"} if METHODS[name].extra else {})
    settings |= {"batches_per_epoch": 5} if name == "neural-brane" else {}
    make = partial(METHODS[name], **settings)
    make(checkpoint=tmp_path / "run", epochs=2).fit(small_graph)
    longer = make(checkpoint=tmp_path / "run", epochs=4).fit_transform(small_graph)
    np.testing.assert_array_equal(longer.vectors, make(epochs=4).fit_transform(small_graph).vectors)
    with pytest.raises(CheckpointError, match=r"4 epochs.*3"):
        make(checkpoint=tmp_path / "run", epochs=3).fit(small_graph)


def test_a_longer_run_with_a_falling_learning_rate_is_refused(small_graph, tmp_path):
    make = partial(METHODS["deepwalk"], dim=4, walks_per_node=1, checkpoint=tmp_path / "run")
    make(epochs=1).fit(small_graph)
    with pytest.raises(CheckpointError, match=r"epochs.*1.*2"):
        make(epochs=2).fit(small_graph)


def test_a_run_that_ended_by_its_tolerance_stays_ended(tmp_path):
    settings = {"dim": 8, "epochs": 40, "batches_per_epoch": 50, "batch_size": 100, "tolerance": 0.02, "seed": 0}
    graph = load("stdlib")
    make = partial(NeuralBrane, spectral_dim=0, table_std=0.3, threads=1, **settings)
    whole = make().fit(graph)
    assert is_flat(whole.loss_history_, 0.02)
    for _ in range(3):
        again = make(checkpoint=tmp_path / "run").fit(graph)
        assert again.loss_history_ == whole.loss_history_
        np.testing.assert_array_equal(again.embedding_.vectors, whole.embedding_.vectors)
    more = len(whole.loss_history_) + 3
    longer = make(checkpoint=tmp_path / "run").set_params(tolerance=1e-9, epochs=more).fit(graph)
    assert len(longer.loss_history_) == more
    with pytest.raises(CheckpointError, match=rf"{more} epochs.*tolerance=0\.02"):
        make(checkpoint=tmp_path / "run").fit(graph)


def test_a_drawn_seed_is_kept_and_another_is_refused(small_graph, tmp_path):
    make = partial(NeuralBrane, checkpoint=tmp_path / "run", **RUN)
    first = make(seed=None).fit(small_graph)
    assert make(seed=None).fit(small_graph).seed_ == first.seed_
    with pytest.raises(CheckpointError, match=f"seed was {first.seed_}, now 3"):
        make().fit(small_graph)


def test_other_data_and_other_parameters_are_refused(small_graph, tmp_path):
    make = partial(NeuralBrane, checkpoint=tmp_path / "run", **RUN)
    make().fit(small_graph)
    with pytest.raises(CheckpointError, match=r"learning_rate was 0\.5, now 0\.1"):
        make(learning_rate=0.1).fit(small_graph)
    with pytest.raises(CheckpointError, match=r"graph.*'small'"):
        make().fit((small_graph.adjacency, small_graph.attributes[:, :2]))


def test_two_runs_never_share_a_checkpoint(small_graph, tmp_path):
    make, refused = partial(NeuralBrane, checkpoint=tmp_path / "run", **RUN), []

    def second(progress):
        with pytest.raises(CheckpointError, match="is training with this checkpoint"):
            make().fit(small_graph)
        refused.append(progress)

    make(progress=second).fit(small_graph)
    assert refused


def test_a_fitted_method_keeps_its_reporter_and_no_stages(small_graph, tmp_path):
    seen = []
    fitted = NeuralBrane(checkpoint=tmp_path / "run", progress=seen.append, **RUN).fit(small_graph)._fitted
    assert fitted.settings["progress"] == seen.append
    assert "_stages" not in vars(fitted.method)


DIVERGING = {
    "neural-brane": ({"learning_rate": 1e30, "epochs": 1, "batches_per_epoch": 3}, "lower learning_rate=1e+30"),
    "deepwalk": ({"learning_rate": 1e30}, "lower learning_rate=1e+30"),
    "line": ({"learning_rate": 1e30, "samples": 5_000}, "lower learning_rate=1e+30"),
    "aane": ({"l2": 1e300}, "lower l2=1e+300 or raise rho=5"),
    "graph2gauss": ({"learning_rate": 1e30, "epochs": 3, "device": "cpu"}, "lower learning_rate=1e+30"),
    "ep": ({"learning_rate": 1e38, "epochs": 3}, "lower learning_rate=1e+38"),
    "upp-sne": ({"learning_rate": 1e38, "walks_per_node": 9}, "lower learning_rate=1e+38"),
}


@pytest.mark.parametrize("name", DIVERGING)
def test_the_error_for_divergence_says_what_to_change(name, small_graph):
    if extra := METHODS[name].extra:
        pytest.importorskip(extra)
    settings, advice = DIVERGING[name]
    with (
        np.errstate(all="ignore"),
        pytest.raises(ParameterError, match="training diverged in .*" + advice.replace("+", r"\+")),
    ):
        METHODS[name](dim=4, seed=1, **settings).fit(small_graph)


@pytest.mark.parametrize("method", [Graph2Gauss, GraphSAGE])
def test_divergence_in_the_last_step_is_detected(method, small_graph):
    """The loss is computed before the step, so it is still finite."""
    pytest.importorskip("torch")
    one_step = {"epochs": 1} | ({"walks_per_node": 1} if method is GraphSAGE else {})
    with pytest.raises(ParameterError, match=r"epoch 1.*learning_rate=1e\+39"):
        method(dim=4, seed=1, device="cpu", learning_rate=1e39, **one_step).fit(small_graph)


def test_divergence_of_neural_brane_in_its_last_step_is_detected(small_graph):
    step = {"epochs": 1, "batches_per_epoch": 1, "learning_rate": 1e38, "weight_std": 1e3, "table_std": 1e3}
    with pytest.raises(ParameterError, match="epoch 1"):
        NeuralBrane(dim=4, spectral_dim=0, seed=1, **step).fit(small_graph)
