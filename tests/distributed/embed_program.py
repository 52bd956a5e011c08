"""The program of test_embedding.py: two ranks embed a folder of shards; then one rank resumes, and uses Triton."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
from embed_cases import CASES, EVERY, GPU_BATCH, GPU_CASES, GPU_STEPS, RESUMED, graph
from engine_cases import SEED, settings_of
from leaving import leave

from neural_brane import NeuralBrane
from neural_brane.distributed.embedding import embed_shards
from neural_brane.distributed.exchange import Exchange
from neural_brane.distributed.gpu import prepare_gpu
from neural_brane.distributed.launch import join
from neural_brane.distributed.model import ShardedModel
from neural_brane.files.graphs.shards import MemoryShards
from neural_brane.methods.neural_brane.parts import kernel_settings


def embed_by_two(job, folder, output):
    for name, parameters in CASES.items():
        embed_shards(folder, output / name, job=job, **parameters)
    embed_shards(folder, output / "by range", job=job, by_range=True, **CASES["default"])
    begun = CASES[RESUMED] | {"epochs": 1}
    embed_shards(folder, output / "begun", job=job, checkpoint=output / "kept", checkpoint_every=EVERY, **begun)
    fitted = NeuralBrane(device="distributed", **CASES["default"]).fit_transform(graph())
    np.save(output / f"fitted-{job.rank}.npy", fitted.vectors)


def resume_alone(job, folder, output):
    lines: list[str] = []
    kept = {"checkpoint": output / "kept", "checkpoint_every": EVERY}
    embed_shards(folder, output / "resumed", job=job, print_line=lines.append, **kept, **CASES[RESUMED])
    (output / "lines.json").write_text(json.dumps(lines))
    found = {}
    for name in GPU_CASES:
        model, losses = train_by_triton(name)
        found |= {f"{name}/{field}": array for field, array in model._asdict().items()}
        found[f"{name}/losses"] = np.array(losses)
    np.savez(output / "triton.npz", **found)


def train_by_triton(name):
    """Return the model after some steps of the GPU kernels in Triton's interpreter, and the losses."""
    settings, shards = settings_of(name) | {"batch_size": GPU_BATCH}, MemoryShards(graph(), 3)
    model = ShardedModel(shards.attributes, shards.nodes, settings, Exchange())
    model.start(settings, SEED)
    batches, step, _ = prepare_gpu(shards, model, kernel_settings(settings), settings, SEED, nullcontext)
    losses = [float(step(batches(number))) for number in range(GPU_STEPS)]
    return model.whole(), losses


if __name__ == "__main__":
    with join() as own:
        program = embed_by_two if own.ranks == 2 else resume_alone
        program(own, *(Path(argument) for argument in sys.argv[1:]))
    leave()
