"""EP, HNE and UPP-SNE: what attributes mean is learned from links, without PyTorch."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.kernels import bags, cpu
from neural_brane.kernels.bags import Bags, Steps, Trained, propagate
from neural_brane.kernels.model import padded, rows_of, zeros
from neural_brane.linalg.tables import Tables, tables_on
from neural_brane.linalg.weights import without_self_loops
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.descent import uniform
from neural_brane.methods.features import own_attributes, proper_links, row_blocks
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.skipgram import count_visits, two_seeds
from neural_brane.methods.spectral import weighed
from neural_brane.methods.training import ALIAS, DOUBLE, SINGLE, WEIGHED, Loop, Moments, neighbour_bytes
from neural_brane.progress import Meter
from neural_brane.sampling.tables import alias_table
from neural_brane.sampling.walks import WalkSampler, window_targets


class LearnedTables(NamedTuple):
    """The two tables, and how their training went."""

    attributes: np.ndarray  # (attributes, dim - dim // 2) float32; no columns where the graph has no attributes
    nodes: np.ndarray  # (nodes, the other columns) float32
    loss_history: list[float]  # the mean loss of a node, epoch by epoch, of both tables together


class EP(InductiveEmbedder):
    """Learning graph representations with embedding propagation (García-Durán, Niepert; 2017): its EP-B.

    Every attribute has a row, and so has every node. A node's own vector is the mean of its attributes' rows, and its
    reconstruction the mean over all attributes of all its neighbours. Training brings the reconstruction closer to the
    node's own vector than to that of a node drawn at random, by a margin: max(0, margin + ‖around − own‖ −
    ‖around − other‖). The same is done with the nodes' own rows, where a node is reconstructed by the mean of its
    neighbours' rows. A node's vector is its own of both kinds side by side: half of it comes from attributes (one
    column more where dim is odd), half from the nodes. Without attributes the nodes' rows are the whole vector.

    Amounts of attributes and weights of edges weigh these means. A node without attributes has its reconstruction in
    their place. A new node's second half is the mean of its neighbours' rows, zero where it has none.

    Adam takes a step for every 64 nodes, with margin 20 for 200 epochs. Its running means change for the rows of a
    batch alone, so that a step costs what the batch does: rows of nodes then move less than by an Adam that moves every
    row in each step. Nothing is held out to choose a margin or to stop by.
    """

    title = "ep"
    growth = "time: epochs × edges × attributes of a node × dim; memory: edges + entries + (nodes + attributes) × dim"
    paper = "García-Durán, Niepert: Learning graph representations with embedding propagation, 2017"
    grid = {"learning_rate": [], "margin": [1.0, 5.0, 10.0, 20.0], "epochs": [50, 200]}
    small = {"epochs": 2}
    trial = {"epochs": 2}
    holds = {"ep": LearnedTables}
    similarity = "distance"
    why_not = "it keeps its tables without the running means of Adam; transform embeds new nodes"
    prolongs = ("epochs",)

    margin: float = number(
        "By how much the random node must be farther away: the paper's gamma.", default=20.0, above=0
    )
    learning_rate: float = shared("learning_rate", default=0.001, about="Of Adam.")
    batch_size: int = whole("Nodes reconstructed in a step.", default=64)
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

    def work(self, sizes: Sizes) -> float:
        """Rows pooled in all epochs, times their width."""
        each = 1 + sizes.attribute_entries / max(sizes.nodes, 1)
        return float(self.epochs * (sizes.links + 2 * sizes.nodes) * each * self.dim)

    def _widths(self, attributes: bool) -> tuple[int, int]:
        """The columns of the attributes' table and of the nodes'."""
        return (self.dim - self.dim // 2, self.dim // 2) if attributes else (0, self.dim)

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedTables:
        links = proper_links(graph, "there is nothing to make them from")
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
        """A table of this width with a row for each column of `own`, and the mean loss of every epoch."""
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
            steps = Steps(self.learning_rate, epoch * per_epoch, self.batch_size)
            losses = propagate(Trained(**state), bags, order, drawn, self.margin, steps)
            return float(losses.mean(dtype=np.float64))

        loop = Loop(self._stages.stage(name), meter, self.epochs, learning_rate=self.learning_rate)
        losses = loop.run(state, step)
        return np.ascontiguousarray(state["table"][:, :width]), np.array(losses)

    def _blocks(self, graph: AttributedGraph, learned: LearnedTables) -> Iterator[np.ndarray]:
        links = without_self_loops(graph.adjacency)
        for rows in row_blocks(len(graph)):
            own = graph.attributes[rows]
            missing = np.diff(own.indptr) == 0
            around = _only(links[rows], missing) @ graph.attributes
            yield np.hstack([_means(own + around, learned.attributes), learned.nodes[rows]])

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        missing = np.diff(new.attributes.indptr) == 0
        around = _only(new.links, missing) @ fitted.graph.attributes + _only(new.among, missing) @ new.attributes
        learned: LearnedTables = fitted.learned
        return np.hstack([_means(new.attributes + around, learned.attributes), _means(new.links, learned.nodes)])


def bags_of(links: sparse.csr_array, own: sparse.csr_array) -> Bags:
    """The bags of nodes that have the rows `own` (nodes, rows) and these neighbours."""
    sizes = abs(own).sum(axis=1, dtype=np.float64)
    return Bags(rows_of(links), rows_of(own), sizes, links @ sizes)


def random_table(rows: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform as Glorot and Bengio's, in columns that a kernel can take."""
    table, span = zeros(rows, padded(width)), np.sqrt(6 / (rows + width))
    for block in row_blocks(rows):
        some = table[block, :width]
        some[:] = (rng.random(some.shape, np.float32) - np.float32(0.5)) * np.float32(2 * span)
    return table


