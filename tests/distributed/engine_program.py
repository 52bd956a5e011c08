"""The program of test_equal.py: all ranks train each case for 20 steps, and the first rank writes the models."""

import sys
from pathlib import Path

import numpy as np
import torch
from engine_cases import CASES, SEED, STEPS, graph, settings_of
from leaving import leave
from torch import distributed

from neural_brane.distributed.batches import BatchMaker, GraphRows, Prefetch, sampling_tables, share_of
from neural_brane.distributed.exchange import Exchange
from neural_brane.distributed.model import CPUStep, ShardedModel
from neural_brane.files.graphs.shards import MemoryShards
from neural_brane.kernels import cpu
from neural_brane.methods.neural_brane.parts import kernel_settings


def train(name, rows, exchange):
    """Return the model after STEPS steps, and the losses."""
    settings = settings_of(name)
    tables = sampling_tables(
        rows, exchange,
        negative_power=settings["negative_power"], allow_self_negative=settings["allow_self_negative"],
    )  # fmt: skip
    batch, allow = settings["batch_size"], settings["allow_self_negative"]
    share = share_of(batch, exchange.rank, exchange.ranks)
    make = BatchMaker(rows, tables, share, batch, allow_self_negative=allow, seed=SEED)
    model = ShardedModel(rows.attributes, rows.nodes, settings, exchange)
    model.start(settings, SEED)
    step = CPUStep(model, kernel_settings(settings), batch, len(share))
    if rows.exchange.ranks > 1:  # batches and steps use the same process group, so no batch is prepared during a step
        return model, [float(step(make(number))) for number in range(STEPS)]
    with Prefetch(make, STEPS) as ahead:
        return model, [float(step(ahead(number))) for number in range(STEPS)]


def main(output: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    exchange, shards, found = Exchange(), MemoryShards(graph(), 3), {}
    for form, rows in (("local", GraphRows(shards)), ("ranged", GraphRows(shards, exchange))):
        for name in CASES if form == "local" else ("max", "large"):
            with cpu.threads(1):
                model, losses = train(name, rows, exchange)
            for field, array in model.whole()._asdict().items():
                found[f"{form}/{name}/{field}"] = array
            found[f"{form}/{name}/losses"] = np.array(losses)
    if exchange.rank == 0:
        np.savez(output / f"{exchange.ranks}.npz", **found)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave()
