"""GraphMAE: hide the attributes of some nodes and learn, by attention over links, to predict them."""

from collections.abc import Iterator
from functools import cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.methods import descent as backend
from neural_brane.methods.convolution import Convolutional, Subgraph, with_loops
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.training import SINGLE, Moments

# This is the attention of Graph attention networks (Veličković, Cucurull, Casanova, Romero, Liò, Bengio; 2018). The
# attention of one head is the values of a sparse matrix, by which tables are multiplied; so memory grows with edges ×
# heads, not with edges × dim. The weight of an edge multiplies its attention.

LEAK = 0.2  # slope of the leaky ReLU below zero


class Edges(NamedTuple):
    """The edges from every node to its neighbours and itself, sorted by their start."""

    indptr: Any  # (nodes + 1,) int64
    starts: Any  # (edges,) int64, the node that attends
    ends: Any  # (edges,) int64, the node that it attends to
    turned: Any  # (edges,) int64, position of the reverse edge
    logs: Any  # (edges, 1), logarithm of the weight


def edges_of(links: sparse.csr_array, device: str) -> Edges:
    """Return the edges of links without self-loops, and an edge of the mean weight from each node to itself."""
    looped = with_loops(links)
    nodes = len(looped.indptr) - 1
    starts = np.repeat(np.arange(nodes), np.diff(looped.indptr))
    turned = sparse.csr_array((np.arange(looped.nnz), looped.indices, looped.indptr), shape=looped.shape).T.tocsr()
    logs = np.log(looped.data / looped.data.max()).astype(np.float32)[:, None]
    parts = (looped.indptr.astype(np.int64), starts, looped.indices.astype(np.int64), turned.data, logs)
    return Edges(*(backend.import_torch().from_numpy(part).to(device) for part in parts))


def attend(edges: Edges, scores: Any) -> Any:
    """Return the attention (edges, heads): the softmax of the scores over the edges of each node."""
    torch = backend.import_torch()
    scores, nodes = scores + edges.logs, len(edges.indptr) - 1
    rows = edges.starts[:, None].expand_as(scores)
    highest = torch.full((nodes, scores.shape[1]), -torch.inf, device=scores.device)
    highest = highest.scatter_reduce(0, rows, scores.detach(), "amax")
    raised = (scores - highest.index_select(0, edges.starts)).exp()
    sums = torch.zeros_like(highest).index_add(0, edges.starts, raised)
    return raised / sums.index_select(0, edges.starts)


@cache
def _gathering() -> Any:
    """Return the sum of neighbours' rows by attention (edges,), differentiable without one row for each edge."""
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
            with torch.enable_grad():  # PyTorch's gradient of the attention needs no row for each edge either.
                inner = shares.detach().requires_grad_()
                (towards,) = torch.autograd.grad(multiply(edges, inner, table), inner, slope)
            return towards, multiply(edges, shares.index_select(0, edges.turned), slope), None

    return Gathering


def head_columns(width: int, heads: int) -> list[slice]:
    """Return the columns of each head, as evenly divided as possible; at most one head for each column."""
    cuts = np.linspace(0, width, min(heads, width) + 1).astype(int)
    return [slice(first, last) for first, last in pairwise(cuts.tolist())]


def layer(edges: Edges, table: Any, looking: Any, looked_at: Any, heads: int, dropped: Any = None) -> Any:
    """Return one layer of attention over a table (nodes, width), with two score weights; `dropped` zeroes some."""
    torch, columns = backend.import_torch(), head_columns(table.shape[1], heads)

    def by_head(vector: Any) -> Any:
        return torch.stack([(table[:, part] * vector[:, part]).sum(1) for part in columns], 1)

    pairs = by_head(looking).index_select(0, edges.starts) + by_head(looked_at).index_select(0, edges.ends)
    shares = attend(edges, torch.nn.functional.leaky_relu(pairs, LEAK))
    shares = shares if dropped is None else dropped(shares)
    return torch.cat([_gathering().apply(shares[:, at], table[:, part], edges) for at, part in enumerate(columns)], 1)


def layer_in_numpy(
    looped: sparse.csr_array, table: np.ndarray, looking: np.ndarray, looked_at: np.ndarray, heads: int
) -> np.ndarray:
    """Return the same layer for a whole graph, computed by NumPy. looped: the result of `with_loops`."""
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


