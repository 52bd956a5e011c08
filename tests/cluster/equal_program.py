"""What every rank trains for test_equal.py: each case, 20 steps; the first rank writes the model that came out."""

from pathlib import Path

import numpy as np
import torch
from ranks import each_group

from neural_brane import NeuralBrane, synthetic
from neural_brane.cluster.batches import BatchMaker, prefetch
from neural_brane.cluster.exchange import Exchange
from neural_brane.cluster.model import ShardedModel
from neural_brane.cluster.rows import LocalRows, RangedRows
from neural_brane.cluster.sampling_tables import sampling_tables
from neural_brane.cluster.step import CPUStep
from neural_brane.cluster.triplets import Triplets
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.shards import parts_of

STEPS, SEED = 20, 5
CASES = {
    "max": {"pooling": "max", "batch_size": 96, "learning_rate": 4.0},
    "sum": {"pooling": "sum", "batch_size": 96, "learning_rate": 0.1},
    "mean": {"pooling": "mean", "batch_size": 96, "learning_rate": 20.0},
    "large": {"pooling": "max", "batch_size": 1700},  # a rank's share is trained node by node at 1, 2 and 4 ranks
    "released": {"recipe": "released", "batch_size": 96, "learning_rate": 4.0},
    "paper": {"recipe": "paper", "batch_size": 96, "l2": 0.01, "weight_std": 0.1},
    "shrinking": {"recipe": "paper", "batch_size": 96, "l2": 0.06, "weight_std": 0.1},  # its factor is folded in
    "uneven": {"pooling": "max", "batch_size": 97, "learning_rate": 4.0},
    "no attributes": {"attribute_dim": 0, "batch_size": 96, "learning_rate": 4.0},
    "attributes alone": {"attribute_dim": 24, "batch_size": 96, "learning_rate": 2.0},
}


def graph():
    return synthetic(300, seed=2)


def settings_of(case):
    """The settings of a case, for the learned part alone."""
    learned = {"spectral_dim": 0, "dim": 24, "table_std": 0.1, "length": 0.0, "centre": False} | case
    return NeuralBrane(**learned).parameters_for(graph())


def train(case, rows, exchange):
    """The model after STEPS steps, and the losses."""
    settings = settings_of(case)
    tables = sampling_tables(
        rows, exchange,
        negative_power=settings["negative_power"], allow_self_negative=settings["allow_self_negative"],
    )  # fmt: skip
    triplets = Triplets(rows, tables, allow_self_negative=settings["allow_self_negative"], seed=SEED)
    make = BatchMaker(rows, triplets, settings["batch_size"], exchange.rank, exchange.ranks)
    model = ShardedModel(rows.attributes, rows.nodes, settings, exchange, torch.device("cpu"))
    model.start(settings, SEED)
    step = CPUStep(model, kernel_settings(settings), settings["batch_size"], make.count)
    with prefetch(make, STEPS) as ahead:
        losses = [float(step(ahead(number))) for number in range(STEPS)]
    return model, losses


def train_all(exchange: Exchange, ranks: int, output: Path) -> None:
    shards, found = parts_of(graph(), 3), {}
    for form, rows in (("local", LocalRows(shards)), ("ranged", RangedRows(shards, Exchange(exchange.own_group())))):
        for name in CASES if form == "local" else ("max", "large"):
            model, losses = train(CASES[name], rows, exchange)
            for field, array in model.whole()._asdict().items():
                found[f"{form}/{name}/{field}"] = array
            found[f"{form}/{name}/losses"] = np.array(losses)
    if exchange.rank == 0:
        np.savez(output / f"{ranks}.npz", **found)


if __name__ == "__main__":
    each_group(train_all)
