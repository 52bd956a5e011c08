"""The program of most tests: groups of one, two and four ranks exchange and compute; ranks.py starts it."""

import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import torch
from cases import COUNT, JOINING, SETTINGS, VALUES, large_graph, make_cases, requested, two_parts
from leaving import leave
from ranks import each_group

from neural_brane.distributed.exchange import Exchange, Requests, node_range
from neural_brane.distributed.spectral import OnRanks, OwnGraph, join_own, spectral_part
from neural_brane.errors import GraphError
from neural_brane.files.graphs.shards import MemoryShards
from neural_brane.linalg.eigenvectors import factor_hops, leading_eigenvectors
from neural_brane.linalg.tables import OnTorch
from neural_brane.methods.spectral import Decomposition, HopProduct


def send_pieces(exchange: Exchange) -> dict[str, np.ndarray]:
    rank, ranks = exchange.rank, exchange.ranks
    give = np.arange(ranks) + rank  # rank r gets the row (rank, r), repeated r + rank times
    pairs = np.repeat(np.stack([np.full(ranks, rank), np.arange(ranks)], axis=1), give, axis=0)
    return {
        "sent": exchange.send(pairs, give),
        "flags": exchange.send(pairs[:, 1] % 2 == 0, give),
        "tensor": exchange.send(torch.from_numpy(pairs).to(torch.float32), give).numpy(),
        "total": exchange.total(np.array([[1.0, 1e17, -1e17], [rank, 0.5, 2.0]]) * (rank + 1)),
        "largest": exchange.largest(np.array([rank, -rank])),
        "first": exchange.from_first(np.array([rank + 5.0])),
        "gathered": exchange.gather(np.full((rank, 2), rank)),
    }


def request_rows(exchange: Exchange) -> dict[str, np.ndarray]:
    rank, own = exchange.rank, node_range(COUNT, exchange.rank, exchange.ranks)
    table = np.arange(own.start, own.stop)[:, None] * np.array([1.0, 10.0])
    lengths = np.arange(own.start, own.stop) % 3  # number k has k % 3 values, each k
    requests = Requests(exchange, requested(rank), COUNT)
    of_rows = lengths[requests.own_rows]
    got, values = requests.bags(of_rows, np.repeat(requests.own_rows + own.start, of_rows).astype(np.int32))
    once, total = np.unique(requested(rank)), np.zeros(len(own))
    Requests(exchange, once, COUNT).add(10.0**rank * (once + 1), total)
    return {
        "rows": requests.rows_of(table),
        "tensor_rows": requests.rows_of(torch.from_numpy(table)).numpy(),
        "lengths": got,
        "values": values,
        "returned": requests.back(requested(rank) * 100 + rank),
        "requested": requests.own_rows + own.start,
        "added": total,
    }


def join_parts(exchange: Exchange) -> dict[str, np.ndarray]:
    own = node_range(COUNT, exchange.rank, exchange.ranks)
    spectral, learned = (part[own.start : own.stop] for part in two_parts())
    return join_own(Decomposition(spectral, VALUES), iter([learned]), JOINING, exchange)._asdict()


def decompose(exchange: Exchange) -> dict[str, np.ndarray]:
    found = {}
    for name, case in make_cases().items():
        shards, reports = MemoryShards(case.graph, case.parts), iter(range(100))
        vectors, values = spectral_part(
            shards, exchange, case.all_settings(), 7, report=partial(next, reports), most_rows=case.most_rows
        )
        graph = OwnGraph(shards, exchange, case.most_rows)
        rounds = len(graph.adjacency.rounds)
        found |= {
            f"{name}/vectors": vectors,
            f"{name}/values": values,
            f"{name}/apart": np.array(graph.distinguishes_nodes),
        }
        found |= {f"{name}/reports": np.array(next(reports)), f"{name}/rounds": np.array(rounds)}
    return found


def use_tensors(exchange: Exchange) -> dict[str, np.ndarray]:
    """Compute with the tables of a GPU, on the CPU."""
    case = make_cases()["many rounds"]
    graph = OwnGraph(MemoryShards(case.graph, case.parts), exchange, case.most_rows)
    tables = OnRanks(OnTorch("cpu"), exchange)
    product = HopProduct(factor_hops(graph, (1.0, 1.0, 1.0), link_weight=0.3, centred=True), tables)
    values, vectors = leading_eigenvectors(product, 12, tables=tables, seed=7)
    return {"vectors": vectors, "values": values}


def hold_little(exchange: Exchange) -> dict[str, np.ndarray]:
    """Return the peak memory of a rank's arrays for a large graph, in bytes."""
    if exchange.ranks == 2:
        return {}
    shards = MemoryShards(large_graph())
    tracemalloc.start()
    spectral_part(shards, exchange, SETTINGS | {"spectral_dim": 112, "hop_weights": (1.0, 1.0)}, 0, most_rows=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {"peak": np.array(peak)}


def refuse(exchange: Exchange) -> dict[str, np.ndarray]:
    case = make_cases()["one amount"]
    try:
        spectral_part(
            MemoryShards(case.graph), exchange, case.all_settings() | {"hop_weights": (1.0,), "link_weight": 0.0}, 0
        )
    except GraphError as refused:
        return {"message": np.array(str(refused))}
    return {}


PROGRAMS = {
    "pieces": send_pieces,
    "requests": request_rows,
    "joined": join_parts,
    "spectral": decompose,
    "tensors": use_tensors,
    "held": hold_little,
    "refused": refuse,
}


def run_all(exchange: Exchange, ranks: int, output: Path) -> None:
    for name, program in PROGRAMS.items():
        np.savez(output / f"{name}-{ranks}-{exchange.rank}.npz", **program(exchange))


if __name__ == "__main__":
    each_group(run_all)
    leave()
