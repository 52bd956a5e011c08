"""Measure a training step on the CPU against its lower bound and against idiomatic PyTorch, on all cores.

    python benchmarks/cpu_step.py [--json] [--datasets citeseer caltech36 arnetminer] [--batches 100 4000] [--rounds 8]

One step is a batch of triplets at dim 150, hidden 150 (--dim). Prints for each dataset and batch, in microseconds,

    step_us     one step of the default recipe
    floor_us    the lower bound: products_us (the step's three matrix products by NumPy) + reads_us (reading the same
                rows and keeping only their maximum), for every distinct node of large batches and every slot of small
    torch_us    EmbeddingBag(mode="max"), autograd and SGD, with the bags prepared in advance; needs torch
    sample_us   drawing the step's triplets

and their ratios over_floor, faster_than_torch and sampling_share. PyTorch pools every slot. The programs take turns,
and the best of many equally long time windows counts, so that other work on the machine affects all of them alike.
"""

import argparse
import json
import time
from collections.abc import Callable

import numba
import numpy as np
from alone import ALONE
from numba import prange

from neural_brane import AttributedGraph, NeuralBrane, load
from neural_brane.experiments.store import describe_machine
from neural_brane.kernels import cpu
from neural_brane.kernels.cpu import LARGE_BATCH
from neural_brane.kernels.model import Bags
from neural_brane.sampling.triplets import TripletSampler

TRIPLETS = 5000  # triplets in a run, unless one batch is larger
BATCHES = {"arnetminer": [100, 4000, 16_000]}  # defaults of --batches for some datasets
USUAL_BATCHES = [100, 4000]  # default of --batches for the others
READ_TASKS = 4
WINDOW = 0.03  # seconds of a time window
WINDOWS = 15  # windows in a row; after the first few, caches are warm and threads run
PAUSE = 0.02  # seconds between two programs, so that the threads of the first stop spinning


@numba.njit
def read_rows(bags, table, node, largest):
    """Read one node's rows and keep only the largest entry of each dimension."""
    width = table.shape[1]
    for c in range(width):
        largest[c] = -np.inf
    start, stop = bags.indptr[node], bags.indptr[node + 1]
    for k in range(start, stop, 2):  # two rows at a time, as the kernel does
        row, next_row = bags.indices[k], bags.indices[min(k + 1, stop - 1)]
        for c in range(width):
            value = table[next_row, c] if table[next_row, c] > table[row, c] else table[row, c]
            largest[c] = value if value > largest[c] else largest[c]


@numba.njit(parallel=True)
def read_batch(attribute_bags, attribute_table, neighbour_bags, neighbour_table, nodes, largest):
    """Read both tables' rows of nodes (k,), with one task per row of `largest`."""
    for task in prange(len(largest)):
        own = largest[task]
        for k in range(task * len(nodes) // len(largest), (task + 1) * len(nodes) // len(largest)):
            read_rows(attribute_bags, attribute_table, nodes[k], own)
            read_rows(neighbour_bags, neighbour_table, nodes[k], own)


def vectors_of(triplets: np.ndarray) -> list[np.ndarray]:
    """Return the nodes whose vectors each step computes: distinct nodes of a large batch, all slots of a small one."""
    is_large = triplets.shape[1] >= LARGE_BATCH
    return [np.unique(batch) if is_large else batch.ravel() for batch in triplets]


def products(method: NeuralBrane, vectors: list[np.ndarray]) -> Callable[[], None]:
    """Return a function that computes the three matrix products of every step with NumPy."""
    weight = method.model_.weight
    rng = np.random.default_rng(0)
    most = max(map(len, vectors))
    f = rng.standard_normal((most, weight.shape[1]), np.float32)
    dz = rng.standard_normal((most, weight.shape[0]), np.float32)
    h, df, dw = np.empty_like(dz), np.empty_like(f), np.empty_like(weight)

    def run() -> None:
        for nodes in vectors:
            k = len(nodes)
            np.dot(f[:k], weight.T, out=h[:k])
            np.dot(dz[:k], weight, out=df[:k])
            np.dot(dz[:k].T, f[:k], out=dw)

    return run


def reads(method: NeuralBrane, bags: list[Bags], vectors: list[np.ndarray]) -> Callable[[], None]:
    """Return a function that reads the rows of every step's nodes from both tables."""
    tables = method.model_[:2]
    largest = np.empty((READ_TASKS, max(table.shape[1] for table in tables)), np.float32)

    def run() -> None:
        for nodes in vectors:
            read_batch(bags[0], tables[0], bags[1], tables[1], nodes, largest)

    return run


def torch_step(method: NeuralBrane, bags: list[Bags], triplets: np.ndarray) -> Callable[[], None] | None:
    """Return a function that trains as a PyTorch user would write it, or None without torch."""
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
    nodes = triplets.transpose(0, 2, 1).reshape(len(triplets), -1)
    batches = [[_flat_bags(bag, batch) for bag in bags] for batch in nodes]

    def run() -> None:
        for batch in batches:
            pooled = [table(rows, starts) for table, (rows, starts) in zip(tables, batch, strict=True)]
            hidden = torch.relu(layer(torch.cat(pooled, dim=1)))
            h_u, h_i, h_j = hidden.split(triplets.shape[1])
            loss = -torch.nn.functional.logsigmoid((h_u * (h_i - h_j)).sum(1)).mean()
            loss = loss + settings["l2"] * hidden.square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    return run


def _flat_bags(bags: Bags, nodes: np.ndarray):
    """Return the rows of nodes in one tensor, and the start of each node's rows."""
    import torch

    rows = [bags.indices[bags.indptr[node] : bags.indptr[node + 1]] for node in nodes]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])[:-1]])
    return torch.tensor(np.concatenate(rows), dtype=torch.int64), torch.tensor(starts)


