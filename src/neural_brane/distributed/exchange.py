"""Divide rows among ranks, and send rows and numbers between them."""

from typing import Any

import numpy as np
import torch
from torch import distributed


def block_size(count: int, ranks: int) -> int:
    """Return how many numbers a rank owns: ⌈count / ranks⌉ as in TorchRec; the last ranks own fewer or none."""
    return max(-(-count // ranks), 1)


def node_range(count: int, rank: int, ranks: int) -> range:
    """Return the numbers of 0 … count − 1 that a rank owns. The same rule divides nodes and attributes.

    >>> [node_range(7, rank, 4) for rank in range(4)]
    [range(0, 2), range(2, 4), range(4, 6), range(6, 7)]
    """
    block = block_size(count, ranks)
    return range(min(rank * block, count), min((rank + 1) * block, count))


def owners(numbers: np.ndarray, count: int, ranks: int) -> np.ndarray:
    """Return the rank that owns each number."""
    return numbers // block_size(count, ranks)


# All ranks of a group call these methods in the same order. A NumPy array returns as an array, a PyTorch tensor as a
# tensor. Gloo sends them through memory, NCCL through the rank's GPU.

Array = Any  # NumPy array or PyTorch tensor


class Exchange:
    """Send arrays between the ranks of a group (by default all), or, if `alone`, to this process; sum over them."""

    def __init__(self, group: Any = None, *, alone: bool = False):
        self.group, self.rank, self.ranks, self.device = group, 0, 1, torch.device("cpu")
        if distributed.is_initialized() and not alone:
            self.rank, self.ranks = distributed.get_rank(group), distributed.get_world_size(group)
            if distributed.get_backend(group) == "nccl":
                self.device = torch.device("cuda", torch.cuda.current_device())

    def sizes(self, give: np.ndarray) -> np.ndarray:
        """Return how many rows each rank will send to this one (int64), given how many this one sends to each."""
        given = np.asarray(give, np.int64)
        return self.send(given, np.ones(self.ranks, np.int64), np.ones(self.ranks, np.int64))

    def send(self, values: Array, give: Any, take: Any = None) -> Array:
        """Send `give[r]` rows to rank r; return the rows received, in rank order. `take` counts them, if known."""
        if self.ranks == 1:
            return values
        take = self.sizes(give) if take is None else take
        shape = (int(np.sum(take)), *values.shape[1:])
        if isinstance(values, np.ndarray):
            given = torch.from_numpy(np.ascontiguousarray(values).reshape(-1).view(np.uint8)).to(self.device)
        else:
            given = values.contiguous().reshape(-1).view(torch.uint8).to(self.device)
        width = int(np.prod(shape[1:])) * values.dtype.itemsize  # bytes per row
        got = torch.empty(shape[0] * width, dtype=torch.uint8, device=self.device)
        distributed.all_to_all_single(
            got, given, [int(rows) * width for rows in take], [int(rows) * width for rows in give], group=self.group
        )
        if isinstance(values, np.ndarray):
            return got.cpu().numpy().view(values.dtype).reshape(shape)
        return got.to(values.device).view(values.dtype).reshape(shape)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of an array over the ranks, always added in the order of the ranks, so that no bit varies."""
        if self.ranks == 1:
            return values
        flat = values.reshape(-1)
        piece = -(-len(flat) // self.ranks)
        padded = np.zeros(piece * self.ranks, values.dtype)
        padded[: len(flat)] = flat
        equal = np.full(self.ranks, piece)
        own = self.send(padded, equal, equal).reshape(self.ranks, piece)
        summed = own[0].copy()
        for share in own[1:]:
            summed += share
        return self.gather(summed, equal)[: len(flat)].reshape(values.shape)

    def gather(self, values: Array, take: Any = None) -> Array:
        """Return the arrays of all ranks, one after another; take: the number of rows of each, if known."""
        if self.ranks == 1:
            return values
        return self.send(stack([values] * self.ranks), np.full(self.ranks, len(values)), take)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """Return, for each entry of an array, its largest value among the ranks."""
        return self.gather(values[None], np.ones(self.ranks, np.int64)).max(axis=0)

    def from_first(self, values: np.ndarray) -> np.ndarray:
        """Return rank 0's array on every rank, for values that machines could compute with different bits."""
        if self.ranks == 1:
            return values
        first = torch.from_numpy(np.array(values)).to(self.device)
        distributed.broadcast(first, group=self.group, group_src=0)
        return first.cpu().numpy()

    def wait(self) -> None:
        """Return once all ranks have called this method."""
        self.largest(np.zeros(1, np.int64))


class Requests:
    """Requests for rows 0 … count − 1, sent once to the ranks that own them, which can answer many times."""

    def __init__(self, exchange: Exchange, numbers: np.ndarray, count: int):
        self.exchange, self.own = exchange, node_range(count, exchange.rank, exchange.ranks)
        self.count = len(numbers)
        owner = owners(numbers, count, exchange.ranks)
        self.give = np.bincount(owner, minlength=exchange.ranks)  # requests to each rank
        in_order = bool((owner[1:] >= owner[:-1]).all())
        self.order = None if in_order else np.argsort(owner, kind="stable")
        self.take = exchange.sizes(self.give)  # requests from each rank
        sent = numbers if self.order is None else numbers[self.order]
        self.own_rows = exchange.send(sent, self.give, self.take) - self.own.start  # own rows that ranks request

    def answers(self, answers: Array) -> Array:
        """Return one row per requested number, from its owner; answers: one row for each of `own_rows`."""
        return self._restore(self.exchange.send(answers, self.take, self.give))

    def rows_of(self, table: Array) -> Array:
        """Return the requested rows of a table, of which each rank passes its own rows."""
        return self.answers(table[_places(self.own_rows, table)])

    def bags(self, lengths: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return answers of lengths[k] values for own row k: the lengths and the values for all requests."""
        exchange = self.exchange
        sent = _sums(lengths, self.take)
        got = exchange.send(np.asarray(lengths, np.int64), self.take, self.give)
        arrived = exchange.send(values, sent, _sums(got, self.give))
        if self.order is None:
            return got, arrived
        restored = self._restore(got)
        starts = self._restore(np.cumsum(got) - got)
        ends = np.cumsum(restored)
        places = np.arange(len(arrived)) + np.repeat(starts - (ends - restored), restored)
        return restored, arrived[places]

    def back(self, values: Array) -> Array:
        """Send owners one row per requested number; return one row per entry of `own_rows`, ordered by rank."""
        if self.order is not None:
            values = values[_places(self.order, values)]
        return self.exchange.send(values, self.give, self.take)

    def add(self, values: Array, total: Array) -> None:
        """Add one row per requested number to the owner's `total`, rank by rank; no rank requests a row twice."""
        arrived, at = self.back(values), 0
        for rows in self.take.tolist():
            total[_places(self.own_rows[at : at + rows], total)] += arrived[at : at + rows]
            at += rows

    def _restore(self, answers: Array) -> Array:
        """Return the answers in the order of the requests."""
        if self.order is None:
            return answers
        restored = np.empty_like(answers) if isinstance(answers, np.ndarray) else torch.empty_like(answers)
        restored[_places(self.order, answers)] = answers
        return restored


def _sums(lengths: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """Return the sums of consecutive pieces of an array; pieces: the length of each."""
    ends = np.append(0, np.cumsum(lengths, dtype=np.int64))[np.cumsum(pieces)]
    return np.diff(ends, prepend=0)


def stack(parts: list[Array]) -> Array:
    """Return arrays one after another; a single one that is not empty is not copied."""
    full = [part for part in parts if len(part)] or parts[:1]
    if len(full) == 1:
        return full[0]
    return np.concatenate(full) if isinstance(full[0], np.ndarray) else torch.cat(full)


def _places(numbers: np.ndarray, like: Array) -> Array:
    """Return the numbers as an index that fits `like`: an array, or a tensor on its device."""
    return numbers if isinstance(like, np.ndarray) else torch.from_numpy(numbers).to(like.device)
