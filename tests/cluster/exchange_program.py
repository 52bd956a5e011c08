"""What each rank gets from an exchange, for test_exchange.py."""

from pathlib import Path

import numpy as np
import torch
from ranks import each_group

from neural_brane.cluster.exchange import Exchange, Requests
from neural_brane.cluster.ranges import node_range

COUNT = 11


def asked(rank: int) -> np.ndarray:
    """Rows that a rank asks about: some twice, none in order; rank 2 asks nothing."""
    return np.random.default_rng(rank).integers(0, COUNT, 0 if rank == 2 else 9)


def answer(exchange: Exchange, ranks: int, output: Path) -> None:
    rank, own = exchange.rank, node_range(COUNT, exchange.rank, ranks)
    give = np.arange(ranks) + rank  # the rows to rank r are (rank, r), r + rank times
    pairs = np.repeat(np.stack([np.full(ranks, rank), np.arange(ranks)], axis=1), give, axis=0)
    table = np.arange(own.start, own.stop)[:, None] * np.array([1.0, 10.0])
    lengths = np.arange(own.start, own.stop) % 3  # number k has k % 3 values, each k
    requests = Requests(exchange, asked(rank), COUNT)
    of_wanted = lengths[requests.wanted]
    got, values = requests.bags(of_wanted, np.repeat(requests.wanted + own.start, of_wanted).astype(np.int32))
    np.savez(
        output / f"{ranks}-{rank}.npz",
        sent=exchange.send(pairs, give),
        flags=exchange.send(pairs[:, 1] % 2 == 0, give),
        tensor=exchange.send(torch.from_numpy(pairs).to(torch.float32), give).numpy(),
        total=exchange.total(np.array([[1.0, 1e17, -1e17], [rank, 0.5, 2.0]]) * (rank + 1)),
        largest=exchange.largest(np.array([rank, -rank])),
        first=exchange.from_first(np.array([rank + 5.0])),
        gathered=exchange.gather(np.full((rank, 2), rank)),
        rows=requests.answers(table[requests.wanted]),
        tensor_rows=requests.answers(torch.from_numpy(table[requests.wanted])).numpy(),
        lengths=got,
        values=values,
        returned=requests.back(asked(rank) * 100 + rank),
        wanted=requests.wanted + own.start,
    )


if __name__ == "__main__":
    each_group(answer)
