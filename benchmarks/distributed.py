"""Compare distributed training with one rank on an NVIDIA GPU (NCCL) with plain training, by phase.

    python benchmarks/distributed.py [--nodes 1000000] [--batch 65536] [--steps 60] [--output FILE]

Needs torch, triton, torchrec and fbgemm-gpu. Both train the default's learned part from the same triplets.
"""

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch
from torch import distributed

from neural_brane import AttributedGraph, NeuralBrane, synthetic
from neural_brane.distributed.batches import share_of
from neural_brane.distributed.exchange import Exchange
from neural_brane.distributed.gpu import DeviceBatches, GPUStep
from neural_brane.distributed.model import ShardedModel
from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic
from neural_brane.kernels import gpu
from neural_brane.kernels.model import bags_of
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.methods.neural_brane.training import initial_model
from neural_brane.sampling.triplets_gpu import TripletSampler

SEED = 0


def clock(task: Callable[[], object]) -> float:
    """Return the seconds until all kernels that a task launches on the GPU have ended."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    task()
    torch.cuda.synchronize()
    return time.perf_counter() - start


class Phases:
    """Measure the milliseconds of the GPU and of the host by phase; events are evaluated after the run."""

    def __init__(self) -> None:
        self.events: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = defaultdict(list)
        self.host: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the launches of the block as those of a phase."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start = time.perf_counter()
        begin.record()
        yield
        end.record()
        self.host[name] += time.perf_counter() - start
        self.events[name].append((begin, end))

    def means(self) -> dict[str, dict[str, float]]:
        """Return the milliseconds per step of each phase, on the GPU and on the host."""
        torch.cuda.synchronize()
        return {
            name: {
                "gpu_ms": float(np.mean([begin.elapsed_time(end) for begin, end in pairs])),
                "host_ms": 1000 * self.host[name] / len(pairs),
            }
            for name, pairs in self.events.items()
        }


def plain(graph: AttributedGraph, settings: dict, steps: int) -> dict:
    """Measure plain training, with triplets drawn on the GPU and captured launches."""
    batch = settings["batch_size"]
    bags = gpu.place(bags_of(graph.attributes)), gpu.place(bags_of(graph.adjacency))
    sampler = TripletSampler(graph.adjacency, placed=bags[1], device=gpu.DEVICE, seed=SEED, **options(settings))
    model = gpu.place(initial_model(graph, settings, SEED))
    trainer = gpu.Trainer(model, *bags, kernel_settings(settings), batch, steps=steps)

    def train(first: int, count: int) -> np.ndarray:
        return trainer(sampler.draw(first * batch, count * batch).view(count, batch, 3))

    losses = train(0, steps)
    train(steps, steps)  # captures the launches
    seconds = clock(lambda: train(2 * steps, steps))
    return {"triplets_per_second": steps * batch / seconds, "ms": 1000 * seconds / steps, "losses": losses}


def by_ranks(graph: AttributedGraph, settings: dict, steps: int) -> dict:
    """Measure distributed training; phases are measured in other steps, because measuring takes time."""
    batch, exchange = settings["batch_size"], Exchange()
    share = share_of(batch, exchange.rank, exchange.ranks)
    batches = DeviceBatches(graph.attributes, graph.adjacency, share, batch, seed=SEED, **options(settings))
    model = ShardedModel(graph.attributes.shape[1], len(graph), settings, exchange)
    model.start(settings, SEED)
    step = GPUStep(model, kernel_settings(settings), batch, len(share), nullcontext, batches.local)
    losses: list[torch.Tensor] = []

    def train(first: int, phases: Phases | None = None) -> None:
        for number in range(first, first + steps):
            if phases is None:
                losses.append(step(batches(number)))
                batches.prepare(number + 1)
                continue
            with phases("renumber"):
                made = batches(number)
            losses.append(step(made))
            with phases("draw and dedup, ahead"):
                batches.prepare(number + 1)

    train(0)
    seconds = clock(lambda: train(steps))
    step.phase = phases = Phases()
    train(2 * steps, phases)
    found = torch.stack(losses[:steps]).cpu().numpy()
    rows = [len(ids) for ids in batches(0).ids]
    return {
        "triplets_per_second": steps * batch / seconds,
        "ms": 1000 * seconds / steps,
        "phases": phases.means(),
        "rows": rows,
        "losses": found,
    }


def options(settings: dict) -> dict:
    """Return the settings that affect which triplets are drawn."""
    return {name: settings[name] for name in ("negative_power", "allow_self_negative")}


def main() -> None:
    """Measure both kinds of training, print the results and write them if a file is given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=65_536)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--dim", type=int, default=150)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29511"}.items():
        os.environ.setdefault(name, value)
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    distributed.init_process_group("nccl")
    graph = synthetic(given.nodes)
    settings = NeuralBrane(dim=given.dim, batch_size=given.batch).parameters_for(graph)
    settings |= {"dim": settings["dim"] - settings["spectral_dim"]}
    one = plain(graph, settings, given.steps)
    ours = by_ranks(graph, settings, given.steps)
    apart = float(abs(one.pop("losses")[:20] - ours.pop("losses")[:20]).max())
    found = {
        "machine": describe_machine(), "torch": torch.__version__, "nodes": given.nodes, "batch": given.batch,
        "learned_dim": settings["dim"], "attribute_dim": settings["attribute_dim"], "plain": one, "distributed": ours,
        "share": ours["triplets_per_second"] / one["triplets_per_second"], "losses_differ_by": apart,
    }  # fmt: skip
    text = json.dumps(found, indent=1, default=str)
    if given.output:
        with atomic(given.output) as draft:
            draft.write_text(text + "\n")
    print(text)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
