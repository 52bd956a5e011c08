"""Jobs of several ranks compute the vectors of one process, resume from checkpoints, and take the same GPU steps."""

import json

import numpy as np
import pytest

from neural_brane import NeuralBrane
from neural_brane.errors import ParameterError
from neural_brane.files.vectors.parts import open_parts, read_whole
from neural_brane.kernels import cpu
from neural_brane.kernels.model import bags_of
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.methods.neural_brane.training import initial_model
from neural_brane.sampling.triplets import TripletSampler

ROUNDING = 1e-4  # allowed difference, as a share of a vector's length
NAMES = ("default", "released", "paper")


@pytest.fixture(scope="module")
def alone(embed_cases):
    """Every case embedded by one process."""
    return {name: NeuralBrane(**case).fit_transform(embed_cases.graph()) for name, case in embed_cases.CASES.items()}


def farthest(found, expected):
    """Return the largest difference between two vectors, divided by the length of the expected one."""
    return float((np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)).max())


def test_every_case_is_compared(embed_cases):
    assert tuple(embed_cases.CASES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_two_ranks_write_the_vectors_of_one_process(embedded, alone, name):
    assert len(open_parts(embedded / name).bounds) == 3
    found = read_whole(embedded / name)
    assert found.ids.tolist() == alone[name].ids.tolist()
    assert farthest(found.vectors, alone[name].vectors) < ROUNDING
    loss = alone[name].provenance["training"]["loss"]
    assert found.provenance["training"]["loss"] == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_training_has_moved_the_vectors(embed_cases, alone, name):
    untrained = NeuralBrane(**embed_cases.CASES[name] | {"learning_rate": 1e-9}).fit_transform(embed_cases.graph())
    assert farthest(untrained.vectors, alone[name].vectors) > 100 * ROUNDING


def test_dividing_the_rows_among_ranks_changes_no_bit(embedded):
    by_range = read_whole(embedded / "by range")
    np.testing.assert_array_equal(by_range.vectors, read_whole(embedded / "default").vectors)


def test_one_rank_resumes_the_training_of_two(embedded, embed_cases):
    assert json.loads((embedded / "lines.json").read_text()) == [
        f"resumed at step {embed_cases.EVERY:,} on 1 rank (was 2)"
    ]
    begun, resumed = (read_whole(embedded / name).vectors for name in ("begun", "resumed"))
    undisturbed = read_whole(embedded / embed_cases.RESUMED).vectors
    assert farthest(resumed, undisturbed) < ROUNDING
    assert farthest(begun, undisturbed) > 100 * ROUNDING


def test_fit_gives_every_rank_the_vectors_of_one_process(embedded, alone):
    first, second = (np.load(embedded / f"fitted-{rank}.npy") for rank in range(2))
    np.testing.assert_array_equal(first, second)
    assert farthest(first, alone["default"].vectors) < ROUNDING


def test_without_ranks_the_error_says_how_to_start_them(with_torchrec, embed_cases, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ParameterError, match=r"device='distributed'.*ranks.*torchrun"):
        NeuralBrane(device="distributed").fit(embed_cases.graph())


@pytest.mark.parametrize("name", ["max", "paper"])
def test_gpu_steps_equal_those_of_one_process(embedded, embed_cases, engine_cases, name):
    settings, graph = engine_cases.settings_of(name) | {"batch_size": embed_cases.GPU_BATCH}, embed_cases.graph()
    options = {option: settings[option] for option in ("negative_power", "allow_self_negative")}
    steps, batch = embed_cases.GPU_STEPS, embed_cases.GPU_BATCH
    triplets = TripletSampler(graph.adjacency, seed=engine_cases.SEED, **options).draw(0, steps * batch)
    model, bags = (
        initial_model(graph, settings, engine_cases.SEED),
        (bags_of(graph.attributes), bags_of(graph.adjacency)),
    )
    losses = cpu.Trainer(model, *bags, kernel_settings(settings), batch)(triplets.reshape(steps, batch, 3))
    found = np.load(embedded / "triton.npz")
    for field, expected in (model._asdict() | {"losses": losses}).items():
        np.testing.assert_allclose(found[f"{name}/{field}"], expected, rtol=0, atol=1e-5, err_msg=field)
