"""A training step on the CPU against its floor and against idiomatic PyTorch, all in one run on all cores.

    python benchmarks/cpu_step.py [--json] [--datasets citeseer caltech36 arnetminer] [--rounds 15]

One step is a batch of 100 triplets at dim 150, hidden 150. Per dataset it prints, in microseconds,

    step_us     one step of the default recipe
    floor_us    the step's three matrix products by NumPy, plus a read of the same rows that keeps only their maximum
    torch_us    EmbeddingBag(mode="max"), autograd and SGD, with the bags made ready beforehand; needs torch
    sample_us   drawing the step's triplets

and their ratios over_floor, faster_than_torch and sampling_share. The contenders take turns, round by round, and
each is judged by its best round, so that a machine's other work weighs on all alike.
"""

import argparse
import json
import time
from collections.abc import Callable

import numba
import numpy as np
from machine import describe_machine
from numba import prange

from neural_brane import AttributedGraph, NeuralBrane, load
from neural_brane.kernels import cpu
from neural_brane.kernels.types import Bags
from neural_brane.sampling.triplets import TripletSampler

STEPS = 100
BATCH = 100


@numba.njit(parallel=True)
def read_maximum(indptr, indices, table, nodes, best):
    """Only read the rows: the largest entry of each dimension into best (slots, d), no winners."""
    for slot in prange(len(nodes)):
        for c in range(table.shape[1]):
            best[slot, c] = -np.inf
        for k in range(indptr[nodes[slot]], indptr[nodes[slot] + 1]):
            row = indices[k]
            for c in range(table.shape[1]):
                best[slot, c] = table[row, c] if table[row, c] > best[slot, c] else best[slot, c]


def floor(method: NeuralBrane, bags: list[Bags], triplets: np.ndarray) -> Callable[[], None]:
    """The least a step can do: three matrix products and a read of the rows."""
    model = method.model_
    rng = np.random.default_rng(0)
    hidden, dim = model.weight.shape
    f = rng.standard_normal((3 * BATCH, dim), np.float32)
    h, df = np.empty((3 * BATCH, hidden), np.float32), np.empty_like(f)
    dw = np.empty_like(model.weight)
    tables = [model.attribute_table, model.neighbour_table]
    best = [np.empty((3 * BATCH, table.shape[1]), np.float32) for table in tables]
    nodes = np.ascontiguousarray(triplets.transpose(0, 2, 1).reshape(STEPS, -1))

    def run() -> None:
        for step in range(STEPS):
            np.dot(f, model.weight.T, out=h)
            np.dot(h, model.weight, out=df)
            np.dot(h.T, f, out=dw)
            h[:] = 0.01
            for bag, table, out in zip(bags, tables, best, strict=True):
                read_maximum(bag.indptr, bag.indices, table, nodes[step], out)

    return run


def torch_step(method: NeuralBrane, bags: list[Bags], triplets: np.ndarray) -> Callable[[], None] | None:
    """The same training as a PyTorch user would write it."""
    try:
        import torch
    except ImportError:
        return None
    model, settings = method.model_, method.settings_
    widths = settings["attribute_dim"], settings["dim"] - settings["attribute_dim"]
    tables = torch.nn.ModuleList(
        torch.nn.EmbeddingBag.from_pretrained(torch.tensor(table[:, :width]), freeze=False, mode="max")
        for table, width in zip(model[:2], widths, strict=True)
    )
    layer = torch.nn.Linear(*reversed(model.weight.shape), bias=False)
    optimiser = torch.optim.SGD([*tables.parameters(), *layer.parameters()], lr=settings["learning_rate"])
    nodes = triplets.transpose(0, 2, 1).reshape(STEPS, -1)
    batches = [[_flat_bags(bag, batch) for bag in bags] for batch in nodes]

    def run() -> None:
        for batch in batches:
            pooled = [table(rows, starts) for table, (rows, starts) in zip(tables, batch, strict=True)]
            hidden = torch.relu(layer(torch.cat(pooled, dim=1)))
            h_u, h_i, h_j = hidden.split(BATCH)
            loss = -torch.nn.functional.logsigmoid((h_u * (h_i - h_j)).sum(1)).mean()
            loss = loss + settings["l2"] * hidden.square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return run


def _flat_bags(bags: Bags, nodes: np.ndarray):
    """The rows of some nodes in one tensor, and where each node's begin."""
    import torch

    rows = [bags.indices[bags.indptr[node] : bags.indptr[node + 1]] for node in nodes]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])[:-1]])
    return torch.tensor(np.concatenate(rows), dtype=torch.int64), torch.tensor(starts)


def measure(graph: AttributedGraph, rounds: int) -> dict[str, object]:
    """Best time per step of every contender, and the ratios."""
    method = NeuralBrane(seed=0, epochs=1, batches_per_epoch=STEPS).fit(graph)
    bags = [Bags(matrix.indptr.astype(np.int64), matrix.indices) for matrix in (graph.attributes, graph.adjacency)]
    sampler = TripletSampler(graph.adjacency, negative_power=method.settings_["negative_power"], seed=0)
    triplets = sampler.draw(0, STEPS * BATCH).reshape(STEPS, BATCH, 3)
    settings = method.kernel_settings_
    contenders = {
        "step": lambda: cpu.train(method.model_, *bags, triplets, settings),
        "floor": floor(method, bags, triplets),
        "sample": lambda: sampler.draw(0, STEPS * BATCH),
        "torch": torch_step(method, bags, triplets),
    }
    best = {name: np.inf for name, run in contenders.items() if run}
    for round_ in range(rounds + 1):
        for name in best:
            if name == "torch" and round_ > 3:
                continue  # far slower than the rest: three rounds tell
            start = time.perf_counter()
            contenders[name]()
            if round_ > 0:  # the first warms up
                best[name] = min(best[name], (time.perf_counter() - start) / STEPS * 1e6)
    figures: dict[str, object] = {f"{name}_us": round(value, 1) for name, value in best.items()}
    figures["over_floor"] = round(best["step"] / best["floor"], 2)
    figures["sampling_share"] = round(best["sample"] / best["step"], 3)
    figures["faster_than_torch"] = round(best["torch"] / best["step"], 1) if "torch" in best else None
    return {"dataset": graph.name, "digest": graph.digest(), "threads": numba.get_num_threads()} | figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--datasets", nargs="+", default=["citeseer", "caltech36", "arnetminer"])
    parser.add_argument("--rounds", type=int, default=15, help="how often the contenders take turns")
    options = parser.parse_args()
    results = [measure(load(name), options.rounds) for name in options.datasets]
    if options.json:
        print(json.dumps({"machine": describe_machine(), "results": results}, indent=1))
        return
    for result in results:
        print("  ".join(f"{name} {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
