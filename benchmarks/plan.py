"""Plan trainings of graphs that are too large for our machines: memory per rank, traffic, network and hours.

    python benchmarks/plan.py [--quality]

Nothing is trained. The rows that ranks request from each other are counted on batches of available graphs, and computed
from degrees for larger ones (`plan_rows.py`). Bytes follow from the formulas of `brane estimate --ranks`. Other scripts
have measured the time of a triplet on one machine (`plan_hours.py`). The script reads datasets from NEURAL_BRANE_DATA
and writes results/plan.json and results/plan.txt. With --quality, it instead trains debian-packages on shares of the
300 triplets per node, and adds the scores to the same files.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from plan_cases import MODELS, PLANNED, RANKS, SHARE, settings_of, shapes, sizes_of
from plan_hours import hosts, hours, networks, spectral_bytes, speeds
from plan_rows import Shape, counted, expected, power_law_graph, requested, unshared
from plan_text import render

from neural_brane import AttributedGraph, NeuralBrane, load, synthetic
from neural_brane.distributed.estimate import PROGRAM_BYTES, BatchRows, estimate_rank, traffic_of
from neural_brane.files.storage import atomic
from neural_brane.sampling.triplets import TripletSampler

RESULTS = Path(__file__).parent / "results"
GRAPHS = ("citeseer", "acm", "arnetminer", "debian-packages")
MADE = (10_000, 100_000, 1_000_000)  # nodes of made graphs, of both kinds
GROWTH = (10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
TRIPLETS = (256, 4_096, 65_536)  # triplets of a rank per step
LARGE = 90_000  # the balance between ranks is counted on graphs with at least so many nodes
BALANCED = (2, 8, 64)  # numbers of ranks
FRACTIONS = (0.03, 0.1, 0.3, 1.0)


def graphs() -> Iterator[tuple[str, AttributedGraph]]:
    """Yield the graphs on which rows are counted, one at a time."""
    for name in GRAPHS:
        yield name, load(name)
    for nodes in MADE:
        yield f"even, {nodes:,} nodes", synthetic(nodes, classes=1)
        yield f"power law, {nodes:,} nodes", power_law_graph(nodes)


def count() -> tuple[list[dict], list[dict]]:
    """Return the rows per triplet, counted and expected, and how evenly they fall on the ranks."""
    rows, balance = [], []
    for name, graph in graphs():
        sampler, shape = TripletSampler(graph.adjacency), Shape.of(graph)
        most = dict(zip(("attribute_rows", "neighbour_rows"), unshared(shape), strict=True))
        for triplets in TRIPLETS:
            found, guess = counted(graph, sampler, triplets), expected(shape, triplets)
            each = per_triplet(found)
            ratio = {key: getattr(guess, key) / getattr(found, key) for key in each}
            rows.append({"graph": name, "nodes": len(graph), "edges": graph.edges, "triplets": triplets,
                         "per_triplet": each, "foretold_over_counted": ratio, "unshared": most})  # fmt: skip
        if len(graph) >= LARGE:
            balance += [{"graph": name} | spread(graph, sampler, ranks) for ranks in BALANCED]
    return rows, balance


def spread(graph: AttributedGraph, sampler: TripletSampler, ranks: int) -> dict:
    """Return the most rows that one rank requests, and is asked for, over the mean, in one batch of SHARE triplets."""
    batch = sampler.draw(0, SHARE)
    found: dict = {"ranks": ranks}
    for kind, matrix in (("attribute_rows", graph.attributes), ("neighbour_rows", graph.adjacency)):
        table = requested(matrix, batch, ranks)
        per_rank = table.sum() / ranks
        found[kind] = {"busiest_asker": float(table.sum(axis=1).max() / per_rank),
                       "busiest_owner": float(table.sum(axis=0).max() / per_rank),
                       "away": float(1 - np.trace(table) / table.sum())}  # fmt: skip
    return found


def per_triplet(rows: BatchRows) -> dict[str, float]:
    """Return the rows of a share of a batch per triplet."""
    return {key: value / rows.triplets for key, value in rows._asdict().items() if key != "triplets"}


def grow() -> list[dict]:
    """Return the expected rows per triplet by the number of nodes."""
    found = []
    for nodes in GROWTH:
        for name, shape in shapes(nodes).items():
            for triplets in TRIPLETS:
                rows = expected(shape, triplets)
                each = per_triplet(rows)
                found.append({"shape": name, "nodes": nodes, "triplets": triplets, "per_triplet": each,
                              "unshared": unshared(shape)})  # fmt: skip
    return found


def cases() -> Iterator[tuple[dict, Shape]]:
    """Yield every combination of graph, model and number of ranks."""
    for nodes in PLANNED:
        for name, shape in shapes(nodes).items():
            for model in MODELS:
                for ranks in RANKS:
                    yield {"nodes": nodes, "shape": name, "model": model, "ranks": ranks}, shape


def memory() -> list[dict]:
    """Return the bytes of a rank by moment and part, and the bytes that a host's ranks share."""
    found = []
    for case, shape in cases():
        nodes, ranks = case["nodes"], case["ranks"]
        sizes, settings = sizes_of(nodes), settings_of(case["model"], nodes, ranks)
        one = estimate_rank(sizes, sizes, settings, ranks, batch=expected(shape, SHARE))
        moments = {name: dict(parts) for name, parts in one.moments.items()}
        most = {name: PROGRAM_BYTES + one.graph + sum(parts.values()) for name, parts in moments.items()}
        found.append(case | {"graph": one.graph, "moments": moments, "at_most": most, "host": one.host})
    return found


