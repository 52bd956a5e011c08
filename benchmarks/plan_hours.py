"""Convert bytes to hours: measured speeds, the network that they need, and the hours with slower networks."""

import json
from pathlib import Path
from typing import Any

from plan_cases import ALONE, MODELS, SHARE, shapes
from plan_rows import Shape, distinct, even, expected

from neural_brane import NeuralBrane
from neural_brane.distributed.estimate import row_bytes
from neural_brane.linalg.eigenvectors import ITERATIONS
from neural_brane.methods.training import spectral_width

RESULTS = Path(__file__).parent / "results"
TRIPLETS_PER_NODE = 300
NETWORKS = (10, 25, 100, 400, 3_600)  # Gbit/s that a rank can send; the last is NVLink within a host
HOURS_OF = (64, 256)  # numbers of ranks
H200, CORES = "NVIDIA H200", "2 cores"
MEASURED_NODES, CPU_BATCH = 1_000_000, 100  # nodes of the graph in gpu.json; triplets per step in scale.json
# Each kind of host has a number of ranks, memory and network per rank, and a speed relative to the measured machine.
HOSTS = {
    "8 H200 of 141 GB, 400 Gbit/s each": {"ranks": 8, "bytes": 141e9, "gbit": 400, "machine": H200, "times": 1},
    "64 cores, 512 GB, 100 Gbit/s": {"ranks": 1, "bytes": 512e9, "gbit": 100, "machine": CORES, "times": 32},
}


def spectral_bytes(shape: Shape, settings: dict[str, Any], ranks: int) -> float:
    """Return the bytes that a rank sends in all matrix products of the spectral part, in float32.

    Each product fetches every row that it needs once, or sends every sum that it makes. A product with attributes
    fetches the rows of a rank's distinct attributes; its transpose sends sums for as many.
    """
    if not settings["spectral_dim"]:
        return 0.0
    hops, links = len(settings["hop_weights"]), (shape.degrees * shape.nodes).sum()
    entries = (shape.bags * shape.nodes).sum()
    neighbours = distinct(shape.degrees, shape.nodes, links / ranks)
    words = distinct(shape.frequencies, shape.attributes, entries / ranks)
    fetched = (2 * (hops - 1) + 2 * hops) * neighbours + 2 * hops * words
    width = spectral_width(int(shape.nodes.sum()), settings["spectral_dim"])
    return (ITERATIONS + 0.5) * fetched * 4 * width * (ranks - 1) / ranks


def speeds() -> dict[str, dict]:
    """Return the measured triplets per second of a single rank, with the model ALONE on an even graph."""
    gpu, cpu = (json.loads((RESULTS / f"{name}.json").read_text()) for name in ("gpu", "scale"))
    large = next(row for row in gpu["large"]["rows"]
                 if (row["recipe"], row["batch"]) == ("default", SHARE) and "deterministic" not in row)  # fmt: skip
    return {
        H200: {"triplets_per_second": large["triplets_per_second"], "source": "results/gpu.json",
               "nodes": MEASURED_NODES, "batch": SHARE},
        CORES: {"triplets_per_second": CPU_BATCH / cpu["result"]["step_us"] * 1e6, "source": "results/scale.json",
                "nodes": cpu["result"]["nodes"], "batch": CPU_BATCH, "processor": cpu["machine"]["processor"]},
    }  # fmt: skip


def pooled_bytes(model: str, shape: Shape, triplets: int) -> float:
    """Return the bytes that pooling reads per triplet: the bags of every distinct node of a batch."""
    own, other = row_bytes(NeuralBrane(**MODELS[model]).parameters_in_force())
    batch = expected(shape, triplets)
    return (batch.attribute_entries * own + batch.neighbour_entries * other) / triplets


def networks(sent: list[dict]) -> list[dict]:
    """Return the Gbit/s per rank at which sending takes as long as computing, at the measured speeds.

    Speeds were measured on even graphs. If a graph or model pools more bytes per triplet, its time is assumed to grow
    in proportion; if it pools fewer, the time is assumed equal.
    """
    found = []
    for one in sent:
        if one["ranks"] != HOURS_OF[0]:
            continue
        pooled = pooled_bytes(one["model"], shapes(one["nodes"])[one["shape"]], SHARE)
        for machine, speed in speeds().items():
            measured = pooled_bytes(ALONE, even(speed["nodes"]), speed["batch"])
            rate = speed["triplets_per_second"] * min(measured / pooled, 1.0)
            found.append({key: one[key] for key in ("nodes", "shape", "model", "ranks")}
                         | {"machine": machine, "triplets_per_second": rate,
                            "gbit_per_second": 8e-9 * rate * one["with_copies"],
                            "gbit_per_second_by_range": 8e-9 * rate * one["by_range"]})  # fmt: skip
    return found


def hours(sent: list[dict], needed: list[dict]) -> list[dict]:
    """Return the hours of all triplets, and of the spectral part's traffic, by the network of a rank."""
    rates = _rates(needed)
    return [
        {key: one[key] for key in ("nodes", "shape", "model", "ranks")}
        | {"machine": machine, "gbit_per_second": gbit} | _hours(one, rates[_key(one, machine)], gbit)
        for one in sent if one["ranks"] in HOURS_OF
        for machine in speeds()
        for gbit in NETWORKS
    ]  # fmt: skip


def hosts(sent: list[dict], held: list[dict], needed: list[dict]) -> list[dict]:
    """Return the fewest hosts of each kind with enough memory, and their hours; `hosts` is None if none suffice."""
    rates = _rates(needed)
    found: dict[tuple, dict] = {}
    for kind, host in HOSTS.items():
        for one, memory in zip(sent, held, strict=True):
            case = {key: one[key] for key in ("nodes", "shape", "model")} | {"host": kind, "hosts": None}
            earlier = found.setdefault(tuple(case.values()), case)
            # Sampling tables are made in the memory of the host, not of its GPUs.
            most = max(count for moment, count in memory["at_most"].items() if moment != "sampling tables")
            if earlier["hosts"] or most > host["bytes"]:
                continue
            rate = host["times"] * rates[_key(one, host["machine"])]
            earlier |= {"hosts": one["ranks"] // host["ranks"], "ranks": one["ranks"], "bytes": most}
            earlier |= _hours(one, rate, host["gbit"])
    return list(found.values())


def _hours(one: dict, rate: float, gbit: float) -> dict:
    own = TRIPLETS_PER_NODE * one["nodes"] / one["ranks"]  # triplets per rank
    computing = own / rate
    sending, spectral = (8 * count / (gbit * 1e9) for count in (own * one["by_range"], one["spectral_bytes"]))
    lengths = 8 * own * one["per_triplet"]["lengths"] / (gbit * 1e9)
    return {"learned": max(computing, sending) / 3600, "network_is_the_bound": sending > computing,
            "learned_without_lengths": max(computing, sending - lengths) / 3600,
            "spectral_traffic": spectral / 3600}  # fmt: skip


def _rates(needed: list[dict]) -> dict[tuple, float]:
    return {_key(one, one["machine"]): one["triplets_per_second"] for one in needed}


def _key(one: dict, machine: str) -> tuple:
    return one["nodes"], one["shape"], one["model"], machine
