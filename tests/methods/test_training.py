"""The training loop of all methods, its errors for diverging trainings, and its choice of device."""

import numpy as np
import pytest
from scipy import sparse

from neural_brane import PTE, NeuralBrane
from neural_brane.errors import ParameterError
from neural_brane.files.checkpoints import Checkpoint, Stages
from neural_brane.methods import nnmf, tadw
from neural_brane.methods.training import Loop, diverged, require_finite
from neural_brane.progress import Meter

RUN = {"method": "counting", "graph": {"digest": "d"}, "parameters": {}, "seed": 1, "libraries": {}, "version": "1",
       "code": {"behaviour": "00", "sample": [1.0], "untried": False}}  # fmt: skip


def loop_of(stages=None, *, seen=None, steps=6, **options):
    report = None if seen is None else seen.append
    meter = Meter(report, 10 * steps, "pairs", epochs=options.pop("epochs", 3), clock=lambda: 0.0)
    return Loop((stages or Stages()).stage("tables"), meter, steps, per_epoch=2, units=lambda at: 10 * at, **options)


def test_losses_are_averaged_by_epochs_and_progress_counts_units():
    table, seen = np.zeros(1), []

    def step(at):
        table[:] += at
        return None if at == 3 else float(at)  # a step without a loss

    assert loop_of(seen=seen).run({"table": table}, step) == [0.5, 2.0, 4.5]
    assert table[0] == 15
    assert [(one.epoch, one.done) for one in seen] == [(1, 10), (2, 30), (3, 50), (3, 60)]
    assert [one.loss for one in seen] == [0.0, 2.0, 4.0, 4.5]


@pytest.mark.parametrize("stop", range(1, 6))
def test_a_loop_that_was_stopped_resumes_with_its_losses_and_its_place(stop, tmp_path):
    def train(interrupt):
        table, seen = np.zeros(1), []

        def step(at):
            if interrupt and at == stop:
                raise KeyboardInterrupt
            table[:] = 3 * table + at
            return float(table[0])

        with Checkpoint(tmp_path / "run", RUN, interval=0, share=np.inf) as checkpoint:
            return loop_of(Stages(checkpoint), seen=seen).run({"table": table}, step), table[0], seen

    with pytest.raises(KeyboardInterrupt):
        train(True)
    losses, value, seen = train(False)
    assert value == 3**4 * 1 + 3**3 * 2 + 3**2 * 3 + 3 * 4 + 5
    assert losses == [0.5, (3 * 1 + 2 + 18) / 2, (58 + 179) / 2]
    assert seen[0].done == 10 * (stop + 1)


def test_a_step_may_keep_losses_of_its_own_and_training_may_end_early():
    numbers = {"losses": []}

    def step(at):
        numbers["losses"].append(-float(at))
        return 7.0

    seen = []
    losses = loop_of(seen=seen).run({}, step, numbers=numbers, until=lambda: len(numbers["losses"]) == 4)
    assert losses == [0.0, -1.0, -2.0, -3.0]
    assert {one.loss for one in seen} == {7.0}


@pytest.mark.parametrize(("epochs", "place"), [(3, "epoch 2"), (1, "step 4 of 6")])
def test_a_loss_that_is_no_number_stops_the_training(epochs, place):
    with pytest.raises(ParameterError, match=rf"diverged in {place}: the loss .*; lower rate=2$"):
        loop_of(epochs=epochs, rate=2.0).run({}, lambda at: np.inf if at == 3 else 0.0)


def test_arrays_are_looked_at_after_the_last_step():
    table = np.zeros(3)

    def step(at):
        table[2] = np.nan if at == 5 else 1
        return 0.0

    with pytest.raises(ParameterError, match="epoch 3"):
        loop_of(advice="raise it").run({"the table": table}, step)


def test_what_is_finite_passes():
    require_finite({"W": np.ones((3, 2)), "counts": np.arange(4), "none": np.zeros((0, 2))}, "epoch 1")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_is_named_with_what_to_change(bad):
    arrays = {"W": np.ones(3), "H": np.array([1, bad]), "Z": np.array([bad])}
    with pytest.raises(ParameterError, match=r"in epoch 3: H and Z .*; lower learning_rate=0\.5 or raise rho=5$"):
        require_finite(arrays, "epoch 3", "raise rho=5", learning_rate=0.5)


def test_several_settings_can_be_lowered():
    with pytest.raises(ParameterError, match=r"diverged now; lower learning_rate=100000 or lower batch_size=65536$"):
        diverged("now", learning_rate=1e5, batch_size=65536)


def test_the_advice_of_a_sum_is_to_take_the_mean(small_graph):
    settings = {"loss": "sum", "recipe": "paper", "l2": 0.0, "learning_rate": 1e20, "weight_std": 1.0}
    with pytest.raises(ParameterError, match=r"lower learning_rate=1e\+20 or set loss='mean'"):
        NeuralBrane(dim=4, seed=1, table_std=1.0, threads=1, **settings).fit(small_graph)


def test_skip_gram_of_edges_is_told(small_graph):
    with pytest.raises(ParameterError, match=r"1.*vectors.*learning_rate=1e\+30"):
        PTE(dim=4, samples=1_000, learning_rate=1e30, seed=1).fit(small_graph)


def test_parts_that_overflow_are_told():
    matrix = sparse.csr_array(np.full((4, 3), 3e38, np.float32))
    loop = Loop(Stages().stage("factors"), Meter(None, 3, "steps", epochs=3), 3, advice=nnmf.ADVICE)
    with np.errstate(all="ignore"), pytest.raises(ParameterError, match="epoch 1"):
        nnmf.factorise(matrix, 2, 0, loop, 1)


@pytest.mark.parametrize("squares", [np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_equations_without_a_solution_are_told(squares):
    loop = Loop(Stages().stage("factors"), Meter(None, 9, "steps", epochs=9), 9, advice="raise l2=0.2")
    with pytest.raises(ParameterError, match=r"epoch 4.*l2=0\.2"):
        tadw.solve(squares, np.ones((5, 2)), loop, 3)
