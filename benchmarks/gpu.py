"""Measure Neural-Brane on one NVIDIA GPU: speed of schedules and batches, hubs, many nodes, quality, and PyTorch.

    python benchmarks/gpu.py [--only [schedule default large hubs huge quality torch]] [--json] [--output FILE]

Needs numpy, scipy, torch and triton, and scikit-learn for scores. The script blocks the import of packages that only
the CPU or the command line needs. Datasets are files NAME.npz in the folder NEURAL_BRANE_DATA, written by
`write_graph`. To compare two versions of the code, run `--only schedule large` on both with different `--output`.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    for package in ("numba", "polars", "typer", "rich", "pooch"):
        sys.modules[package] = None  # type: ignore[assignment]

import gpu_rivals
import numpy as np
import torch
from alone import SCHEDULE
from gpu_cases import Case

from neural_brane import AttributedGraph, NeuralBrane, synthetic
from neural_brane.experiments.store import describe_machine
from neural_brane.files.graphs.npz import read_graph_npz
from neural_brane.files.storage import atomic
from neural_brane.kernels import gpu
from neural_brane.sampling.triplets_gpu import TripletSampler

DATASETS = ("citeseer", "caltech36", "reed98", "arnetminer")
REAL = (*DATASETS, "debian-packages")
RESULTS = Path(__file__).parent / "results"
LARGE_BATCH = 65_536


def dataset(name: str) -> AttributedGraph:
    """Return one of the published graphs."""
    return read_graph_npz(Path(os.environ.get("NEURAL_BRANE_DATA", "."), f"{name}.npz"))


def clock(task: Callable[[], object]) -> float:
    """Return the seconds until all kernels that a task launches on the GPU have ended."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    task()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def schedule() -> dict[str, dict]:
    """Measure `fit` with the paper's schedule, 30,000 batches of 100; kernels are already compiled."""
    rows = {}
    for name in DATASETS:
        graph = dataset(name)
        row: dict[str, object] = {}
        for kind, deterministic in (("seconds", False), ("deterministic_seconds", True)):
            settings = SCHEDULE | {"device": "cuda", "deterministic": deterministic, "seed": 0}
            method = NeuralBrane(**settings)
            NeuralBrane(**settings | {"epochs": 1}).fit(graph)
            row[kind] = sorted(clock(lambda m=method, g=graph: m.fit(g)) for _ in range(3))[1]
            row["loss" if not deterministic else "deterministic_loss"] = method.loss_history_[-1]
        again = NeuralBrane(**settings).fit(graph)
        row["same_bits"] = bool((again.embedding_.vectors == method.embedding_.vectors).all())
        rows[name] = row
    return rows


def default() -> dict[str, float]:
    """Measure the default from the graph to the vectors; kernels are already compiled."""
    found = {}
    for name in DATASETS:
        graph, method = dataset(name), NeuralBrane(device="cuda", seed=0)
        method.fit(graph)
        found[name] = sorted(clock(lambda m=method, g=graph: m.fit_transform(g)) for _ in range(5))[2]
    return found


def bandwidth() -> float:
    """Return the bytes per second, read and written, of a large copy within the GPU's memory."""
    source = torch.rand(2**30, device="cuda")
    target = torch.empty_like(source)
    target.copy_(source)
    return 2 * source.nbytes * 5 / clock(lambda: [target.copy_(source) for _ in range(5)])


def throughput(case: Case, batch: int, **options: Any) -> dict:
    """Return triplets drawn and trained per second, and the least bytes that pooling reads per step.

    options: options of `Trainer`.
    """
    trainer = gpu.Trainer(case.model, *case.bags, case.kernel_settings(batch), batch, **options)
    steps = 2 * trainer.group

    def run(first: int) -> None:
        trainer(case.sampler.draw(first * batch, steps * batch).view(steps, batch, 3))

    for warm in range(2):
        run(warm * steps)
    seconds = sorted(clock(lambda k=k: run(k * steps)) for k in range(2, 5))[1] / steps
    rows = trainer.plan.sizes[: trainer.group].sum((0, 2)) / trainer.group
    floor = case.floor_bytes(rows.tolist())
    return {"batch": batch, "triplets_per_second": batch / seconds, "floor_bytes_per_step": floor}


