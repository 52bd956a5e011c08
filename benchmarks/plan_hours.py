"""From bytes to hours: the speed that was measured, the network that it asks for, and what slower ones cost."""

import json
from pathlib import Path
from typing import Any

from plan_cases import ALONE, MODELS, SHARE, shapes
from plan_rows import Shape, even, foretold, named

from neural_brane import NeuralBrane
from neural_brane.distributed.estimate import row_bytes
from neural_brane.linalg.eigenvectors import ITERATIONS
from neural_brane.methods.training import spectral_width

RESULTS = Path(__file__).parent / "results"
TRIPLETS_PER_NODE = 300
NETWORKS = (10, 25, 100, 400, 3_600)  # Gbit/s that a rank can send; the last is NVLink's, within a host
HOURS_OF = (64, 256)  # ranks
H200, CORES = "NVIDIA H200", "2 cores"
MEASURED_NODES, CPU_BATCH = 1_000_000, 100  # of the graph in gpu.json; triplets of a step in scale.json
# Hosts that are assumed: ranks on each, bytes and network of a rank, and how many times as fast as measured a rank is.
HOSTS = {
    "8 H200 of 141 GB, 400 Gbit/s each": {"ranks": 8, "bytes": 141e9, "gbit": 400, "machine": H200, "times": 1},
    "64 cores, 512 GB, 100 Gbit/s": {"ranks": 1, "bytes": 512e9, "gbit": 100, "machine": CORES, "times": 32},
}


def spectral_bytes(shape: Shape, settings: dict[str, Any], ranks: int) -> float:
    """What a rank sends over all products, in float32: each row that a product needs once, or each sum that it makes.

    A product with attributes fetches the rows of a rank's distinct attributes; its transpose sends sums for as many.
    """
    if not settings["spectral_dim"]:
        return 0.0
    hops, links = len(settings["hop_weights"]), (shape.degrees * shape.nodes).sum()
    entries = (shape.bags * shape.nodes).sum()
    neighbours = named(shape.degrees, shape.nodes, links / ranks)
    words = named(shape.frequencies, shape.attributes, entries / ranks)
    fetched = (2 * (hops - 1) + 2 * hops) * neighbours + 2 * hops * words
    width = spectral_width(int(shape.nodes.sum()), settings["spectral_dim"])
    return (ITERATIONS + 0.5) * fetched * 4 * width * (ranks - 1) / ranks


def speeds() -> dict[str, dict]:
    """Triplets a second that one rank has been measured at, alone, with the model ALONE on an even graph."""
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
    """That pooling reads for a triplet: the bags of every distinct node of a batch."""
    own, other = row_bytes(NeuralBrane(**MODELS[model]).parameters_in_force())
    batch = foretold(shape, triplets)
    return (batch.attribute_entries * own + batch.neighbour_entries * other) / triplets


def networks(sent: list[dict]) -> list[dict]:
    """Gbit/s for each rank at which sending takes no longer than computing, by the measured speeds.

    They were measured on even graphs; where others, or another model, pool more bytes for a triplet, they are taken to
    need that much more time, and where they pool fewer, no less.
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
    """Hours of all triplets by the network of a rank, and of the spectral part's traffic."""
    rates = _rates(needed)
    return [
        {key: one[key] for key in ("nodes", "shape", "model", "ranks")}
        | {"machine": machine, "gbit_per_second": gbit} | _hours(one, rates[_key(one, machine)], gbit)
        for one in sent if one["ranks"] in HOURS_OF
        for machine in speeds()
        for gbit in NETWORKS
    ]  # fmt: skip


def hosts(sent: list[dict], held: list[dict], needed: list[dict]) -> list[dict]:
    """The fewest hosts of each kind whose memory holds every rank, and their hours; `hosts` is None where none do."""
    rates = _rates(needed)
    found: dict[tuple, dict] = {}
    for kind, host in HOSTS.items():
        for one, memory in zip(sent, held, strict=True):
            case = {key: one[key] for key in ("nodes", "shape", "model")} | {"host": kind, "hosts": None}
            earlier = found.setdefault(tuple(case.values()), case)
            # Sampling tables are made in a host's own memory, not in that of its GPUs.
            most = max(count for moment, count in memory["at_most"].items() if moment != "sampling tables")
            if earlier["hosts"] or most > host["bytes"]:
                continue
            rate = host["times"] * rates[_key(one, host["machine"])]
            earlier |= {"hosts": one["ranks"] // host["ranks"], "ranks": one["ranks"], "bytes": most}
            earlier |= _hours(one, rate, host["gbit"])
    return list(found.values())


def _hours(one: dict, rate: float, gbit: float) -> dict:
    own = TRIPLETS_PER_NODE * one["nodes"] / one["ranks"]  # triplets of a rank
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
