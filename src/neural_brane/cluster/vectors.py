"""The learned part of the vectors of a rank's own nodes, some nodes at a time, all ranks in step."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from neural_brane.cluster.batches import Batch, bags_of_nodes
from neural_brane.cluster.model import ShardedModel
from neural_brane.cluster.ranges import block_size
from neural_brane.cluster.rows import GraphRows
from neural_brane.kernels.model import Model, Settings

BLOCK_NODES = 8_192  # of a rank that are embedded at a time


def own_vectors(
    model: ShardedModel, rows: GraphRows, kernel: Settings, output: str, block: int = BLOCK_NODES
) -> Iterator[np.ndarray]:
    """The vectors of the nodes that this rank owns, in the form that `output` asks for.

    All ranks go through as many blocks, the last of which may be empty for some: rows are looked up by all at once.
    """
    own, exchange = model.neighbours.own, model.exchange
    for first in range(0, block_size(rows.nodes, exchange.ranks), block):
        nodes = np.arange(min(own.start + first, own.stop), min(own.start + first + block, own.stop))
        batch = bags_of_nodes(rows, nodes)
        pooled = _embed(model, batch, kernel, len(nodes))
        if output == "hidden":
            yield _hide(model, pooled)
        elif output == "released":
            d1, dim = kernel.attribute_dim, model.weight.shape[1]
            yield np.hstack([_own_rows(model, nodes)[:, : dim - d1], np.maximum(pooled[:, :d1], 0)])
        else:
            yield pooled


def _embed(model: ShardedModel, batch: Batch, kernel: Settings, count: int) -> np.ndarray:
    from neural_brane.kernels import cpu

    ids = batch.attributes, batch.neighbours
    with torch.no_grad():
        attributes, neighbours = (_fetch(model, side, asked) for side, asked in enumerate(ids))
    small = Model(attributes, neighbours, model.weight.cpu().numpy(), model.bias.cpu().numpy())
    pooled: np.ndarray = cpu.embed(small, *batch.bags, np.arange(count, dtype=np.int32), kernel)
    return pooled


def _hide(model: ShardedModel, pooled: np.ndarray) -> np.ndarray:
    from neural_brane.kernels import cpu

    layer = Model(pooled, pooled, model.weight.cpu().numpy(), model.bias.cpu().numpy())
    hidden: np.ndarray = cpu.hide(layer, pooled)
    return hidden


def _own_rows(model: ShardedModel, nodes: np.ndarray) -> np.ndarray:
    """The rows of P' of successive nodes that this rank owns."""
    start = int(nodes[0]) - model.neighbours.own.start if len(nodes) else 0
    return (model.neighbours.local[start : start + len(nodes)] * model.scale).cpu().numpy()


def _fetch(model: ShardedModel, side: int, ids: np.ndarray) -> Any:
    """Rows of a table as an array, true to scale."""
    table = model.tables[side]
    found = table.lookup(torch.from_numpy(ids).to(model.device))
    return np.ascontiguousarray((found * model.scale if model.scale != 1 else found).cpu().numpy())