def draw(nodes: np.ndarray, others: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The nodes in random order and, for each of them, a random one of the others that is not the node itself."""
    order = rng.permutation(nodes)
    at = rng.integers(0, len(others) - 1, len(order))
    return order, others[at + (at >= np.searchsorted(others, order))]


def _only(links: sparse.csr_array, rows: np.ndarray) -> sparse.csr_array:
    """Links whose other rows are empty."""
    return sparse.csr_array(sparse.diags_array(rows.astype(np.float32)) @ links)


def _means(bags: sparse.csr_array, table: np.ndarray) -> np.ndarray:
    """The mean of a table's rows in each bag, weighed by its amounts; zero where it is empty."""
    sizes = abs(bags).sum(axis=1)[:, None]
    return ((bags @ table) / np.where(sizes > 0, sizes, 1)).astype(np.float32)


MEAN_SHARE, SQUARE_SHARE, SMALLEST = 0.9, 0.999, 1e-8  # constants of Adam that its paper advises

LEAST_LINKS, BATCHES = 20_000, 50  # least links of a step, and steps that make one pass over a large graph


class Pairs(NamedTuple):
    """Nodes by their numbers, and whether each two of them are linked."""

    first: np.ndarray
    second: np.ndarray
    signs: np.ndarray  # 1 where they are linked, -1 where not
    weights: np.ndarray  # how much each pair counts


class LearnedMap(NamedTuple):
    """The map, and how its training went."""

    map: np.ndarray  # U (attributes, dim)
    threshold: np.ndarray  # t (1,): links are expected where inner products are above it
    loss_history: list[float]  # the mean over the pairs of each step, with the regularisation


class HNE(InductiveEmbedder):
    """Heterogeneous network embedding via deep architectures (Chang, Han, Tang, Qi, Aggarwal, Huang; 2015).

    In its linear form, and for nodes of one kind, so that there is one map U of attributes x to vectors Uᵀx. The
    inner product of two nodes less a threshold t, s = xᵀUUᵀy − t, is to be positive if and only if they are linked:
    U and t minimise the mean of ln(1 + exp(∓s)) over linked and unlinked pairs, and l2 / links × ‖U‖². The paper
    has a second map for images, which a deep network sees before; these graphs have none.

    Attributes are tf-idf in rows of length one, as the paper's texts are. Each step draws some links, and as many
    unlinked pairs; a link counts as much as its weight. Adam takes the steps in place of the paper's plain
    descent, and t is learned. The regularisation is divided by the number of links, as the sum of losses is: then one
    value fits small and large graphs. The defaults were chosen by the classes of citeseer, cora, wiki, caltech36 and
    acm. A node without attributes has the vector zero. In a graph without any attribute each node is its own attribute,
    and only its own nodes can be embedded.
    """

    title = "hne"
    growth = "time: epochs × (batch_size × entries of a node + attributes) × dim; memory: edges + attributes × dim"
    paper = "Chang, Han, Tang, Qi, Aggarwal, Huang: Heterogeneous network embedding via deep architectures, 2015"
    grid = {"learning_rate": [0.003, 0.01, 0.03], "l2": [0.05, 0.5, 5.0]}  # its paper does not say what was searched
    small = {"epochs": 2}
    holds = {"hne": LearnedMap}
    similarity = "dot"  # it is trained on inner products
    by_attributes = True
    why_not = "its map is shared by all nodes, so that more steps move all of them; transform embeds new nodes"
    prolongs = ("epochs",)

    l2: float = number("Weight of the regularisation, as if losses were summed over all links.", default=0.5, least=0)
    batch_size: int | None = whole(
        "Links of a step, beside as many pairs without one; when None a fiftieth of all links, and 20,000 at least, or "
        "all where there are fewer.",
        default=None,
    )
    learning_rate: float = shared("learning_rate", default=0.01, about="Of Adam.")
    epochs: int = shared("epochs", default=100, about="Steps, each over `batch_size` links.")
    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, sizes.attributes or sizes.nodes
        entries = sizes.attribute_entries or n
        pairs = 2 * self._batch(sizes.edges)
        nodes = min(2 * pairs, n)
        matrices = {"matrices": 8 * entries + 12 * sizes.links}
        return {
            "weighing attributes": {"matrices": 2 * WEIGHED * max(entries, sizes.links)},
            "training": matrices
            | {
                "tables": 5 * SINGLE * width * self.dim,  # the map, its gradient, Adam's two means and what it takes
                "batches": SINGLE * self.dim * (2 * pairs + nodes) + 16 * DOUBLE * pairs + 24 * nodes * entries // n,
            },
            "vectors": matrices | {"vectors": SINGLE * (n + width) * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied in all steps."""
        width, entries = sizes.attributes or sizes.nodes, sizes.attribute_entries or sizes.nodes
        pairs = 2 * self._batch(sizes.edges)
        nodes = min(2 * pairs, sizes.nodes)
        return float(self.epochs * self.dim * (2 * nodes * entries / max(sizes.nodes, 1) + 4 * pairs + 8 * width))

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedMap:
        own = own_attributes(graph)
        attributes = weighed(own, own)
        table = uniform(np.random.default_rng(seed), (attributes.shape[1], self.dim))
        weights = {"U": table, "t": np.zeros(1, np.float32)}
        links = Links(graph.adjacency)
        adam, tables = Adam(weights, self.learning_rate), tables_on("cpu", self.threads)

        def step(epoch: int) -> float:
            pairs = links.draw(self._batch(links.count), np.random.default_rng([seed, epoch]))
            l2 = self.l2 / max(links.count, 1)
            loss, *gradients = slopes(attributes, weights["U"], weights["t"], pairs, l2=l2, tables=tables)
            adam.step(gradients, epoch + 1)
            return loss

        losses = Loop.of(self, "map").run(adam.arrays, step)
        return LearnedMap(weights["U"], weights["t"], losses)

    def _batch(self, links: int) -> int:
        return min(self.batch_size or max(LEAST_LINKS, links // BATCHES), links)

    def _blocks(self, graph: AttributedGraph, learned: LearnedMap) -> Iterator[np.ndarray]:
        own = own_attributes(graph)
        return _vectors(weighed(own, own), learned.map)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        attributes = weighed(new.attributes, fitted.graph.attributes)
        return stack(_vectors(attributes, fitted.learned.map), len(new), self.dim)


class Links:
    """The links of a graph, to be drawn from beside pairs that have none."""

    def __init__(self, adjacency: sparse.csr_array):
        entries = sparse.triu(without_self_loops(adjacency), format="coo")
        self.nodes, self.count = adjacency.shape[0], entries.nnz
        self.rows, self.columns = entries.row, entries.col
        self.weights = entries.data / entries.data.mean() if self.count else entries.data
        self.keys = np.sort(self._keys(entries.row, entries.col))

    def draw(self, size: int, rng: np.random.Generator) -> Pairs:
        """So many links, and as many pairs of any two nodes, less those that are linked."""
        links = np.arange(size) if size == self.count else rng.choice(self.count, size, replace=False, shuffle=False)
        some, others = rng.integers(self.nodes, size=(2, size))
        keys = self._keys(np.minimum(some, others), np.maximum(some, others))
        places = np.minimum(np.searchsorted(self.keys, keys), self.count - 1)
        apart = (some != others) & (self.keys[places] != keys if self.count else True)
        some, others = some[apart], others[apart]
        signs = np.repeat([1.0, -1.0], [size, len(some)])
        weights = np.concatenate([self.weights[links], np.ones(len(some))])
        first, second = (self.rows[links], some), (self.columns[links], others)
        return Pairs(np.concatenate(first), np.concatenate(second), signs, weights)

    def _keys(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """A number for every two nodes, of which the first has the smaller number."""
        return first.astype(np.int64) * self.nodes + second


class Adam:
    """Steps of arrays down their gradients, by running means of these; all of its state can be kept."""

    def __init__(self, weights: dict[str, np.ndarray], learning_rate: float):
        self.weights, self.rate = weights, learning_rate
        self.means = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.squares = {name: np.zeros_like(weight) for name, weight in weights.items()}
        means = {f"{name}, mean": mean for name, mean in self.means.items()}
        self.arrays = weights | means | {f"{name}, square": square for name, square in self.squares.items()}

    def step(self, gradients: list[np.ndarray], number: int) -> None:
        """Take step `number`, from 1, in place; gradients are written over."""
        for name, gradient in zip(self.weights, gradients, strict=True):
            mean, square = self.means[name], self.squares[name]
            mean *= MEAN_SHARE
            mean += (1 - MEAN_SHARE) * gradient
            square *= SQUARE_SHARE
            gradient *= gradient
            gradient *= 1 - SQUARE_SHARE
            square += gradient
            np.sqrt(square / (1 - SQUARE_SHARE**number), out=gradient)
            gradient += SMALLEST
            self.weights[name] -= self.rate / (1 - MEAN_SHARE**number) * mean / gradient


def slopes(
    attributes: sparse.csr_array, table: np.ndarray, threshold: np.ndarray, pairs: Pairs, *, l2: float, tables: Tables
) -> tuple[float, np.ndarray, np.ndarray]:
    """The mean of ln(1 + exp(∓(xᵀUUᵀy − t))) over pairs, and l2 ‖U‖²; and its gradients by U and t.

    Only the pairs' nodes are looked at. The gradient by their vectors is a sparse matrix times the vectors.
    """
    nodes, places = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = np.split(places, 2)
    rows, transposed = tables.both_ways(attributes[nodes])
    vectors = rows @ table
    apart = pairs.signs * (np.einsum("ij,ij->i", vectors[first], vectors[second], dtype=np.float64) - threshold)
    loss = np.mean(pairs.weights * np.logaddexp(0, -apart)) + l2 * np.square(table, dtype=np.float64).sum()
    pulls = -pairs.signs * pairs.weights * expit(-apart) / len(apart)
    both = (np.tile(pulls, 2), (places, np.concatenate([second, first])))
    moved = tables.matrix(sparse.csr_array(both, shape=(len(nodes), len(nodes)))) @ vectors
    gradient = transposed @ moved
    gradient += np.float32(2 * l2) * table
    return float(loss), gradient, np.array([-pulls.sum()], np.float32)


def _vectors(attributes: sparse.csr_array, table: np.ndarray) -> Iterator[np.ndarray]:
    """The vectors of nodes with these attributes, some nodes at a time."""
    return (attributes[rows] @ table for rows in row_blocks(attributes.shape[0]))


NEGATIVE_POWER = 0.75
FEWEST_WALKS = 150_000  # in all, unless their number is given: a small graph needs as many steps as a larger one
STEPS_AT_ONCE = 64  # trained between two looks at the checkpoint


class LearnedAngles(NamedTuple):
    """The map from attributes to angles, and how its training went."""

    maps: np.ndarray  # (attributes, dim - dim // 2) float32
    loss_history: list[float]  # the mean loss of a target, a context or a negative, some batches at a time


class UPPSNE(InductiveEmbedder):
    """User profile preserving social network embedding (Zhang, Yin, Zhu, Zhang; 2017).

    A node's vector is made of its attributes x alone: the cosines and the sines of some angles μ·x, divided by the
    square root of their number, as random Fourier features are. But the μ are learned, together with a context vector
    per node, by skip-gram: a node's vector predicts the nodes around it on random walks, and not those drawn at random
    by frequency ** 0.75. So attributes are mapped in the way that agrees with the links, and new nodes are embedded by
    their attributes. There are dim / 2 angles; where dim is odd, the last one has no sine.

    Of every walk one place is drawn, whose node predicts all others within the window; each of them comes with
    negatives of its own. The authors take plain gradient steps: of all pairs at once in the paper, pair by pair in
    their later program, a hundred million of them. Here Adam takes a step for every 64 walks, which needs far fewer;
    its rate was chosen by the classes of citeseer, cora and wiki, and the number of walks by those of caltech36. Rows
    of attributes have length one, so that angles stay small whatever the amounts. The vectors that come out are not
    divided by the root of the number of angles: a regression with a penalty tells classes better by them on wiki and
    caltech36. A node without attributes has no angles, and so the vector that all such nodes share. In a graph without
    any attribute each node is its own, and only its own nodes can be embedded.
    """

    title = "upp-sne"
    growth = "time: nodes × walks × window × dim; memory: edges + entries + (nodes + attributes) × dim"
    paper = "Zhang, Yin, Zhu, Zhang: User profile preserving social network embedding, 2017"
    grid = {"learning_rate": [0.003, 0.01, 0.03], "walks_per_node": [10, 40]}
    small = {"walks_per_node": 1, "walk_length": 10}
    trial = {"walks_per_node": 1}
    holds = {"upp-sne": LearnedAngles}
    by_attributes = True
    why_not = "its map is shared by all nodes, so that more steps move all of them; transform embeds new nodes"

    walks_per_node: int | None = whole(
        "Walks that start at each node; one place of each is a source. None: 40, and more in a small graph, so that "
        "there are 150,000 in all.",
        default=None,
    )
    walk_length: int = whole("Nodes in a walk.", default=100, least=2)
    window: int = whole("A source is paired with the nodes of its walk at most so many places away.", default=10)
    negatives: int = whole("Nodes drawn against each pair, in proportion to (visits of walks) ** 0.75.", default=5)
    learning_rate: float = shared("learning_rate", default=0.01, about="Of Adam.")
    batch_size: int = whole("Walks in a step.", default=64)
    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, padded(self.dim - self.dim // 2)
        attributes, entries = (sizes.attributes, sizes.attribute_entries) if sizes.attributes else (n, n)
        targets = 2 * self.window * (1 + self.negatives)
        walks = STEPS_AT_ONCE * self.batch_size * (4 * self.walk_length + 4 * targets + 24)
        held = {
            "tables": 3 * SINGLE * width * (attributes + 2 * n) + 8 * (attributes + n),
            "matrices": 8 * entries + 16 * n + 8 * sizes.links,
            "sampling": neighbour_bytes(sizes) + 20 * n,
        }
        return {
            "preparing draws": held | {"sampling": held["sampling"] + ALIAS * n},
            "training": held | {"batches": walks + self.batch_size * targets * (28 + 2 * SINGLE * width)},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers of the vectors of all pairs and their negatives."""
        pairs = self._walks(sizes.nodes) * 2 * min(self.window, self.walk_length)
        return float(pairs * (1 + self.negatives) * 2 * padded(self.dim - self.dim // 2))

    def _walks(self, nodes: int) -> int:
        """Count all walks."""
        if self.walks_per_node is not None:
            return nodes * self.walks_per_node
        return nodes * max(40, -(-FEWEST_WALKS // max(nodes, 1)))

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedAngles:
        links = proper_links(graph, "there are no pairs to learn from")  # a self-loop pairs a node with itself
        attributes = unit(own_attributes(graph))
        own_seeds = two_seeds(seed)
        tables = bags.empty_tables(attributes.shape[1], len(graph), self.dim)
        maps, rng = tables.maps[:, : self.dim - self.dim // 2], np.random.default_rng(own_seeds[0])
        for rows in row_blocks(len(maps)):  # uniform in ±1 / (2 columns), as in the authors' program
            some = maps[rows]
            some[:] = (rng.random(some.shape, np.float32) - np.float32(0.5)) / np.float32(maps.shape[1])
        with cpu.threads(self.threads):
            sampler = WalkSampler(links, length=self.walk_length, seed=seed)
            visits = self._stages.once("visits", lambda: count_visits(sampler.draw, len(graph), len(graph)))
            frequent, own = alias_table(visits**NEGATIVE_POWER), rows_of(attributes)
            total, chunk = self._walks(len(graph)), STEPS_AT_ONCE * self.batch_size
            numbers: dict[str, Any] = {"losses": []}

            def step(at: int) -> float:
                first = at * chunk
                walks = sampler.draw(first, min(chunk, total - first))
                places = places_of(walks, own_seeds[1], at)
                targets = window_targets(
                    walks, places, window=self.window, negatives=self.negatives, frequent=frequent, seed=own_seeds[1],
                    first=first,
                )  # fmt: skip
                steps = bags.Steps(self.learning_rate, at * STEPS_AT_ONCE, self.batch_size)
                losses = bags.train(tables, own, walks[np.arange(len(walks)), places], targets, self.dim, steps)
                numbers["losses"].append(float(losses.mean(dtype=np.float64)))
                return float(numbers["losses"][-1])

            loop = Loop(
                self._stages.stage("tables"), Meter(self.progress, total, "walks"), -(-total // chunk),
                units=lambda at: min(at * chunk, total), learning_rate=self.learning_rate,
            )  # fmt: skip
            losses = loop.run(tables._asdict(), step, numbers=numbers)
        return LearnedAngles(np.ascontiguousarray(maps), losses)

    def _blocks(self, graph: AttributedGraph, learned: LearnedAngles) -> Iterator[np.ndarray]:
        return embed(own_attributes(graph), learned.maps, self.dim)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        return stack(embed(new.attributes, fitted.learned.maps, self.dim), len(new), self.dim)


def embed(attributes: sparse.csr_array, maps: np.ndarray, dim: int) -> Iterator[np.ndarray]:
    """The vectors of nodes with these attributes, some at a time: cosines, then sines."""
    for rows in row_blocks(attributes.shape[0]):
        angles = unit(attributes[rows]) @ maps
        yield np.hstack([np.cos(angles), np.sin(angles[:, : dim - maps.shape[1]])])


def unit(attributes: sparse.csr_array) -> sparse.csr_array:
    """Attributes with rows of length one; an empty row stays empty."""
    lengths = np.sqrt((attributes.astype(np.float64) ** 2).sum(axis=1))
    scales = np.repeat(1 / np.where(lengths > 0, lengths, 1), np.diff(attributes.indptr))
    values = (attributes.data * scales).astype(np.float32)
    return sparse.csr_array((values, attributes.indices, attributes.indptr), shape=attributes.shape)


def places_of(walks: np.ndarray, seed: int, step: int) -> np.ndarray:
    """A random place of each of the walks (k, length) before its end."""
    chances = np.random.default_rng([seed, step]).random(len(walks))
    return (chances * (walks >= 0).sum(axis=1)).astype(np.int64)