def large() -> dict:
    """Measure large batches on a million nodes, compared with the time of the least reads and with PyTorch."""
    graph = synthetic(1_000_000)
    speed = bandwidth()
    rows = []
    for recipe in ("default", "released"):  # the recipes split a vector differently between attributes and neighbours
        case = Case.of(graph, recipe)
        found = [throughput(case, batch) for batch in (16_384, LARGE_BATCH, 262_144)]
        found.append(throughput(case, LARGE_BATCH, deterministic=True) | {"deterministic": True})
        found[1]["torch_triplets_per_second"] = case.torch_speed(LARGE_BATCH, 42)
        rows += [{"recipe": recipe} | row for row in found]
    for row in rows:
        row["share_of_floor"] = row["triplets_per_second"] / row["batch"] * row["floor_bytes_per_step"] / speed
    return {"graph": repr(graph), "copy_bytes_per_second": speed, "rows": rows}


def hubs() -> dict:
    """Measure a graph with hubs: with bags in pieces and sums within tiles, with pieces only, with neither."""
    graph = dataset("debian-packages")
    case = Case.of(graph)
    never = 2**40
    pieces_alone = gpu.Limits(crowded_slots=never)
    neither = pieces_alone._replace(hub_rows=never, hub_rows_at_large_batches=never)
    rows = []
    for batch in (100, LARGE_BATCH):
        row: dict[str, object] = {"batch": batch}
        for kind, limits in (("both", gpu.Limits()), ("pieces_alone", pieces_alone), ("neither", neither)):
            row[kind] = throughput(case, batch, limits=limits)["triplets_per_second"]
        row["deterministic"] = throughput(case, batch, deterministic=True)["triplets_per_second"]
        rows.append(row)
    return {"graph": repr(graph), "longest": int(case.bags[1].indptr.diff().max()), "triplets_per_second": rows}


def plain_torch() -> dict:
    """Measure a step in PyTorch at batch 100, and how many times faster the kernels are at large batches."""
    rows: dict[str, dict] = {}
    for name in REAL:
        case = Case.of(dataset(name))
        rows[name] = {"step_seconds": 100 / case.torch_speed(100, 60)}
        ours = throughput(case, LARGE_BATCH)["triplets_per_second"]
        rows[name]["times_faster_at_large_batch"] = ours / case.torch_speed(LARGE_BATCH, 12)
    return rows


def huge() -> dict:
    """Compare peak memory with that of tables and graph, for 50 million nodes with 10 neighbours and 10 attributes."""
    nodes, attributes = 50_000_000, 5_000_000
    start = time.perf_counter()
    attribute_bags, neighbour_bags, adjacency = gpu_rivals.block_model(nodes, attributes, degree=10, each=10)
    made = time.perf_counter() - start
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    sampler = TripletSampler(adjacency, placed=neighbour_bags)
    case = Case.made([attribute_bags, neighbour_bags], sampler, attributes)
    needed = sum(array.nbytes for array in (*case.model[:2], *attribute_bags, *neighbour_bags))
    row = throughput(case, LARGE_BATCH)
    used = torch.cuda.max_memory_allocated()
    figures = {
        "edges": adjacency.nnz // 2,
        "tables_and_graph_bytes": needed,
        "peak_bytes": used,
        "ratio": used / needed,
    }
    return {"nodes": nodes, "seconds_to_make": made} | figures | row


def score(name: str, seed: int, vectors: np.ndarray) -> float:
    """Return Macro-F1 at 70 % over ten random splits, as `quality.py` scores vectors of the CPU."""
    from neural_brane.evaluate.classify import classify

    labels = dataset(name).labels
    return classify(vectors, labels, train=(0.7,), seed=seed, stratify=False).scores[0].macro.mean


