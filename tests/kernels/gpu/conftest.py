"""Compare the GPU kernels with the reference, on a GPU if there is one, otherwise in Triton's interpreter."""

import os

import numpy as np
import pytest

from neural_brane.kernels import reference
from neural_brane.kernels.model import MAX, Model

CLOSE = 1e-5  # gap of a decision that rounding may reverse


@pytest.fixture
def on_gpu() -> bool:
    """Return whether kernels are compiled; the interpreter needs about 5 ms per program, so its tests are smaller."""
    return os.environ.get("TRITON_INTERPRET") != "1"


@pytest.fixture
def batch(on_gpu) -> int:
    return 100 if on_gpu else 1


@pytest.fixture
def seed(on_gpu) -> int:
    return np.random.SeedSequence().entropy % 2**32 if on_gpu else 7


@pytest.fixture
def poisoned():
    """Return an allocator that fills memory with NaN or invalid row numbers, to reveal memory that no kernel writes."""
    import torch

    from neural_brane.kernels import gpu

    def allocate(*shape, dtype=torch.float32):
        return torch.full(shape, torch.nan if dtype.is_floating_point else 10**9, dtype=dtype, device=gpu.DEVICE)

    return allocate


def closest_decision(model, attribute_bags, neighbour_bags, settings) -> float:
    """Return the smallest gap between a node's two largest rows, or a hidden unit and zero, over their mean size."""
    d1 = settings.attribute_dim
    tables = model.attribute_table[:, :d1], model.neighbour_table[:, : model.weight.shape[1] - d1]
    gaps = []
    for bags, table in zip((attribute_bags, neighbour_bags), tables, strict=True):
        for bag in np.split(bags.indices, bags.indptr[1:-1]):
            rows = np.vstack([table[bag], np.zeros((int(settings.zero_floor), table.shape[1]))])
            if settings.pooling == MAX and len(rows) > 1 and table.size:
                second, largest = np.sort(rows, axis=0)[-2:]
                gaps += ((largest - second) / np.abs(table).mean()).tolist()
    nodes = np.arange(len(neighbour_bags.indptr) - 1)
    pooled = reference.embed(model, attribute_bags, neighbour_bags, nodes, settings)
    units = np.abs(pooled @ model.weight.T + model.bias)
    return min([*gaps, *units[units > 0] / units.mean()])


def mean_size(theta) -> float:
    return float(np.abs(theta).mean()) if theta.size else 0.0


def assert_alike(model, expected_model, losses, expected_losses, seed) -> None:
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-3, err_msg=f"seed {seed}")
    for name, found, expected in zip(Model._fields, model, expected_model, strict=True):
        # An entry near zero is the difference of larger numbers, so the tolerance depends on the size of the table.
        atol = 1e-3 * mean_size(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=atol, err_msg=f"{name}, seed {seed}")


@pytest.fixture
def train_on_gpu():
    """Return a function that trains a model of NumPy arrays in place, with the options of the `Trainer`."""
    import torch

    from neural_brane.kernels import gpu

    def train(model, attribute_bags, neighbour_bags, triplets, settings, **options):
        placed = gpu.place(model)
        bags = gpu.place(attribute_bags), gpu.place(neighbour_bags)
        losses = gpu.Trainer(placed, *bags, settings, triplets.shape[1], **options)(
            torch.from_numpy(triplets).to(gpu.DEVICE)
        )
        gpu.fetch(placed, model)
        return losses

    return train


@pytest.fixture
def assert_follows(seed, poisoned, train_on_gpu):
    """Return a function that compares the GPU kernels with the reference, which trains in double precision.

    Both may rightly differ after a close decision, which sends a gradient to another row. Before such a step, both get
    the same model again, with a little noise.
    """

    def follows(case, settings, **options) -> None:
        model, *bags, triplets = case
        slow = Model(*(theta.astype(np.float64) for theta in model))
        random = np.random.default_rng(seed)
        begun, expected = 0, []

        def compare(end: int) -> None:
            losses = train_on_gpu(model, *bags, triplets[begun:end], settings, allocate=poisoned, **options)
            assert_alike(model, slow, losses, expected, seed)

        for step, batch in enumerate(triplets):
            if closest_decision(slow, *bags, settings) < CLOSE:
                compare(step)
                begun, expected = step, []
                while closest_decision(slow, *bags, settings) < CLOSE:
                    for theta, wanted in zip(model, slow, strict=True):
                        noise = random.normal(0, 1e-3 * mean_size(wanted), wanted.shape)
                        theta[:] = wanted[:] = np.where(wanted == 0, 0, wanted + noise)  # padding columns stay zero
            expected += reference.train(slow, *bags, batch[None], settings).tolist()
        compare(len(triplets))

    return follows


@pytest.fixture(params=[0, 2**40], ids=["a vector per slot", "a vector per node"])
def large_batches(request):
    """Return limits that make every batch large, computed slot by slot or node by node."""
    from neural_brane.kernels.gpu import Limits

    return Limits(large_batch=1, nodes_per_slot=request.param, node_piece=2)
