"""Neural-Brane: join the paper's model, which learns from triplets, with one SVD of attributes and links."""

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.files.checkpoints import Stages
from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Changes, Newcomers, carry
from neural_brane.graph.memory import Sizes
from neural_brane.insight.contributions import PooledReasons
from neural_brane.kernels.model import POOLING, Bags, Model, Settings, bags_of, padded, zeros
from neural_brane.linalg.tables import tables_on
from neural_brane.linalg.weights import distinguishes_nodes
from neural_brane.methods.base import Fitted, InductiveEmbedder, Start, require
from neural_brane.methods.neural_brane.parts import (
    Joint,
    JointReasons,
    LearnedPart,
    column_scale,
    hops_in,
    join,
    kernel_settings,
    learn,
    learned_vectors,
    side_by_side,
    spectral_part,
)
from neural_brane.methods.neural_brane.training import GradientDescent, random_table, require_room, start_numbers
from neural_brane.methods.parameters import choice, flag, number, numbers, shared, whole
from neural_brane.methods.spectral import Decomposition, follow_changes, place_newcomers, spectral_reasons
from neural_brane.methods.training import ALIAS, SINGLE, Moments, neighbour_bytes, spectral_moments
from neural_brane.sampling.tables import can_rank

# Recipes are named settings: the authors' released program, the paper's text, and our default. In the first two, half
# of the columns come from attributes and half from neighbours, and there is no spectral part. The default has a
# spectral and a learned part. benchmarks/defaults.py chose its values on ten graphs; no reported result uses its seeds.

_COMMON: dict[str, Any] = {"table_std": 0.01, "learning_rate": 0.5, "l2": 5e-5, "loss": "mean", "zero_floor": False}
_PROGRAM: dict[str, Any] = {"weight_std": 0.1, "bias": False, "regularise": "hidden", "negative_power": 0.75}
_LEARNED_ALONE: dict[str, Any] = {
    "batch_size": 100, "batches_per_epoch": 1000, "epochs": 30, "tolerance": None, "centre": False, "length": 0.0,
}  # fmt: skip

SPECTRAL_SHARE = {"released": 0.0, "paper": 0.0, "default": 3 / 4}  # share of all columns
ATTRIBUTE_SHARE = {"released": 1 / 2, "paper": 1 / 2, "default": 3 / 4}  # share of the columns of the learned part

RECIPES: dict[str, dict[str, Any]] = {
    # The authors' program differs from the paper's text; it reproduces the paper's results.
    "released": {
        **_COMMON, **_PROGRAM, **_LEARNED_ALONE, "allow_self_negative": True, "zero_floor": True, "output": "released",
    },
    # One setting differs from the paper's text. The paper sums the loss over a batch, which diverges at its learning
    # rate, so this recipe takes the mean; loss="sum" follows the text exactly.
    "paper": {
        **_COMMON, **_LEARNED_ALONE, "weight_std": 0.01, "bias": True, "regularise": "parameters",
        "negative_power": 1.0, "allow_self_negative": False, "output": "pooled", "tolerance": 0.01,
    },
    # `schedule` chooses the batch size and the number of batches from the size of the graph.
    # With larger initial values training leaves its flat start sooner.
    "default": {
        **_COMMON, **_PROGRAM, "table_std": 0.05, "allow_self_negative": False, "output": "pooled", "tolerance": 0.02,
        "centre": True, "length": 4.0,
    },
}  # fmt: skip

# More triplets than these improve neither classes nor clusters; benchmarks/defaults.py measured it.
LEAST_TRIPLETS, TRIPLETS_PER_NODE = 500_000, 50
EPOCHS = 20  # at most; training ends earlier once the loss is flat
BATCHES = (4_000, 65_536)  # smallest and largest batch, except on tiny graphs
NODES_PER_TRIPLET = 6  # on large graphs; few triplets of a batch then share a node
TRIPLETS_OF_A_NODE = 6  # most per batch, on tiny graphs; a row adds up the steps of all its triplets
SMALLEST_BATCH = 100


