"""The scratch memory of the CPU's steps, allocated once per call of `train`. Rows are padded to whole lanes."""

from typing import NamedTuple

import numpy as np

from neural_brane.kernels.model import Model, Settings, padded, zeros

BLOCK_TRIPLETS = 25  # smaller blocks keep more threads busy, larger ones make faster matrix products
BLOCK_NODES = 60  # that a task takes at a time: their vectors stay in the first caches from pooling to product
SCORE_TRIPLETS = 128  # that a task scores
MAX_BLOCKS = 64
BUCKETS = 4096  # by which distinct nodes are sorted


class Layer(NamedTuple):
    """The ReLU layer, and its gradient in the shares of the blocks."""

    weight: np.ndarray  # W as it is now (hidden, dim)
    weight_transposed: np.ndarray  # (dim, hidden)
    weight_share: np.ndarray  # (blocks, hidden, dim)
    bias_share: np.ndarray  # (blocks, hidden)


class Vectors(NamedTuple):
    """A row for every slot of a batch or, in large batches, for every distinct node."""

    nodes: np.ndarray  # (rows,) int32
    pooled: np.ndarray  # f, then dL/df (rows, dim)
    hidden: np.ndarray  # h (rows, hidden)
    attribute_winner: np.ndarray  # (rows, padded d1) int32
    neighbour_winner: np.ndarray  # (rows, padded d2) int32


class SlotSpace(NamedTuple):
    """The arrays of a batch that is computed slot by slot."""

    layer: Layer
    vectors: Vectors  # hidden becomes dL/dz
    loss_share: np.ndarray  # (blocks,) float64


class NodeSlots(NamedTuple):
    """A batch's slots by node: distinct node v has the slots order[bounds[v]:bounds[v + 1]], from first to last."""

    vectors: np.ndarray  # (slots,) int32: which of the distinct nodes each slot holds
    order: np.ndarray  # (slots,) int32
    bounds: np.ndarray  # (rows + 2,) int32
    buckets: np.ndarray  # (BUCKETS + 1,) int32: where each bucket's slots begin
    places: np.ndarray  # (nodes of the graph,) int32: where a node is among the distinct ones; -1 between two steps


class NodeScratch(NamedTuple):
    """What the tasks of each pass need besides."""

    hidden_slope: np.ndarray  # dL/dz of some nodes (blocks, BLOCK_NODES, hidden)
    pulls: np.ndarray  # (batch,) float32: each triplet's slope of the loss by its margin
    loss_share: np.ndarray  # (tasks,) float64


class NodeSpace(NamedTuple):
    """The arrays of a batch that is computed node by node."""

    layer: Layer
    vectors: Vectors
    slots: NodeSlots
    scratch: NodeScratch


def pooled_width(model: Model, settings: Settings) -> int:
    """The row length of f: there is room for all columns of P, and for all columns of P' after the first d1."""
    return padded(max(model.attribute_table.shape[1], settings.attribute_dim + model.neighbour_table.shape[1]))


def slot_space(model: Model, settings: Settings, batch: int) -> SlotSpace:
    """The arrays for batches of `batch` triplets, with a copy of W."""
    blocks = min(MAX_BLOCKS, -(-batch // BLOCK_TRIPLETS))
    return SlotSpace(*_model_space(model, settings, blocks, 3 * batch), loss_share=np.empty(blocks))


def node_space(model: Model, settings: Settings, batch: int) -> NodeSpace:
    """The same for batches that are computed node by node."""
    nodes, slots = len(model.neighbour_table), 3 * batch
    rows = min(nodes, slots)
    blocks = min(MAX_BLOCKS, -(-rows // BLOCK_NODES))
    slots_by_node = NodeSlots(
        vectors=np.empty(slots, np.int32),
        order=np.empty(slots, np.int32),
        bounds=np.empty(rows + 2, np.int32),
        buckets=np.empty(BUCKETS + 1, np.int32),
        places=np.full(nodes, -1, np.int32),
    )
    scratch = NodeScratch(
        hidden_slope=np.empty((blocks, BLOCK_NODES, padded(len(model.weight))), np.float32),
        pulls=np.empty(batch, np.float32),
        loss_share=np.empty(-(-batch // SCORE_TRIPLETS)),
    )
    return NodeSpace(*_model_space(model, settings, blocks, rows), slots_by_node, scratch)


def _model_space(model: Model, settings: Settings, blocks: int, rows: int) -> tuple[Layer, Vectors]:
    hidden, dim = model.weight.shape
    width = pooled_width(model, settings)
    weight, transposed = zeros(hidden, width), zeros(dim, padded(hidden))
    weight[:, :dim], transposed[:, :hidden] = model.weight, model.weight.T
    layer = Layer(
        weight=weight,
        weight_transposed=transposed,
        weight_share=np.empty((blocks, hidden, width), np.float32),
        bias_share=np.empty((blocks, hidden), np.float32),
    )
    return layer, Vectors(
        nodes=np.empty(rows, np.int32),
        pooled=zeros(rows, width),
        hidden=zeros(rows, padded(hidden)),
        attribute_winner=np.empty((rows, model.attribute_table.shape[1]), np.int32),
        neighbour_winner=np.empty((rows, model.neighbour_table.shape[1]), np.int32),
    )
