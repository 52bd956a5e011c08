"""EP: learn rows of attributes and of nodes that reconstruct each node from its neighbours."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.kernels import cpu
from neural_brane.kernels.bags import AdamTable, PropagationBags, StepRange, propagate
from neural_brane.kernels.model import padded, rows_of, zeros
from neural_brane.linalg.weights import without_self_loops
from neural_brane.methods.base import Fitted, InductiveEmbedder
from neural_brane.methods.features import proper_links, row_blocks
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.training import DOUBLE, SINGLE, Loop, Moments
from neural_brane.progress import Meter


class LearnedTables(NamedTuple):
    """The two tables and the losses of their training."""

    attributes: np.ndarray  # (attributes, dim - dim // 2) float32; no columns if the graph has no attributes
    nodes: np.ndarray  # (nodes, remaining columns) float32
    loss_history: list[float]  # mean loss of a node per epoch, sum of both tables


class EP(InductiveEmbedder):
    """Learn rows of attributes and nodes so that neighbours reconstruct each node.

    Learning graph representations with embedding propagation (García-Durán, Niepert; 2017), variant EP-B. Every
    attribute and every node has a row. A node's own vector is the mean of the rows of its attributes; its
    reconstruction is the mean over all attributes of its neighbours. Training brings the reconstruction closer to the
    own vector than to that of a random node: max(0, margin + ‖reconstruction − own‖ − ‖reconstruction − random‖). The
    rows of nodes learn in the same way, from the mean of the neighbours' rows. The output joins the two: half comes
    from attributes (one column more if dim is odd), half from nodes. Without attributes, all columns come from nodes.

    Amounts of attributes and weights of edges weigh these means. A node without attributes uses its reconstruction
    instead. The second half of a new node is the mean of its neighbours' rows, or zero without neighbours. So EP is
    good for new nodes with either attributes or links.

    Adam takes a step for every 64 nodes, with margin 20, for 200 epochs. Its running means change only for the rows of
    a batch, so that the cost of a step depends on the batch alone; rows of nodes then move less than with an Adam that
    updates every row. No nodes are held out to choose the margin or to stop early.
    """

    title = "ep"
    growth = "time: epochs × edges × attributes of a node × dim; memory: edges + entries + (nodes + attributes) × dim"
    paper = "García-Durán, Niepert: Learning graph representations with embedding propagation, 2017"
    grid = {"learning_rate": [], "margin": [1.0, 5.0, 10.0, 20.0], "epochs": [50, 200]}
    small = {"epochs": 2}
    trial = {"epochs": 2}
    holds = {"ep": LearnedTables}
    learns = {
        "attributes_": "ndarray (attributes, columns): The rows of the attributes.",
        "nodes_": "ndarray (nodes, columns): The rows of the nodes.",
        "loss_history_": "list of float: Mean loss of a node for each epoch.",
    }
    similarity = "distance"
    why_not = "it keeps its tables without Adam's running means; transform embeds new nodes"
    prolongs = ("epochs",)

    margin: float = number(
        "Distance by which the random node must be farther away, the paper's gamma.", default=20.0, above=0
    )
    learning_rate: float = shared("learning_rate", default=0.001, about="Learning rate of Adam.")
    batch_size: int = whole("Nodes in a batch.", default=64)
    epochs: int = shared("epochs", default=200, about="Passes over the nodes.")
    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def memory(self, sizes: Sizes) -> Moments:
        n, (wide, narrow) = sizes.nodes, self._widths(sizes.attribute_entries > 0)
        rows = {"attributes": sizes.attributes * padded(wide), "nodes": n * padded(narrow)}
        done = SINGLE * sizes.attributes * wide
        links = {"matrices": (2 * DOUBLE) * sizes.links + 24 * n}
        step = 20 * self.batch_size * (2 + sizes.links // max(n, 1)) * (1 + sizes.attribute_entries // max(n, 1))
        batches = {"batches": 40 * n + step + SINGLE * self.batch_size * 3 * padded(wide)}
        return {
            "attributes": links | {"tables": 3 * SINGLE * rows["attributes"] + 8 * sizes.attributes} | batches,
            "nodes": links | {"tables": 3 * SINGLE * rows["nodes"] + 8 * n + done} | batches,
            "vectors": {"tables": done + SINGLE * n * narrow, "vectors": SINGLE * n * self.dim},
        }

    def _widths(self, attributes: bool) -> tuple[int, int]:
        """Return the widths of the attributes' table and of the nodes' table."""
        return (self.dim - self.dim // 2, self.dim // 2) if attributes else (0, self.dim)

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedTables:
        links = proper_links(graph, "no node can be reconstructed from its neighbours")
        wide, narrow = self._widths(graph.attributes.nnz > 0)
        own = (graph.attributes, sparse.eye_array(len(graph), dtype=np.float32, format="csr"))
        meter = Meter(self.progress, 2 * self.epochs if wide and narrow else self.epochs, "epochs")
        tables, history = [], np.zeros(self.epochs)
        with cpu.threads(self.threads):
            for at, (name, matrix, width) in enumerate(zip(("attributes", "nodes"), own, (wide, narrow), strict=True)):
                table, losses = self._train(name, links, matrix, width, np.random.SeedSequence([seed, at]), meter)
                tables.append(table)
                history += losses
        return LearnedTables(tables[0], tables[1], history.tolist())

    def _train(
        self, name: str, links: sparse.csr_array, own: sparse.csr_array, width: int, seed: np.random.SeedSequence,
        meter: Meter,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return a table of this width with a row for each column of `own`, and the mean loss of every epoch."""
        bags = bags_of(links, own)
        nodes, others = np.flatnonzero((bags.sizes > 0) & (bags.around > 0)), np.flatnonzero(bags.sizes > 0)
        if width == 0 or len(others) < 2:
            return np.zeros((own.shape[1], width), np.float32), np.zeros(self.epochs)
        first, *_ = seed.spawn(1)
        state = {"table": random_table(own.shape[1], width, np.random.default_rng(first))}
        state |= {part: zeros(*state["table"].shape) for part in ("mean", "square")}
        per_epoch = -(-len(nodes) // self.batch_size)

        def step(epoch: int) -> float:
            order, drawn = draw(nodes, others, np.random.default_rng([*seed.generate_state(2), epoch]))
            steps = StepRange(self.learning_rate, epoch * per_epoch, self.batch_size)
            losses = propagate(AdamTable(**state), bags, order, drawn, self.margin, steps)
            return float(losses.mean(dtype=np.float64))

        loop = Loop(self._stages.stage(name), meter, self.epochs, learning_rate=self.learning_rate)
        losses = loop.run(state, step)
        return np.ascontiguousarray(state["table"][:, :width]), np.array(losses)

    def _blocks(self, graph: AttributedGraph, learned: LearnedTables) -> Iterator[np.ndarray]:
        links = without_self_loops(graph.adjacency)
        for rows in row_blocks(len(graph)):
            own = graph.attributes[rows]
            around = _only(links[rows], np.diff(own.indptr) == 0) @ graph.attributes
            yield np.hstack([_means(own + around, learned.attributes), learned.nodes[rows]])

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        missing = np.diff(new.attributes.indptr) == 0
        around = _only(new.links, missing) @ fitted.graph.attributes + _only(new.among, missing) @ new.attributes
        learned: LearnedTables = fitted.learned
        return np.hstack([_means(new.attributes + around, learned.attributes), _means(new.links, learned.nodes)])


def bags_of(links: sparse.csr_array, own: sparse.csr_array) -> PropagationBags:
    """Return the bags of nodes with these neighbours and the table rows in `own` (nodes, rows)."""
    sizes = abs(own).sum(axis=1, dtype=np.float64)
    return PropagationBags(rows_of(links), rows_of(own), sizes, links @ sizes)


def random_table(rows: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Return a table of Glorot and Bengio's uniform numbers, padded to the width that the kernels need."""
    table, span = zeros(rows, padded(width)), np.sqrt(6 / (rows + width))
    for block in row_blocks(rows):
        drawn = rng.random(table[block, :width].shape, np.float32)
        table[block, :width] = (drawn - np.float32(0.5)) * np.float32(2 * span)
    return table


def draw(nodes: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes in random order, and for each a random node of `others` that is not the node itself."""
    order = rng.permutation(nodes)
    at = rng.integers(0, len(others) - 1, len(order))
    return order, others[at + (at >= np.searchsorted(others, order))]


def _only(links: sparse.csr_array, rows: np.ndarray) -> sparse.csr_array:
    """Return the links with all rows but the marked ones empty."""
    return sparse.csr_array(sparse.diags_array(rows.astype(np.float32)) @ links)


def _means(bags: sparse.csr_array, table: np.ndarray) -> np.ndarray:
    """Return the mean of a table's rows in each bag, weighed by amounts; zero for an empty bag."""
    sizes = abs(bags).sum(axis=1)[:, None]
    return ((bags @ table) / np.where(sizes > 0, sizes, 1)).astype(np.float32)
