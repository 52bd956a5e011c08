"""Attention over links (Veličković, Cucurull, Casanova, Romero, Liò, Bengio: Graph attention networks, 2018).

Every edge keeps its place, so that memory grows with edges × heads, never with edges × dim: a head's shares are the
values of a sparse matrix, and what they weigh is multiplied with it. An edge's weight multiplies its share.
"""

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.methods import _torch as backend
from neural_brane.methods._convolution import with_loops

LEAK = 0.2  # the slope of the leaky ReLU below zero


class Edges(NamedTuple):
    """The neighbours of every node and itself, row by row."""

    indptr: Any  # (nodes + 1,) int64
    starts: Any  # (edges,) int64: the node that looks
    ends: Any  # (edges,) int64: the node that is looked at
    turned: Any  # (edges,) int64: the place of the same edge seen from its other end
    logs: Any  # (edges, 1): the logarithm of its weight


def edges_of(links: sparse.csr_array, device: str) -> Edges:
    """The edges of links without self-loops; each node is its own neighbour, by the mean weight of an edge."""
    looped = with_loops(links)
    nodes = len(looped.indptr) - 1
    starts = np.repeat(np.arange(nodes), np.diff(looped.indptr))
    turned = sparse.csr_array((np.arange(looped.nnz), looped.indices, looped.indptr), shape=looped.shape).T.tocsr()
    logs = np.log(looped.data / looped.data.max()).astype(np.float32)[:, None]
    parts = (looped.indptr.astype(np.int64), starts, looped.indices.astype(np.int64), turned.data, logs)
    return Edges(*(backend.import_torch().from_numpy(part).to(device) for part in parts))


def attend(edges: Edges, scores: Any) -> Any:
    """The shares (edges, heads) that nodes give their neighbours: softmax of scores over each node's own edges."""
    torch = backend.import_torch()
    scores, nodes = scores + edges.logs, len(edges.indptr) - 1
    rows = edges.starts[:, None].expand_as(scores)
    highest = torch.full((nodes, scores.shape[1]), -torch.inf, device=scores.device)
    highest = highest.scatter_reduce(0, rows, scores.detach(), "amax")
    raised = (scores - highest.index_select(0, edges.starts)).exp()
    sums = torch.zeros_like(highest).index_add(0, edges.starts, raised)
    return raised / sums.index_select(0, edges.starts)


def pair_scores(edges: Edges, looking: Any, looked_at: Any) -> Any:
    """The score (edges, heads) of every edge, of what both its nodes have for each head."""
    pairs = looking.index_select(0, edges.starts) + looked_at.index_select(0, edges.ends)
    return backend.import_torch().nn.functional.leaky_relu(pairs, LEAK)


def gather(edges: Edges, shares: Any, table: Any) -> Any:
    """The sums of neighbours' rows by the shares of one head (edges,)."""
    return _gathering().apply(shares, table, edges)


@cache
def _gathering() -> Any:
    """`gather` as a function that PyTorch can differentiate without a row for every edge."""
    torch = backend.import_torch()

    def multiply(edges: Edges, shares: Any, table: Any) -> Any:
        return torch.nn.functional.embedding_bag(
            edges.ends, table, edges.indptr, mode="sum", per_sample_weights=shares, include_last_offset=True
        )

    class Gathering(backend.import_torch().autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(context: Any, shares: Any, table: Any, edges: Edges) -> Any:
            shares, table = shares.contiguous(), table.contiguous()
            context.save_for_backward(shares, table)
            context.edges = edges
            return multiply(edges, shares, table)

        @staticmethod
        def backward(context: Any, slope: Any) -> tuple[Any, Any, None]:
            (shares, table), edges = context.saved_tensors, context.edges
            slope = slope.contiguous()
            with torch.enable_grad():  # PyTorch's own gradient of the shares needs no row for every edge either
                inner = shares.detach().requires_grad_()
                (towards,) = torch.autograd.grad(multiply(edges, inner, table), inner, slope)
            return towards, multiply(edges, shares.index_select(0, edges.turned), slope), None

    return Gathering


def head_columns(width: int, heads: int) -> list[slice]:
    """The columns of each head: as even as can be, and no head without any."""
    cuts = np.linspace(0, width, min(heads, width) + 1).astype(int)
    return [slice(first, last) for first, last in pairwise(cuts.tolist())]


def layer(edges: Edges, table: Any, looking: Any, looked_at: Any, heads: int, dropped: Any = None) -> Any:
    """One layer of attention over a table (nodes, width); each head has columns of its own.

    looking, looked_at: (1, width), what scores a row as the one that looks and the one that is looked at.
    dropped: a function of the shares that leaves some out.
    """
    torch, columns = backend.import_torch(), head_columns(table.shape[1], heads)

    def by_head(vector: Any) -> Any:
        return torch.stack([(table[:, part] * vector[:, part]).sum(1) for part in columns], 1)

    shares = attend(edges, pair_scores(edges, by_head(looking), by_head(looked_at)))
    shares = shares if dropped is None else dropped(shares)
    return torch.cat([gather(edges, shares[:, at], table[:, part]) for at, part in enumerate(columns)], 1)


def layer_in_numpy(
    looped: sparse.csr_array, table: np.ndarray, looking: np.ndarray, looked_at: np.ndarray, heads: int
) -> np.ndarray:
    """The same of a whole graph by NumPy. looped: `with_loops`, in which no row is empty."""
    out = np.empty_like(table)
    starts = np.repeat(np.arange(looped.shape[0]), np.diff(looped.indptr))
    logs = np.log(looped.data / looped.data.max())
    for part in head_columns(table.shape[1], heads):
        columns = np.ascontiguousarray(table[:, part])
        first, second = ((columns * vector[:, part]).sum(axis=1) for vector in (looking, looked_at))
        scores = first[starts] + second[looped.indices]
        scores = np.where(scores > 0, scores, LEAK * scores) + logs
        raised = np.exp(scores - np.repeat(np.maximum.reduceat(scores, looped.indptr[:-1]), np.diff(looped.indptr)))
        shares = raised / np.repeat(np.add.reduceat(raised, looped.indptr[:-1]), np.diff(looped.indptr))
        matrix = sparse.csr_array((shares.astype(np.float32), looped.indices, looped.indptr), shape=looped.shape)
        out[:, part] = matrix @ columns
    return out