FIRST_SLOPE = 0.25  # initial slope of a PReLU, as in PyTorch
SMALLEST = 1e-12  # least squared length, to avoid dividing by zero
NODES_SEEN, FEWEST_EPOCHS, MOST_EPOCHS = 1_500_000, 150, 600


class GraphMAEWeights(NamedTuple):
    """The token of hidden attributes, two encoding layers, and a predicting one; `looking` weighs an edge's start."""

    token: Any  # (1, attributes)
    table: Any  # (attributes, dim)
    looking: Any  # (1, dim)
    looked_at: Any  # (1, dim)
    bias: Any  # (1, dim)
    slope: Any  # (1, 1), slope of the PReLU below zero
    second: Any  # (dim, dim)
    second_looking: Any  # (1, dim)
    second_looked_at: Any  # (1, dim)
    second_bias: Any  # (1, dim)
    second_slope: Any  # (1, 1)
    bridge: Any  # (dim, dim), from the encoder to the decoder
    told: Any  # (attributes, dim), predicts attributes
    told_looking: Any  # (1, attributes)
    told_looked_at: Any  # (1, attributes)
    told_bias: Any  # (1, attributes)


class Masks(NamedTuple):
    """The nodes whose attributes a step hides."""

    hidden: np.ndarray  # nodes whose attributes are to be predicted
    tokens: np.ndarray  # the hidden nodes that get the token instead of attributes
    sources: np.ndarray  # (nodes,), the node whose attributes each node gets


