"""A table whose rows lie with their ranks: TorchRec looks rows up and subtracts what comes back, at the owner.

Rows travel unpooled, since our own kernels pool them. TorchRec's fused SGD has rate 1: the gradient that is given back
is the difference that a row has to take.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import distributed

from neural_brane.cluster.exchange import Exchange
from neural_brane.cluster.ranges import node_range

FEATURE = "rows"


class ShardedTable:
    """A table (rows, width) float32 of which each rank owns `node_range`; it is never whole anywhere.

    A table without rows or columns is kept too: looking up in it gives rows without numbers.
    """

    def __init__(self, name: str, rows: int, width: int, exchange: Exchange, device: torch.device):
        self.name, self.rows, self.width, self.device, self.exchange = name, rows, width, device, exchange
        self.own = node_range(rows, exchange.rank, exchange.ranks)
        self._module: Any = None
        if rows and width:
            with _quiet():
                from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

                self._module = _shard(name, rows, width, exchange, device)
            self._asked = KeyedJaggedTensor

    @property
    def local(self) -> torch.Tensor:
        """The rows that this rank owns, to be read and written in place."""
        if self._module is None:
            return torch.empty((len(self.own), self.width), device=self.device)
        shards = self.state()[f"{self.name}.weight"].local_shards()
        return shards[0].tensor if shards else torch.empty((0, self.width), device=self.device)

    def lookup(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of distinct ids (k,) int64, in their order. All ranks ask at once; each may ask for none."""
        if self._module is None:
            return torch.empty((len(ids), self.width), device=self.device)
        # A bag for each id: FBGEMM works bag by bag. The length is told, so that nobody waits for the GPU to count.
        lengths = torch.ones(len(ids), dtype=torch.int64, device=self.device)
        asked = self._asked(keys=[FEATURE], values=ids, lengths=lengths, length_per_key=[len(ids)])
        found: torch.Tensor = self._module(asked)[FEATURE].values()
        return found

    def give_back(self, rows: torch.Tensor, difference: torch.Tensor) -> None:
        """Subtract the difference from rows that were looked up, at their owners; those of several ranks add up."""
        if self._module is not None:
            torch.autograd.backward([rows], [difference])

    def state(self) -> dict[str, Any]:
        """The table as distributed checkpoints keep it: under one name, in the pieces of the ranks."""
        if self._module is None:
            return {}
        with _quiet():
            return {f"{self.name}.weight": self._module.state_dict()[f"embeddings.{self.name}.weight"]}

    def whole(self) -> np.ndarray:
        """All rows, on every rank: for graphs that every rank holds anyway."""
        if self._module is None:
            return np.zeros((self.rows, self.width), np.float32)
        found: torch.Tensor = self.exchange.gather(self.local.contiguous())
        return found.cpu().numpy()


def _shard(name: str, rows: int, width: int, exchange: Exchange, device: torch.device) -> Any:
    """TorchRec's module of a table, cut by rows, whose memory is first asked for in pieces, on their ranks."""
    import torchrec
    from torch.distributed.optim import _apply_optimizer_in_backward
    from torchrec.distributed.comm_ops import set_gradient_division
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise
    from torchrec.distributed.types import ShardingEnv

    set_gradient_division(False)  # what ranks give back adds up; it is not averaged
    config = torchrec.EmbeddingConfig(name=name, embedding_dim=width, num_embeddings=rows, feature_names=[FEATURE])
    module = torchrec.EmbeddingCollection(tables=[config], device=torch.device("meta"))
    _apply_optimizer_in_backward(torch.optim.SGD, module.parameters(), {"lr": 1.0})
    sharder, ranks = EmbeddingCollectionSharder(), exchange.ranks
    plan = construct_module_sharding_plan(
        module, {name: row_wise()}, sharder=sharder, local_size=ranks, world_size=ranks, device_type=device.type
    )
    group = ShardingEnv.from_process_group(exchange.group or distributed.group.WORLD)
    return sharder.shard(module, plan, group, device)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep TorchRec and what it calls from warning of their own ways."""
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