def traffic() -> list[dict]:
    """Return the bytes that a rank sends per triplet, and in all matrix products of the spectral part."""
    found = []
    for case, shape in cases():
        settings = settings_of(case["model"], case["nodes"], case["ranks"])
        sent = traffic_of(expected(shape, SHARE), settings, case["ranks"])
        figures = {
            "per_triplet": {key: value / SHARE for key, value in sent._asdict().items()},
            "with_copies": (sum(sent) - sent.graph) / SHARE,
            "by_range": sum(sent) / SHARE,
            "spectral_bytes": spectral_bytes(shape, settings, case["ranks"]),
        }
        found.append(case | figures)
    return found


def quality() -> dict:
    """Train with shares of 300 triplets per node, and return Macro-F1 at half the labels and the last loss."""
    from neural_brane.evaluate.classify import classify
    from neural_brane.experiments.store import describe_machine

    graph = load("debian-packages")
    rows = []
    for fraction in FRACTIONS:
        whole = NeuralBrane(seed=0).parameters_for(graph)
        batches = max(round(fraction * whole["batches_per_epoch"]), 1)
        model = NeuralBrane(seed=0, batches_per_epoch=batches, tolerance=None).fit(graph)
        score = classify(model.embedding_.vectors, graph.labels, train=(0.5,), seed=0).scores[0].macro.mean
        triplets = model.provenance()["training"]["triplets_per_node"]
        rows.append({"fraction": fraction, "triplets_per_node": triplets, "macro_f1": round(float(score), 4),
                     "loss": round(model.loss_history_[-1], 4)})  # fmt: skip
        print(rows[-1], flush=True)
    return {"graph": repr(graph), "machine": describe_machine(), "rows": rows}


def plan() -> dict[str, Any]:
    """Return all parts of the plan except the scores of trainings."""
    rows, balance = count()
    sent, held = traffic(), memory()
    needed = networks(sent)
    return {
        "rows": rows,
        "balance": balance,
        "growth": grow(),
        "memory": held,
        "traffic": sent,
        "speeds": speeds(),
        "networks": needed,
        "hours": hours(sent, needed),
        "hosts": hosts(sent, held, needed),
    }


def main() -> None:
    """Compute the plan, print it and write it to the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", action="store_true", help="train debian-packages and score it")
    found = {"quality": quality()} if parser.parse_args().quality else plan()
    path = RESULTS / "plan.json"
    kept = json.loads(path.read_text()) if path.is_file() else {}
    kept = rounded(kept | found)
    text = render(kept)
    for output, content in ((path, lines(kept)), (path.with_suffix(".txt"), text)):
        with atomic(output) as draft:
            draft.write_text(content, encoding="utf-8")
    print(text)


def lines(kept: dict[str, Any]) -> str:
    """Return JSON with one line per row."""
    parts = []
    for name, value in kept.items():
        rows = [f"  {json.dumps(row)}" for row in value] if isinstance(value, list) else None
        parts.append(
            f" {json.dumps(name)}: " + (json.dumps(value) if rows is None else "[\n" + ",\n".join(rows) + "\n ]")
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def rounded(value: Any) -> Any:
    """Round numbers to four digits, so that all machines write the same file."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