class GraphMAE(Convolutional):
    """Hide the attributes of some nodes and learn, by graph attention, to predict them from the neighbours.

    GraphMAE: self-supervised masked graph autoencoders (Hou, Liu, Cen, Dong, Yang, Wang, Tang; 2022). It is good if
    neighbours share a class. Each step replaces the attributes of half of the nodes by a learned token, and a few of
    these by the attributes of another node. Two layers of graph attention make vectors. Those of hidden nodes are set
    to zero, and one more layer predicts their attributes x from the neighbours; the error is the mean of (1 − cos(x,
    x̂))^gamma. The learning rate falls as a cosine. The error needs only x·x̂ and ‖x̂‖. With x̂ = Wz + b, both follow
    from Wᵀx, a sparse product, and from WᵀW; so the error is exact without a table of nodes × attributes.

    The attributes of each node are divided by their sum. Four things differ from the authors' program. One factor
    scales all vectors, so that the mean square of their entries is one. The weight of an edge multiplies its attention,
    and a node attends to itself with the mean weight of an edge. Dropout drops the same entries of the token for all
    nodes. A graph of more than `nodes_per_step` nodes is trained in pieces. The defaults are the authors' for cora,
    except the weight decay (theirs for citeseer; 2e-4 on cora) and the epochs (theirs are 1,500 on cora, 300 on
    citeseer), which were chosen by scores on cora, citeseer and stdlib. More epochs give better vectors on most graphs,
    but worse ones on arnetminer. If a graph has no attributes, each node is its own attribute, and new nodes cannot be
    embedded.
    """

    title = "graphmae"
    growth = (
        "time: epochs × (edges + attribute entries + (nodes + attributes) × dim) × dim; "
        "memory: edges × heads + (nodes + attributes) × dim"
    )
    paper = "Hou, Liu, Cen, Dong, Yang, Wang, Tang: GraphMAE: self-supervised masked graph autoencoders, 2022"
    grid = {  # The authors choose these for each graph.
        "learning_rate": [], "hidden_share": [0.5, 0.75], "replaced_share": [0.0, 0.1], "gamma": [1.0, 3.0],
    }  # fmt: skip
    holds = Convolutional.holds | {"graphmae weights": GraphMAEWeights}
    learns = {"weights_": "GraphMAEWeights: The weights of the token and of all layers."}
    inputs = 2  # one that encodes attributes and one that predicts them
    prolongs = ()  # The learning rate of each step depends on the number of steps.

    heads: int = whole("Heads of attention, which divide the columns; at most one for each column.", default=4)
    hidden_share: float = number("Share of the nodes whose attributes are hidden.", default=0.5, above=0, below=1)
    replaced_share: float = number(
        "Share of the hidden nodes that get the attributes of another node.", default=0.05, least=0, below=1
    )
    gamma: float = number("Exponent of the error; higher values weigh well-predicted nodes less.", default=3.0, least=1)
    dropout: float = number("Share of a layer's inputs that is set to 0.", default=0.2, least=0, below=1)
    attention_dropout: float = number("Share of the attention that is set to 0.", default=0.1, least=0, below=1)
    weight_decay: float = number("Adam adds this multiple of the weights to gradients.", default=2e-5, least=0)
    epochs: int | None = shared(
        "epochs",
        default=None,
        about="Passes; each is a step on the whole graph, or on each of its pieces. None: 1.5 million divided by the "
        "number of nodes, from 150 to 600.",
    )

    def parameters_for(self, graph: AttributedGraph) -> dict[str, Any]:
        """Return the parameters for one graph, whose size decides the epochs if they are None."""
        values = super().parameters_for(graph)
        if values["epochs"] is None:
            values["epochs"] = self._epochs_for(len(graph))
        return values

    def _epochs_for(self, nodes: int) -> int:
        return min(max(NODES_SEEN // max(nodes, 1), FEWEST_EPOCHS), MOST_EPOCHS) if self.epochs is None else self.epochs

    def _first_weights(self, rng: np.random.Generator, attributes: int) -> GraphMAEWeights:
        dim, device = self.dim, self.device
        head = -(-dim // self.heads)
        slope = backend.import_torch().full((1, 1), FIRST_SLOPE, device=device)

        def encoder(inputs: int) -> tuple[Any, ...]:
            looks = (_first_normal(rng, (1, dim), dim + head, device) for _ in range(2))
            table = _first_normal(rng, (inputs, dim), inputs + dim, device)
            return (table, *looks, backend.zeros(dim, device), slope.clone().requires_grad_())

        layers = (*encoder(attributes), *encoder(dim))
        bridge = (2 * rng.random((dim, dim), np.float32) - 1) * np.float32(1 / np.sqrt(dim))  # PyTorch's default
        bridge = backend.import_torch().from_numpy(bridge).to(device).requires_grad_()
        decoder = _first_normal(rng, (attributes, dim), attributes + dim, device)
        looks = (_first_normal(rng, (1, attributes), 2 * attributes, device) for _ in range(2))
        token, bias = (backend.zeros(attributes, device) for _ in range(2))
        return GraphMAEWeights._make((token, *layers, bridge, decoder, *looks, bias))

    def _descent(self, weights: GraphMAEWeights) -> backend.Descent:
        return backend.Descent(weights, self.learning_rate, l2=self.weight_decay)

    def _set_rate(self, descent: backend.Descent, done: float) -> None:
        for group in descent.adam.param_groups:
            group["lr"] = self.learning_rate * (1 + np.cos(np.pi * done)) / 2

    def memory(self, sizes: Sizes) -> Moments:
        moments, part = super().memory(sizes), min(1, self.nodes_per_step / max(sizes.nodes, 1))
        edges = sizes.links + sizes.nodes
        width = sizes.attributes or sizes.nodes
        batches = int(part * edges * (32 + 20 * 3 * SINGLE * self.heads)) + 2 * SINGLE * width * self.dim
        training = {**moments["training"], "batches": moments["training"]["batches"] + batches}
        return {"training": training, "vectors": {**moments["vectors"], "attention": 40 * edges}}

    def _loss(self, weights: GraphMAEWeights, piece: Subgraph, rng: np.random.Generator) -> Any:
        masks = draw_masks(piece, self.hidden_share, self.replaced_share, rng)
        edges = piece.kept("edges", lambda: edges_of(piece.links, piece.device))
        dropped = partial(_drop, share=self.dropout, rng=rng)
        drop_attention = partial(_drop, share=self.attention_dropout, rng=rng)
        entries = piece.entries.copy()
        entries.data *= _kept(entries.nnz, self.dropout, rng)
        attributes = backend.BothWays(entries, piece.device)
        masked = mask(weights, attributes, masks, dropped(weights.token))
        vectors = encode(weights, edges, masked, self.heads, dropped, drop_attention)
        states = decode(weights, edges, vectors, masks, dropped, drop_attention)
        return scaled_cosine_error(weights, piece, states, masks.hidden, self.gamma)

    def _encode(self, weights: Any, links: sparse.csr_array, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        looped = with_loops(links)
        layers = (weights[1:6], weights[6:11])
        rows = attributes @ weights.table
        for at, (table, looking, looked_at, bias, slope) in enumerate(layers):
            if at:
                with one_blas_thread():
                    rows = rows @ table
            rows = layer_in_numpy(looped, rows, looking, looked_at, self.heads) + bias
            rows = np.where(rows > 0, rows, slope * rows)
        yield rows


def draw_masks(piece: Subgraph, hidden: float, replaced: float, rng: np.random.Generator) -> Masks:
    """Return random nodes to hide among those with attributes, and which of them get attributes of another node."""
    described = rng.permutation(np.flatnonzero(np.diff(piece.entries.indptr)))
    chosen = described[: max(int(hidden * len(described)), 1)]
    others = chosen[: int(replaced * len(chosen))]
    sources = np.arange(len(piece))
    sources[others] = rng.integers(len(piece), size=len(others))
    return Masks(np.sort(chosen), np.sort(chosen[len(others) :]), sources)


def mask(weights: GraphMAEWeights, attributes: backend.BothWays, masks: Masks, token: Any) -> Any:
    """Return the masked attributes times the first layer's table, (nodes, dim)."""
    torch = backend.import_torch()
    own = attributes @ weights.table
    shown = own.index_select(0, torch.from_numpy(masks.sources).to(own.device))
    return torch.where(_marks(masks.tokens, own), token @ weights.table, shown)


def encode(weights: GraphMAEWeights, edges: Any, rows: Any, heads: int, dropped: Any, drop_attention: Any) -> Any:
    """Return the vectors: two layers of attention, each with a bias and a PReLU."""
    prelu = backend.import_torch().nn.functional.prelu
    rows = layer(edges, rows, weights.looking, weights.looked_at, heads, drop_attention) + weights.bias
    rows = dropped(prelu(rows, weights.slope.reshape(1))) @ weights.second
    rows = layer(edges, rows, weights.second_looking, weights.second_looked_at, heads, drop_attention)
    return prelu(rows + weights.second_bias, weights.second_slope.reshape(1))


def decode(weights: GraphMAEWeights, edges: Any, vectors: Any, masks: Masks, dropped: Any, drop_attention: Any) -> Any:
    """Return the rows z (nodes, dim) from which Wz + b predicts attributes; rows of hidden nodes are zero before."""
    rows = vectors @ weights.bridge
    rows = dropped(rows.masked_fill(_marks(masks.hidden, rows), 0))
    looking, looked_at = (scores @ weights.told for scores in (weights.told_looking, weights.told_looked_at))
    return layer(edges, rows, looking, looked_at, 1, drop_attention)


def scaled_cosine_error(
    weights: GraphMAEWeights, piece: Subgraph, states: Any, hidden: np.ndarray, gamma: float
) -> Any:
    """Return the mean of (1 − cos(x, x̂))^gamma over the hidden nodes, without computing x̂."""
    torch = backend.import_torch()
    at = torch.from_numpy(hidden).to(states.device)
    squares = piece.entries[hidden].power(2).sum(axis=1)
    lengths = torch.from_numpy(np.sqrt(squares).astype(np.float32)).to(states.device)
    z = states.index_select(0, at)
    towards = (piece.attributes @ weights.told).index_select(0, at)
    products = (towards * z).sum(1) + (piece.attributes @ weights.told_bias.T).index_select(0, at)[:, 0]
    gram, cross = weights.told.T @ weights.told, weights.told_bias @ weights.told
    predicted = ((z @ gram) * z).sum(1) + 2 * (z * cross).sum(1) + weights.told_bias.square().sum()  # ‖x̂‖²
    cosines = products / (lengths * predicted.clamp_min(SMALLEST).sqrt())
    return (1 - cosines).clamp_min(0).pow(gamma).mean()


def _marks(nodes: np.ndarray, table: Any) -> Any:
    """Return a tensor (rows, 1) that is True for these nodes."""
    marks = np.zeros((len(table), 1), bool)
    marks[nodes] = True
    return backend.import_torch().from_numpy(marks).to(table.device)


def _kept(shape: Any, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return random factors that set a share of numbers to 0 and scale the others up to keep the mean."""
    return (rng.random(shape, np.float32) >= share).astype(np.float32) / np.float32(1 - share)


def _drop(table: Any, share: float, rng: np.random.Generator) -> Any:
    """Return the table after dropout: a random share of its entries is 0."""
    if share == 0:
        return table
    return table * backend.import_torch().from_numpy(_kept(tuple(table.shape), share, rng)).to(table.device)


def _first_normal(rng: np.random.Generator, shape: tuple[int, int], fans: int, device: str) -> Any:
    """Return initial weights: Glorot and Bengio's normal distribution, with the gain of a layer before a ReLU."""
    values = rng.standard_normal(shape, np.float32) * np.float32(2 / np.sqrt(fans))
    return backend.import_torch().from_numpy(values).to(device).requires_grad_()