def measure(graph: AttributedGraph, batch: int, dim: int, rounds: int) -> dict[str, object]:
    """Return the best time per step of every program, and the ratios."""
    steps = max(1, TRIPLETS // batch)
    method = NeuralBrane(dim=dim, seed=0, epochs=1, batches_per_epoch=steps, batch_size=batch, **ALONE).fit(graph)
    bags = [Bags(matrix.indptr.astype(np.int64), matrix.indices) for matrix in (graph.attributes, graph.adjacency)]
    sampler = TripletSampler(graph.adjacency, negative_power=method.settings_["negative_power"], seed=0)
    triplets = sampler.draw(0, steps * batch).reshape(steps, batch, 3)
    vectors = vectors_of(triplets)
    trainer = cpu.Trainer(method.model_, *bags, method.kernel_settings_, batch)
    contenders = {
        "step": lambda: trainer(triplets),
        "products": products(method, vectors),
        "reads": reads(method, bags, vectors),
        "sample": lambda: sampler.draw(0, steps * batch),
        "torch": torch_step(method, bags, triplets),
    }
    best = _take_turns(contenders, rounds, steps)
    best["floor"] = best["products"] + best["reads"]
    figures: dict[str, object] = {f"{name}_us": round(value, 1) for name, value in best.items()}
    figures["over_floor"] = round(best["step"] / best["floor"], 2)
    figures["sampling_share"] = round(best["sample"] / best["step"], 3)
    figures["faster_than_torch"] = round(best["torch"] / best["step"], 1) if "torch" in best else None
    case = {"dataset": graph.name, "digest": graph.digest(), "threads": numba.get_num_threads(), "dim": dim}
    return case | {"batch": batch, "vectors": round(np.mean([len(nodes) for nodes in vectors]))} | figures


def _take_turns(contenders: dict[str, Callable[[], object] | None], rounds: int, steps: int) -> dict[str, float]:
    """Return the best microseconds per step of each program."""
    runs = {name: run for name, run in contenders.items() if run}
    repeats = {name: _repeats(run) for name, run in runs.items()}
    best = dict.fromkeys(runs, np.inf)
    for _ in range(rounds):
        for name, run in runs.items():
            time.sleep(PAUSE)
            fastest = min(_seconds(run, repeats[name]) for _ in range(WINDOWS))
            best[name] = min(best[name], fastest / steps * 1e6)
    return best


def _seconds(run: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def _repeats(run: Callable[[], object]) -> int:
    """Return the number of calls that fill a window."""
    run()
    return max(1, round(WINDOW / _seconds(run, 1)))


def main() -> None:
    """Measure and print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--datasets", nargs="+", default=["citeseer", "caltech36", "arnetminer"])
    parser.add_argument("--rounds", type=int, default=8, help="how many times the programs take turns")
    parser.add_argument("--batches", nargs="+", type=int, help="triplets per batch")
    parser.add_argument("--dim", type=int, default=150)
    options = parser.parse_args()
    results = [
        measure(load(name), batch, options.dim, options.rounds)
        for name in options.datasets
        for batch in options.batches or BATCHES.get(name, USUAL_BATCHES)
    ]
    if options.json:
        print(json.dumps({"machine": describe_machine(), "results": results}, indent=1))
        return
    for result in results:
        print("  ".join(f"{name} {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