def quality(seeds: int = 10) -> dict[str, dict]:
    """Return the mean Macro-F1 at 70 % and the mean last loss of the default recipe over seeds."""
    rows, tasks = {}, []
    for name in DATASETS:
        graph = dataset(name)
        methods = [NeuralBrane(device="cuda", seed=seed).fit(graph) for seed in range(seeds)]
        tasks += [(name, seed, method.embedding_.vectors) for seed, method in enumerate(methods)]
        rows[name] = {"seeds": seeds, "loss": float(np.mean([method.loss_history_[-1] for method in methods]))}
    with ProcessPoolExecutor(min(14, os.cpu_count() or 1), get_context("spawn")) as pool:
        found = list(pool.map(score, *zip(*tasks, strict=True)))
    for name, row in rows.items():
        row["macro_f1"] = float(np.mean([value for value, task in zip(found, tasks, strict=True) if task[0] == name]))
    return rows


def on_cpu(name: str, seeds: int) -> dict[str, object]:
    """Return the same numbers for the CPU, from the results of `quality.py`."""
    cells = json.loads((RESULTS / "quality.json").read_text())["cells"]
    mine = [c for c in cells if (c["dataset"], c["recipe"]) == (name, "default") and c["seed"] < seeds]
    loss = float(np.mean([cell["losses"][-1] for cell in mine]))
    return {"seeds": len(mine), "loss": loss, "macro_f1": float(np.mean([cell["macro_f1"][2] for cell in mine]))}


def verdicts(results: dict) -> dict[str, list]:
    """Return for each claim the measured value, the bound, and True if the claim holds."""
    claims: dict[str, list] = {}

    def claim(name: str, value: float, bound: float, at_most: bool) -> None:
        claims[name] = [round(float(value), 4), f"{'≤' if at_most else '≥'} {bound}", bool((value <= bound) == at_most)]

    for name in DATASETS:
        seconds = results["schedule"][name]["seconds"]
        claim(f"{name}: seconds of the paper's schedule", seconds, 0.8 if name == "arnetminer" else 0.6, True)
        claim(f"{name}: times PyTorch, batch 100", results["torch"][name]["step_seconds"] * 30_000 / seconds, 20, False)
        gpu_s, cpu_s = results["quality"][name], on_cpu(name, results["quality"][name]["seeds"])
        claim(f"{name}: Macro-F1 from the CPU's", abs(gpu_s["macro_f1"] - cpu_s["macro_f1"]), 0.01, True)
        claim(f"{name}: last loss from the CPU's", abs(gpu_s["loss"] / cpu_s["loss"] - 1), 0.02, True)
    for name in REAL:
        claim(f"{name}: times PyTorch, batch 65,536", results["torch"][name]["times_faster_at_large_batch"], 5, False)
    for row in results["large"]["rows"]:
        if rival := row.get("torch_triplets_per_second"):
            case = f"a million nodes, {row['recipe']} recipe"
            claim(f"{case}: triplets per second", row["triplets_per_second"], 20e6, False)
            claim(f"{case}: share of the floor", row["share_of_floor"], 0.4, False)
            claim(f"{case}: times PyTorch, batch 65,536", row["triplets_per_second"] / rival, 5, False)
    claim("fifty million nodes: memory over tables and graph", results["huge"]["ratio"], 1.3, True)
    return claims


def show(results: dict) -> None:
    """Print every section, one line per row."""
    for section, value in results.items():
        print(section)
        for name, row in value.items() if isinstance(value, dict) else ():
            print(f"  {name}: {row}")


def keep(path: Path, results: dict) -> None:
    """Write the results."""
    with atomic(path) as draft:
        draft.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Measure the chosen sections and keep the results of the others."""
    sections = {
        "schedule": schedule, "default": default, "torch": plain_torch, "large": large, "hubs": hubs, "huge": huge,
        "quality": quality,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        nargs="*",
        choices=sections,
        default=list(sections),
        help="sections to measure; without names, only check the claims on stored results",
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "gpu.json")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.output.exists() else {}
    if options.only:
        gpu_names = {"gpu": torch.cuda.get_device_name(), "triton": gpu_rivals.triton_version()}
        results["machine"] = describe_machine() | gpu_names
    for name in options.only:
        begun = time.perf_counter()
        results[name] = sections[name]()
        print(f"{name}: measured in {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
        keep(options.output, results)
        torch.cuda.empty_cache()
    if all(name in results for name in sections):
        results["claims"] = verdicts(results)
        keep(options.output, results)
    print(json.dumps(results, indent=1, ensure_ascii=False)) if options.json else show(results)


if __name__ == "__main__":
    main()