def schedule(nodes: int, given: dict[str, Any]) -> dict[str, int]:
    """Return the batch size, epochs and batches per epoch for a graph with so many nodes; `given` values are kept.

    A smaller `batch_size` gives more batches per epoch, so that the number of triplets stays the same.

    >>> schedule(3_312, {})
    {'batch_size': 4000, 'epochs': 20, 'batches_per_epoch': 7}
    >>> schedule(1_000_000, {})
    {'batch_size': 65536, 'epochs': 20, 'batches_per_epoch': 39}
    """
    fit = min(max(nodes // NODES_PER_TRIPLET, BATCHES[0]), BATCHES[1])
    if given.get("pooling") == "sum":  # Every row of a bag then takes the steps of all triplets of its nodes.
        fit = SMALLEST_BATCH
    batch = given.get("batch_size") or max(min(fit, TRIPLETS_OF_A_NODE * nodes), SMALLEST_BATCH)
    triplets = max(LEAST_TRIPLETS, TRIPLETS_PER_NODE * nodes)
    found = {"batch_size": batch, "epochs": EPOCHS, "batches_per_epoch": -(-triplets // (EPOCHS * batch))}
    return found | {name: value for name, value in given.items() if name in found}


class Facts:
    """The facts of a graph that decide parameters left as None."""

    def __init__(self, graph: AttributedGraph):
        self._graph, self.nodes = graph, len(graph)

    @cached_property
    def distinguishes_nodes(self) -> bool:
        """Whether some attribute distinguishes nodes."""
        return distinguishes_nodes(self._graph.attributes)

    @cached_property
    def can_rank(self) -> bool:
        """Whether some node has a neighbour and there is another linked node that is not its neighbour."""
        return can_rank(self._graph.adjacency)


TRIPLETS_PER_NEW, TRIPLETS_PER_CHANGED = 100, 5  # new nodes count as changed, too
ROWS = 2  # second part of the seed for new rows; the first is the seed of the update


def continue_training(part: LearnedPart, changes: Changes, settings: dict[str, Any], seed: int) -> LearnedPart:
    """Return the learned part after more training, with triplets whose first node is new or has changed."""
    graph = changes.after
    own = settings | {"dim": settings["dim"] - settings["spectral_dim"]}
    require_room(own, graph)
    model = carry_model(part.model, changes, own, seed)
    carried = part._replace(model=model, bags=(bags_of(graph.attributes), bags_of(graph.adjacency)))
    anchors = changes.touched & (np.diff(graph.adjacency.indptr) > 0)
    if not anchors.any() or not can_rank(graph.adjacency):
        return carried
    count = int(np.count_nonzero(anchors))
    batch = min(own["batch_size"], schedule(count, {"pooling": own["pooling"]})["batch_size"])
    triplets = TRIPLETS_PER_NEW * int(np.count_nonzero(changes.new)) + TRIPLETS_PER_CHANGED * count
    own |= {"batch_size": batch, "epochs": 1, "batches_per_epoch": max(triplets // batch, 1), "tolerance": None}
    with carried._replace(kernel_settings=kernel_settings(own)).engine(own) as engine:
        training = GradientDescent(own, engine, start_numbers())
        training.run(graph, seed, Stages().stage("learned part"), among=anchors)
        return carried._replace(model=engine.model())


def carry_model(model: Model, changes: Changes, settings: dict[str, Any], seed: int) -> Model:
    """Return the model with one row for each attribute and node of the changed graph.

    The row of a new attribute starts as the mean over the other attributes of its nodes, the row of a new node as the
    mean over its neighbours, because nearby nodes have similar rows. Without either it starts at random.
    """
    attributes, neighbours = np.random.SeedSequence((seed, ROWS)).spawn(2)
    after, std = changes.after, settings["table_std"]
    owners = after.attributes.T.tocsr()[changes.attributes < 0]
    return Model(
        _carry_table(model.attribute_table, changes.attributes, (owners, after.attributes), attributes, std),
        _carry_table(model.neighbour_table, changes.nodes, (after.adjacency[changes.new],), neighbours, std),
        model.weight.copy(),
        model.bias.copy(),
    )


def _carry_table(
    table: np.ndarray,
    places: np.ndarray,
    towards: tuple[sparse.csr_array, ...],
    seed: np.random.SeedSequence,
    std: float,
) -> np.ndarray:
    """Return a table (new rows, width): known rows are copied, each new row is a mean of known rows.

    places: the earlier number of each row, -1 for a new one. towards: matrices whose product sums known rows.
    """
    rows = zeros(len(places), table.shape[1])
    rows[:] = carry(table, places)
    new = np.flatnonzero(places < 0)
    if len(new) == 0 or table.shape[1] == 0:
        return rows
    known = np.hstack([rows, (places >= 0).astype(np.float32)[:, None]])  # The last column counts the known rows.
    for matrix in reversed(towards):
        ones = np.ones(matrix.nnz, np.float32)
        known = sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape) @ known
    counts = known[:, -1:]
    means = np.divide(known[:, :-1], counts, out=random_table(seed, len(new), table.shape[1], std), where=counts > 0)
    rows[new] = means
    return rows


DRAWN = 12 * 50_000  # bytes of the triplets that are drawn at a time
BAGS = 8  # bytes per node of the bounds of bags; their entries are the graph's arrays


def _sampling(sizes: Sizes) -> int:
    """Return the bytes for drawing triplets while the alias table is made, which takes the most."""
    return neighbour_bytes(sizes) + (2 * BAGS + 12 + ALIAS) * sizes.nodes + DRAWN


def _batches(sizes: Sizes, settings: dict[str, Any], learned: int) -> int:
    """Return the bytes of a step: pooled and hidden vectors of every distinct node, and the winners."""
    own, hidden = settings["attribute_dim"], settings["hidden"]
    rows = min(sizes.nodes, 3 * settings["batch_size"])
    pooled = padded(max(padded(own), own + padded(learned - own)))
    numbers = pooled + padded(hidden) + padded(own) + padded(learned - own) + 4
    shares = 64 * hidden * (pooled + 1)
    return SINGLE * (rows * numbers + shares + sizes.nodes + 7 * settings["batch_size"])


class Learned(NamedTuple):
    """The vectors, and the arrays that explain them and embed new nodes."""

    vectors: np.ndarray  # (nodes, dim) float32
    part: LearnedPart | None  # None if vectors have no learned part
    joint: Joint
    values: np.ndarray  # squared singular values (spectral_dim,) of the spectral part

    def __getattr__(self, name: str) -> Any:
        """Return a field of the learned part: model, bags, kernel_settings or loss_history."""
        if self.part is None or name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.part, name)

    def spectral(self, settings: dict[str, Any]) -> Decomposition:
        """Return the spectral part as the SVD gave it, before both parts were joined."""
        scale = self.joint.divisors[:, :1] / column_scale(self.values, settings)
        return Decomposition(self.vectors[:, : settings["spectral_dim"]] * scale, self.values)


def joined(spectral: Decomposition, part: LearnedPart | None, nodes: int, settings: dict[str, Any]) -> Learned:
    """Return everything learned, with both parts of the vectors joined."""
    joint = join(spectral, learned_vectors(part, nodes, settings) if part else iter(()), settings)
    return Learned(joint.vectors, part, joint, spectral.values)


class NeuralBrane(InductiveEmbedder):
    """Learn vectors from links and attributes, in which similar nodes have similar vectors.

    Neural Bayesian personalized ranking for attributed network embedding (Dave, Zhang, Chen, Al Hasan; 2018). The model
    of the paper is recipe="paper", as its text describes it, or recipe="released", as its authors' program computes it.
    The default joins a spectral part with a smaller learned part, the paper's model: with 5 % of the labels, mean
    Macro-F1 over ten graphs is .730 by the spectral part alone, .673 by the learned part alone and .731 by both.

    The spectral part is one SVD of the attributes and links of a node, of its neighbours and of theirs, with their
    amounts. The learned part takes the largest entry per dimension among the rows of a node's attributes, and the same
    among the rows of its neighbours; it ignores amounts. A ReLU layer mixes the two in training, which ranks neighbours
    above other nodes by inner products of this layer. Compare vectors by their cosine; `score` rates links by all
    evidence, as for every method.
    The recipe or the graph decides parameters left as None.

    Examples
    --------
    >>> from neural_brane import NeuralBrane, load
    >>> model = NeuralBrane(dim=32, seed=0).fit(load("stdlib"))
    >>> model.embedding_.vectors.shape
    (554, 32)
    >>> likely, unlikely = model.score([("json", "json.decoder"), ("json", "tkinter")])
    >>> bool(likely > unlikely)
    True
    """

    title = "neural-brane"
    growth = "time: triplets × (dim² + mean bag × dim); memory: nodes + edges + attribute entries"
    paper = "Dave, Zhang, Chen, Al Hasan: Neural-Brane, 2018"
    leads = True
    shortlisted = True
    distributes = True
    work_unit = "triplets"
    grid = {"l2": [0.01, 0.001, 0.0001, 5e-5]}  # The paper fixes 5e-5, with learning rate 0.5.
    small = {"epochs": 2, "batches_per_epoch": 100}
    holds = {
        "neural-brane": Learned, "learned part": LearnedPart, "joint": Joint, "decomposition": Decomposition,
        "model": Model, "bags": Bags, "settings": Settings,
    }  # fmt: skip
    learns = {
        "part_": "LearnedPart or None: The learned part, with its model and the loss of every epoch.",
        "values_": "ndarray of shape (spectral_dim,), float64: Squared singular values of the spectral part.",
    }
    packages = ("torch", "triton")
    updates = True
    needs_links = False  # The spectral part needs none.
    prolongs = ("epochs", "tolerance")  # A tolerance is refused if training would have ended earlier with it.

    recipe: str = choice(
        "Decides parameters left as None: default, released (the authors' program) or paper (the paper's text).",
        default="default",
        options=tuple(RECIPES),
    )
    spectral_dim: int | None = whole(
        "Columns of the spectral part; the rest is learned. None: three quarters of dim in the default recipe, at most "
        "half the number of nodes, or all of dim if links allow no ranking; 0 in the other recipes.",
        default=None,
        least=0,
    )
    hop_weights: Sequence[float] = numbers(
        "Spectral part: weights of the attributes and links 0, 1, 2, … hops away, one per hop.", default=(1.0, 1.0, 1.0)
    )
    link_weight: float = number(
        "Spectral part: weight of a node's links, which count as further attributes of it.", default=0.3, least=0
    )
    spectral_power: float = number(
        "Spectral part: exponent of the singular values; above 1 the leading columns count more.", default=1.5, least=0
    )
    learned_weight: float = number("Length of the learned part, relative to the spectral part.", default=0.25, above=0)
    centre: bool | None = flag("Subtract the mean over all nodes from both parts.", default=None)
    length: float | None = number(
        "Length of every vector. About 4 suits a linear classifier with its default penalty; k-means needs equal "
        "lengths. 0 leaves the vectors as they were trained; it needs spectral_dim=0.",
        default=None,
        least=0,
    )
    attribute_dim: int | None = whole(
        "Columns of the learned part that come from attributes; the rest come from neighbours. None: three quarters in "
        "the default recipe, or 0 if no attribute distinguishes nodes; half in the other recipes.",
        default=None,
        least=0,
    )
    hidden: int | None = whole("Width of the ReLU layer. None: the width of the learned part.", default=None)
    pooling: str = choice("How the rows of a node's bag become one vector.", default="max", options=tuple(POOLING))
    zero_floor: bool | None = flag(
        "Max pooling includes a row of zeros. The released program has this effect on all bags but the longest of a "
        "batch, because it pads them; here it applies to every bag, so that a step does not depend on the batch.",
        default=None,
    )
    bias: bool | None = flag("Train the bias of the ReLU layer; otherwise it stays zero.", default=None)
    regularise: str | None = choice(
        "What l2 weighs: the parameters (‖Θ‖²), or the hidden vectors of a batch (Σ ‖h‖²).",
        default=None,
        options=("hidden", "parameters"),
    )
    l2: float | None = number("Weight of the regularisation, the paper's λ.", default=None, least=0)
    loss: str | None = choice("Mean or sum of −ln σ over a batch.", default=None, options=("mean", "sum"))
    negative_power: float | None = number(
        "Negative nodes are drawn in proportion to this power of their number of neighbours.", default=None, least=0
    )
    allow_self_negative: bool | None = flag("Whether a node may be its own negative.", default=None)
    table_std: float | None = number("Standard deviation of the tables' initial values.", default=None, above=0)
    weight_std: float | None = number("Standard deviation of the ReLU layer's initial weights.", default=None, above=0)
    learning_rate: float | None = shared("learning_rate", default=None)
    batch_size: int | None = whole(
        "Triplets in a batch. The step size of a table row does not depend on it; the ReLU layer takes one step by the "
        "mean of the batch. None in the default recipe: chosen by the number of nodes.",
        default=None,
    )
    epochs: int | None = shared("epochs", default=None, about="Most epochs; a tolerance may end earlier.")
    batches_per_epoch: int | None = whole(
        "Batches in an epoch. None: 1000; in the default recipe, so many that 20 epochs have half a million triplets, "
        "or 50 for each node if that is more.",
        default=None,
    )
    tolerance: float | None = number(
        "Stop when three epochs together lower the loss by less than this share of it; None never stops early.",
        default=None,
        above=0,
    )
    output: str | None = choice(
        "Vectors of the learned part: pooled (the paper's f), hidden (h), or released (the node's own row of P', then "
        "max(0, v_attr)).",
        default=None,
        options=("pooled", "hidden", "released"),
    )
    device: str = choice(
        "Where to train: cpu, cuda (an NVIDIA GPU), auto (the GPU if there is one), or distributed (the ranks that "
        "torchrun started).",
        default="cpu",
        options=("cpu", "cuda", "auto", "distributed"),
    )
    deterministic: bool = flag(
        "Add gradients in a fixed order on the GPU, so that a seed gives the same bits; slower. The CPU always does.",
        default=False,
    )
    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def parameters_in_force(self) -> dict[str, Any]:
        """Return the parameters with those of the recipe; None remains where only the graph can decide."""
        return self.settings_by(None)

    def parameters_for(self, graph: AttributedGraph) -> dict[str, Any]:
        """Return the parameters for one graph, whose size decides those that the recipe leaves open."""
        return self.settings_by(Facts(graph))

    def settings_by(self, facts: Facts | None) -> dict[str, Any]:
        """Return the parameters for a graph with these facts; without facts some stay None."""
        values = super().parameters_in_force()
        given = {name: value for name, value in values.items() if value is not None}
        spectral_dim = self._spectral_dim(given, facts)
        learned = given["dim"] - spectral_dim
        share = ATTRIBUTE_SHARE[given["recipe"]]
        if facts is not None and given["recipe"] == "default" and not facts.distinguishes_nodes:
            share = 0.0
        shape = {"attribute_dim": int(share * learned), "hidden": max(learned, 1)}
        values |= shape | RECIPES[given["recipe"]] | given | {"spectral_dim": spectral_dim}
        if facts is not None:
            values |= schedule(facts.nodes, {name: value for name, value in values.items() if value is not None})
        hidden, attribute_dim = values["hidden"], values["attribute_dim"]
        checkpoint = values["checkpoint"]
        expected = "None with device='distributed'; 'brane distributed embed' saves a folder of checkpoints instead"
        require(values["device"] != "distributed" or checkpoint is None, "checkpoint", checkpoint, expected)
        if learned:
            expected = f"0 to {learned}, the width of the learned part"
            require(attribute_dim <= learned, "attribute_dim", attribute_dim, expected)
            square = values["output"] != "hidden" or hidden == learned
            require(square, "hidden", hidden, f"{learned}, the width of the learned part, with output='hidden'")
        scaled = values["length"] > 0 or not values["spectral_dim"]
        require(scaled, "length", values["length"], "a number above 0 if there is a spectral part")
        if values["batch_size"] is not None:
            kernel = kernel_settings(values)
            shrinks = 2 * kernel.table_rate * kernel.parameter_l2 < 1
            expected = f"a smaller number: with batch_size={values['batch_size']} a step would shrink rows past zero"
            require(shrinks, "l2", values["l2"], expected)
        return values

    def _spectral_dim(self, given: dict[str, Any], facts: Facts | None) -> int:
        dim, share = given["dim"], SPECTRAL_SHARE[given["recipe"]]
        spectral_dim: int = given.get("spectral_dim", max(int(share * dim), 1) if share else 0)
        require(spectral_dim <= dim, "spectral_dim", spectral_dim, f"0 to dim={dim}")
        if facts is None or not 0 < spectral_dim < dim:
            return spectral_dim
        if not facts.can_rank:
            return dim
        return spectral_dim if "spectral_dim" in given else min(spectral_dim, max(facts.nodes // 2, 1))

    def _learn(self, graph: AttributedGraph, seed: int) -> Learned:
        settings = self.get_params(deep=False)
        width, nodes = settings["spectral_dim"], len(graph)
        spectral = Decomposition.empty(nodes)
        if self.device == "distributed":
            from neural_brane.distributed.embedding import learn_graph

            spectral, part = learn_graph(graph, settings, seed)
            settings["device"] = "cpu"  # Every rank does the rest itself.
        else:
            if width:
                made = partial(spectral_part, graph, settings, seed)
                spectral = Decomposition(*self._stages.all_once("spectral part", made))
            part = learn(graph, settings, seed, self._stages.stage("learned part")) if width < self.dim else None
        return joined(spectral, part, nodes, settings)

    def _update(self, start: Start, graph: AttributedGraph, seed: int) -> Learned:
        settings, before, changes = self.get_params(), start.learned, start.changes
        spectral = Decomposition.empty(len(graph))
        if settings["spectral_dim"]:
            tables, hops = tables_on(settings["device"], settings["threads"]), hops_in(graph, settings)
            spectral = follow_changes(before.spectral(settings), hops, changes.nodes, tables, settings["threads"])
        part = continue_training(before.part, changes, settings, seed) if before.part else None
        return joined(spectral, part, len(graph), settings)

    def _check_transforms(self, fitted: Fitted) -> None:
        expected = "'pooled' or 'hidden' to embed new nodes: released vectors contain a row learned for each node"
        require(fitted.settings["output"] != "released", "output", "released", expected)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        learned, settings = fitted.learned, fitted.settings
        spectral, own = np.empty((len(new), 0), np.float32), np.empty((len(new), 0), np.float32)
        if settings["spectral_dim"]:
            tables, hops = tables_on(settings["device"], settings["threads"]), hops_in(new.known, settings)
            spectral = place_newcomers(learned.spectral(settings), new, hops, tables, settings["link_weight"])
            spectral *= column_scale(learned.values, settings)
        if (part := learned.part) is not None:
            theirs = part._replace(bags=(bags_of(new.attributes), bags_of(new.links)))
            own = np.vstack(list(learned_vectors(theirs, len(new), settings))) - learned.joint.centre
            if settings["centre"] and settings["output"] == "pooled":  # An empty bag gives the mean of all nodes.
                own[np.diff(new.attributes.indptr) == 0, : part.kernel_settings.attribute_dim] = 0
                own[np.diff(new.links.indptr) == 0, part.kernel_settings.attribute_dim :] = 0
        return side_by_side(spectral, own, settings)[0]

    def _reasons(self, fitted: Fitted) -> JointReasons:
        learned, settings, spectral, pooled = fitted.learned, fitted.settings, None, None
        if settings["spectral_dim"]:
            found, hops = learned.spectral(settings), hops_in(fitted.graph, settings)
            spectral = spectral_reasons(found, hops, threads=settings["threads"])
        if (part := learned.part) is not None:
            pooled = PooledReasons(
                part.model, part.bags, part.kernel_settings, settings["output"], learned.joint.centre
            )
        return JointReasons(spectral, pooled, column_scale(learned.values, settings), learned.joint.divisors)

    def _ignores_amounts(self) -> bool:
        return self.spectral_dim == 0 and self.attribute_dim != 0  # Only the spectral part uses amounts.

    def memory(self, sizes: Sizes) -> Moments:
        settings = self._settings_for(sizes)
        n, dim, width = sizes.nodes, settings["dim"], settings["spectral_dim"]
        found: dict[str, Any] = {}
        if width:
            hops = len(settings["hop_weights"])
            found |= spectral_moments(sizes, width, hops=hops, links=settings["link_weight"] > 0)
        learned, tables = dim - width, 0
        if learned:  # The tables are P, P' and W.
            own = settings["attribute_dim"]
            tables = SINGLE * (sizes.attributes * padded(own) + n * padded(learned - own) + learned**2)
            batches = {"sampling": _sampling(sizes), "batches": _batches(sizes, settings, learned)}
            found["training"] = {"vectors": SINGLE * n * width, "tables": tables} | batches
            tables += 2 * BAGS * n
            found["joining both parts"] = {"vectors": SINGLE * n * 2 * dim, "tables": tables}
        return found

    def work(self, sizes: Sizes) -> float:
        """Return the number of triplets, if training runs to the last epoch."""
        settings = self._settings_for(sizes)
        return float(settings["epochs"] * settings["batches_per_epoch"] * settings["batch_size"])

    def seconds(self, sizes: Sizes) -> dict[str, float]:
        """Return the seconds of each section on this machine, from short trials on tables of the true size."""
        from neural_brane.methods.neural_brane.timing import Probes

        return Probes(self._settings_for(sizes), sizes, self.threads).seconds()

    def _settings_for(self, sizes: Sizes) -> dict[str, Any]:
        """Return the parameters in force for a graph of these sizes, without the graph."""
        values = self.parameters_in_force()
        return values | schedule(sizes.nodes, {name: value for name, value in values.items() if value is not None})

    def _explain_zeros(self, graph: AttributedGraph, empty: np.ndarray) -> str:
        if not (dead := np.count_nonzero(empty[self.get_params(deep=False)["spectral_dim"] :])):
            return super()._explain_zeros(graph, empty)
        return (
            f"{dead} of them belong to the learned part, which ignores amounts and found all nodes alike there; train "
            "longer, give a smaller dim, or choose attribute_dim=0 if all nodes have the same attributes"
        )

    def _facts(self, graph: AttributedGraph, learned: Learned) -> dict[str, Any]:
        if learned.part is None:
            return {}
        losses, settings = learned.part.loss_history, self.get_params(deep=False)
        triplets = len(losses) * settings["batches_per_epoch"] * settings["batch_size"]
        facts = {"triplets": triplets, "triplets_per_node": round(triplets / len(graph), 1), "loss": losses[-1]}
        return {"training": facts}

    def score(self, pairs: Sequence[tuple[Any, Any]] | np.ndarray) -> np.ndarray:
        """Return `score_links(pairs)`."""
        return self.score_links(pairs)
