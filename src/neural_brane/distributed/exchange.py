"""Divide rows among ranks, and send rows and numbers between them."""

from typing import Any

import numpy as np
import torch
from torch import distributed


def block_size(count: int, ranks: int) -> int:
    """Count the numbers that a rank owns, the last ranks fewer or none: ⌈count / ranks⌉, as TorchRec cuts tables."""
    return max(-(-count // ranks), 1)


def node_range(count: int, rank: int, ranks: int) -> range:
    """The numbers that a rank owns of 0 … count − 1: of nodes or, by the same rule, of attributes.

    >>> [node_range(7, rank, 4) for rank in range(4)]
    [range(0, 2), range(2, 4), range(4, 6), range(6, 7)]
    >>> len(node_range(3, 3, 4))
    0
    """
    block = block_size(count, ranks)
    return range(min(rank * block, count), min((rank + 1) * block, count))


def owners(numbers: np.ndarray, count: int, ranks: int) -> np.ndarray:
    """The rank that owns each number.

    >>> owners(np.array([0, 6, 3]), 7, 4)
    array([0, 3, 1])
    """
    return numbers // block_size(count, ranks)


# All ranks of a group call these methods in the same order. NumPy arrays and PyTorch tensors come back as what they
# were; gloo carries them through memory, NCCL through the rank's GPU.

Array = Any  # a NumPy array or a PyTorch tensor


class Exchange:
    """Send and sum over the ranks of a process group: the default one when None, this process alone without any.

    alone: this process alone, even if there is a group.

    >>> alone = Exchange(alone=True)
    >>> alone.ranks, alone.send(np.arange(3), [3])
    (1, array([0, 1, 2]))
    """

    def __init__(self, group: Any = None, *, alone: bool = False):
        self.group, self.rank, self.ranks, self.device = group, 0, 1, torch.device("cpu")
        if distributed.is_initialized() and not alone:
            self.rank, self.ranks = distributed.get_rank(group), distributed.get_world_size(group)
            if distributed.get_backend(group) == "nccl":
                self.device = torch.device("cuda", torch.cuda.current_device())

    def sizes(self, give: np.ndarray) -> np.ndarray:
        """Return how many rows each rank will send here, given how many this one sends to each; int64."""
        given = np.asarray(give, np.int64)
        return self.send(given, np.ones(self.ranks, np.int64), np.ones(self.ranks, np.int64))

    def send(self, values: Array, give: Any, take: Any = None) -> Array:
        """Give rank r the next `give[r]` rows of an array; returns the rows that come here, in the ranks' order.

        take: how many rows come from each rank, where it is known; else the ranks tell one another first. A rank that
        is alone gets its own array, not a copy.
        """
        if self.ranks == 1:
            return values
        take = self.sizes(give) if take is None else take
        shape = (int(np.sum(take)), *values.shape[1:])
        if isinstance(values, np.ndarray):
            given = torch.from_numpy(np.ascontiguousarray(values).reshape(-1).view(np.uint8)).to(self.device)
        else:
            given = values.contiguous().reshape(-1).view(torch.uint8).to(self.device)
        width = int(np.prod(shape[1:])) * values.dtype.itemsize  # bytes of a row
        got = torch.empty(shape[0] * width, dtype=torch.uint8, device=self.device)
        distributed.all_to_all_single(
            got, given, [int(rows) * width for rows in take], [int(rows) * width for rows in give], group=self.group
        )
        if isinstance(values, np.ndarray):
            return got.cpu().numpy().view(values.dtype).reshape(shape)
        return got.to(values.device).view(values.dtype).reshape(shape)

    def total(self, values: np.ndarray) -> np.ndarray:
        """The sum of an array over the ranks, in the order of their numbers, so that its bits never vary.

        Every rank adds up a piece of the array, and then all get all pieces: a rank never holds more than two arrays.
        """
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
        """The arrays of all ranks, one after another; take: how many rows each has, where it is known."""
        if self.ranks == 1:
            return values
        joined = np.concatenate if isinstance(values, np.ndarray) else torch.cat
        return self.send(joined([values] * self.ranks), np.full(self.ranks, len(values)), take)

    def largest(self, values: np.ndarray) -> np.ndarray:
        """The largest of each number of an array among the ranks."""
        if self.ranks == 1:
            return values
        most = torch.from_numpy(np.array(values)).to(self.device)
        distributed.all_reduce(most, distributed.ReduceOp.MAX, group=self.group)
        return most.cpu().numpy()

    def from_first(self, values: np.ndarray) -> np.ndarray:
        """The first rank's array, on all: what must not differ by a bit, though the ranks' machines may."""
        if self.ranks == 1:
            return values
        told = torch.from_numpy(np.array(values)).to(self.device)
        distributed.broadcast(told, group=self.group, group_src=0)
        return told.cpu().numpy()

    def wait(self) -> None:
        """Return once all ranks have come here."""
        self.largest(np.zeros(1, np.int64))


class Requests:
    """Questions about numbered rows, sent once to the ranks that own them and answered as often as is needed.

    numbers: the rows that this rank asks about, in any order, of 0 … count − 1. A rank owns those of `node_range`.
    """

    def __init__(self, exchange: Exchange, numbers: np.ndarray, count: int):
        self.exchange, self.own = exchange, node_range(count, exchange.rank, exchange.ranks)
        self.asked = len(numbers)
        owner = owners(numbers, count, exchange.ranks)
        self.give = np.bincount(owner, minlength=exchange.ranks)  # questions to each rank
        in_order = bool((owner[1:] >= owner[:-1]).all())
        self.order = None if in_order else np.argsort(owner, kind="stable")
        self.take = exchange.sizes(self.give)  # questions from each rank
        sent = numbers if self.order is None else numbers[self.order]
        self.wanted = exchange.send(sent, self.give, self.take) - self.own.start  # own rows that are asked for

    def answers(self, answers: Array) -> Array:
        """Return the owners' answer to each number, a row for each; answers: a row for each of `wanted`."""
        return self._restore(self.exchange.send(answers, self.take, self.give))

    def rows_of(self, table: Array) -> Array:
        """The rows of a table that were asked for; each rank gives its own rows of it."""
        return self.answers(table[_places(self.wanted, table)])

    def bags(self, lengths: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Answers of several values each: how many belong to each number, and all of them, one number after another.

        lengths: how many values answer each of `wanted`; values: one answer after another.
        """
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
        """Send the owners a row for each number asked; each gets one for each of `wanted`, the askers in order."""
        if self.order is not None:
            values = values[_places(self.order, values)]
        return self.exchange.send(values, self.give, self.take)

    def add(self, values: Array, total: Array) -> None:
        """Add a row for each number asked to the owners' rows, in the order of the askers; no rank asks for one twice.

        total: own rows, which what arrives is added to in place.
        """
        arrived, at = self.back(values), 0
        for rows in self.take.tolist():
            total[_places(self.wanted[at : at + rows], total)] += arrived[at : at + rows]
            at += rows

    def _restore(self, answers: Array) -> Array:
        """Answers in the order of the questions."""
        if self.order is None:
            return answers
        restored = np.empty_like(answers) if isinstance(answers, np.ndarray) else torch.empty_like(answers)
        restored[_places(self.order, answers)] = answers
        return restored


def _sums(lengths: np.ndarray, pieces: np.ndarray) -> np.ndarray:
    """The sums of pieces of an array, one after another, of so many numbers each."""
    ends = np.append(0, np.cumsum(lengths, dtype=np.int64))[np.cumsum(pieces)]
    return np.diff(ends, prepend=0)


def _places(numbers: np.ndarray, like: Array) -> Array:
    return numbers if isinstance(like, np.ndarray) else torch.from_numpy(numbers).to(like.device)
