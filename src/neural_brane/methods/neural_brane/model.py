"""Neural-Brane: attributes and neighbours, max-pooled, mixed by a ReLU layer, trained by BPR, beside a joint SVD."""

from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.embedding import Layer, find_pairs, inner_products
from neural_brane.errors import GraphError
from neural_brane.files.checkpoints import Stages
from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Changes, Newcomers, carry
from neural_brane.graph.memory import Sizes
from neural_brane.insight.contributions import PooledReasons
from neural_brane.kernels.model import POOLING, Bags, Model, Settings, bags_of, padded, zeros
from neural_brane.linalg.tables import tables_on
from neural_brane.linalg.weights import tell_apart
from neural_brane.methods.base import Fitted, InductiveEmbedder, Start, require
from neural_brane.methods.neural_brane.parts import (
    BATCH,
    Joint,
    JointReasons,
    LearnedPart,
    hops_in,
    join,
    kernel_settings,
    learn,
    learned_vectors,
    make_layer,
    set_length,
    spectral_part,
)
from neural_brane.methods.neural_brane.training import Training, random_table, require_room, start_numbers
from neural_brane.methods.parameters import choice, flag, number, numbers, shared, whole
from neural_brane.methods.spectral import Decomposition, follow_changes, place_newcomers, spectral_reasons
from neural_brane.methods.training import ALIAS, SINGLE, Moments, neighbour_bytes, spectral_moments
from neural_brane.sampling.tables import can_rank

# Named settings of Neural-Brane: the paper's text, the authors' released program, and our default.
#
# The first two differ in every line below. Both draw i by edge weight, halve `dim` between attributes and neighbours,
# start tables at N(0, 0.01²) and learn at rate 0.5 with λ = 5e-5 from batches of 100.
#
# The default's vector has two parts, a spectral and a learned one. Its values were chosen on ten graphs with seeds that
# no result is reported of (benchmarks/defaults.py).

_COMMON: dict[str, Any] = {"table_std": 0.01, "learning_rate": 0.5, "l2": 5e-5, "loss": "mean", "zero_floor": False}
_PROGRAM: dict[str, Any] = {"weight_std": 0.1, "bias": False, "regularise": "hidden", "negative_power": 0.75}
_LEARNED_ALONE: dict[str, Any] = {
    "batch_size": 100, "batches_per_epoch": 1000, "epochs": 30, "tolerance": None, "centre": False, "length": 0.0,
}  # fmt: skip

# The spectral part of dim, and the attributes' part of what is left.
SPECTRAL_SHARE = {"released": 0.0, "paper": 0.0, "default": 3 / 4}
ATTRIBUTE_SHARE = {"released": 1 / 2, "paper": 1 / 2, "default": 3 / 4}

RECIPES: dict[str, dict[str, Any]] = {
    # The authors' program, which differs from the paper's text; it reproduces the paper's figures.
    "released": {
        **_COMMON, **_PROGRAM, **_LEARNED_ALONE, "allow_self_negative": True, "zero_floor": True, "output": "released",
    },
    # The paper's text, but for one thing: it sums the loss over a batch, which diverges at its learning
    # rate, so the loss is a mean here. loss="sum" asks for the text to the letter.
    "paper": {
        **_COMMON, **_LEARNED_ALONE, "weight_std": 0.01, "bias": True, "regularise": "parameters",
        "negative_power": 1.0, "allow_self_negative": False, "output": "pooled", "tolerance": 0.01,
    },
    # Batches and epochs follow the size of the graph.
    "default": {
        **_COMMON, **_PROGRAM, "allow_self_negative": False, "output": "pooled", "tolerance": 0.02, "centre": True,
        "length": 5.0,
    },
}  # fmt: skip

LEAST_TRIPLETS, TRIPLETS_PER_NODE = 2_000_000, 300
EPOCHS = 20  # the most; training ends earlier once the loss is flat
BATCHES = (4_000, 65_536)  # the smallest and the largest, but for tiny graphs
NODES_PER_TRIPLET = 6  # nodes for each triplet of a batch, on large graphs: few triplets then share a node
TRIPLETS_OF_A_NODE = 6  # on tiny graphs: the step of a row is the sum of its triplets', and must not grow too long
SMALLEST_BATCH = 100


def schedule(nodes: int, given: dict[str, Any]) -> dict[str, int]:
    """The batch size, epochs and batches in an epoch that suit a graph, beside those that are `given`.

    A batch given smaller makes epochs of more batches: the number of triplets stays.

    >>> schedule(3_312, {})
    {'batch_size': 4000, 'epochs': 20, 'batches_per_epoch': 25}
    >>> schedule(1_000_000, {})
    {'batch_size': 65536, 'epochs': 20, 'batches_per_epoch': 229}
    """
    fit = min(max(nodes // NODES_PER_TRIPLET, BATCHES[0]), BATCHES[1])
    if given.get("pooling") == "sum":  # every row of a bag then takes the steps of all its nodes' triplets
        fit = SMALLEST_BATCH
    batch = given.get("batch_size") or max(min(fit, TRIPLETS_OF_A_NODE * nodes), SMALLEST_BATCH)
    triplets = max(LEAST_TRIPLETS, TRIPLETS_PER_NODE * nodes)
    found = {"batch_size": batch, "epochs": EPOCHS, "batches_per_epoch": -(-triplets // (EPOCHS * batch))}
    return found | {name: value for name, value in given.items() if name in found}


class Facts:
    """The facts of a graph that parameters follow from."""

    def __init__(self, graph: AttributedGraph):
        self._graph, self.nodes = graph, len(graph)

    @cached_property
    def tell_apart(self) -> bool:
        """Tell whether some attribute tells nodes apart."""
        return tell_apart(self._graph.attributes)

    @cached_property
    def can_rank(self) -> bool:
        """Tell whether a node has both a neighbour and a linked node that is not its neighbour."""
        return can_rank(self._graph.adjacency)


TRIPLETS_PER_NEW, TRIPLETS_PER_CHANGED = 100, 5  # for each new node, and for each that is new or has changed
ROWS = 2  # the seed of new rows, beside that of the update


def learn_on(part: LearnedPart, changes: Changes, settings: dict[str, Any], seed: int) -> LearnedPart:
    """Train a model on, by triplets of nodes that are new or have changed; other nodes are what these are ranked by."""
    graph = changes.after
    own = settings | {"dim": settings["dim"] - settings["spectral_dim"]}
    require_room(own, graph)
    model = carry_model(part.model, changes, own, seed)
    carried = part._replace(model=model, bags=(bags_of(graph.attributes), bags_of(graph.adjacency)))
    anchors = changes.touched & (np.diff(graph.adjacency.indptr) > 0)
    if not anchors.any() or not can_rank(graph.adjacency):
        return carried
    count = int(np.count_nonzero(anchors))  # one epoch of some triplets for each, in batches that suit their number
    batch = min(own["batch_size"], schedule(count, {"pooling": own["pooling"]})["batch_size"])
    triplets = TRIPLETS_PER_NEW * int(np.count_nonzero(changes.new)) + TRIPLETS_PER_CHANGED * count
    own |= {"batch_size": batch, "epochs": 1, "batches_per_epoch": max(triplets // batch, 1), "tolerance": None}
    with carried._replace(kernel_settings=kernel_settings(own)).engine(own) as engine:
        training = Training(own, engine, start_numbers())
        training.run(graph, seed, Stages().stage("learned part"), among=anchors)
        return carried._replace(model=engine.model())


def carry_model(model: Model, changes: Changes, settings: dict[str, Any], seed: int) -> Model:
    """The model with a row for everything there is now.

    A new attribute begins as the mean of those that its nodes have beside it, a new node as the mean of its
    neighbours: rows of the tables are much alike where nodes are near. Those that are alone begin at random.
    """
    attributes, neighbours = np.random.SeedSequence((seed, ROWS)).spawn(2)
    after, std = changes.after, settings["table_std"]
    shared = after.attributes.T.tocsr()[changes.attributes < 0]
    return Model(
        _carry_table(model.attribute_table, changes.attributes, (shared, after.attributes), attributes, std),
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
    """A table's rows where there were some, the mean of known rows for others, which products of `towards` lead to."""
    rows = zeros(len(places), table.shape[1])
    rows[:] = carry(table, places)
    new = np.flatnonzero(places < 0)
    if len(new) == 0 or table.shape[1] == 0:
        return rows
    known = np.hstack([rows, (places >= 0).astype(np.float32)[:, None]])  # the last column counts
    for matrix in reversed(towards):
        ones = np.ones(matrix.nnz, np.float32)
        known = sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape) @ known
    counts = known[:, -1:]
    means = np.divide(known[:, :-1], counts, out=random_table(seed, len(new), table.shape[1], std), where=counts > 0)
    rows[new] = means
    return rows


DRAWN = 12 * 50_000  # bytes of the triplets that are drawn at a time
BAGS = 8  # bytes a node of bags: their bounds; what they hold is the graph's own


def _sampling(sizes: Sizes) -> int:
    """Estimate what drawing triplets takes while its last part, the alias table, is made."""
    return neighbour_bytes(sizes) + (2 * BAGS + 12 + ALIAS) * sizes.nodes + DRAWN


def _batches(sizes: Sizes, settings: dict[str, Any], learned: int) -> int:
    """The scratch of a step: pooled and hidden vectors of every distinct node, and the winners."""
    own, hidden = settings["attribute_dim"], settings["hidden"]
    rows = min(sizes.nodes, 3 * settings["batch_size"])
    pooled = padded(max(padded(own), own + padded(learned - own)))
    numbers = pooled + padded(hidden) + padded(own) + padded(learned - own) + 4
    shares = 64 * hidden * (pooled + 1)
    return SINGLE * (rows * numbers + shares + sizes.nodes + 7 * settings["batch_size"])


class Learned(NamedTuple):
    """The vectors, and what it takes to score pairs of them and to make more; None where there is no such thing."""

    vectors: np.ndarray  # (nodes, dim) float32
    layer: Layer | None
    part: LearnedPart | None
    joint: Joint
    values: np.ndarray  # the squared singular values of the spectral part, none where there is no such part

    def __getattr__(self, name: str) -> Any:
        """Look names up in the learned part: model, bags, kernel_settings, loss_history."""
        if self.part is None or name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.part, name)

    def spectral(self, settings: dict[str, Any]) -> Decomposition:
        """The spectral part as it was found, before all vectors got one length."""
        vectors = self.vectors[:, : settings["spectral_dim"]] * (self.joint.lengths / settings["length"])
        return Decomposition(vectors, self.values)


class NeuralBrane(InductiveEmbedder):
    """Neural Bayesian personalized ranking for attributed network embedding (Dave, Zhang, Chen, Al Hasan; 2018).

    The learned part of a node's vector is the largest entry, per dimension, among the embeddings of its attributes,
    beside the same for its neighbours. A ReLU layer mixes the two; training ranks neighbours above others by its inner
    products. It reads which attributes a node has, not how much of each. In the default recipe most of a vector is a
    spectral part: one SVD of the attributes and links of a node, of its neighbours and of theirs, with their amounts.
    Cosines of the vectors say who is alike, `score` says who is likely to be linked. Parameters left as None follow
    the recipe or the size of the graph.

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
    grid = {"l2": [0.01, 0.001, 0.0001, 5e-5]}  # 5e-5 is what the paper fixes, with learning rate 0.5
    small = {"epochs": 2, "batches_per_epoch": 100, "score_steps": 10}
    holds = {
        "neural-brane": Learned, "learned part": LearnedPart, "joint": Joint, "decomposition": Decomposition,
        "layer": Layer, "model": Model, "bags": Bags, "settings": Settings,
    }  # fmt: skip
    packages = ("torch", "triton")
    updates = True
    needs_links = False  # its spectral part does without
    prolongs = ("epochs", "tolerance")  # the latter as long as no epoch so far would have been the last

    recipe: str = choice(
        "Decides the parameters left as None: default, released (the authors' program) or paper (its text).",
        default="default",
        options=tuple(RECIPES),
    )
    spectral_dim: int | None = whole(
        "How much of dim is spectral; the rest is learned. When None three quarters in the default recipe, but no more "
        "than half the number of nodes, and all of it where no node can be ranked; nothing in the others.",
        default=None,
        least=0,
    )
    hop_weights: Sequence[float] = numbers(
        "Of the spectral part: weights of what is 0, 1, 2, … hops away, one per hop.", default=(1.0, 1.0, 1.0)
    )
    link_weight: float = number(
        "Of the spectral part: weight of a node's links, which count as attributes beside its own.",
        default=0.3,
        least=0,
    )
    learned_weight: float = number("Length of the learned part; that of the spectral part is 1.", default=0.35, above=0)
    centre: bool | None = flag("Subtract the mean over the nodes from the learned part.", default=None)
    length: float | None = number(
        "Length of every vector: a plain classifier with its usual penalty works best at about 5, k-means with all "
        "equally long. With 0 a learned part that stands alone stays as training has made it.",
        default=None,
        least=0,
    )
    attribute_dim: int | None = whole(
        "How much of the learned part is made from attributes; the rest is made from neighbours. When None three "
        "quarters in the default recipe, or nothing where none tells nodes apart; half in the others.",
        default=None,
        least=0,
    )
    hidden: int | None = whole("Width of the ReLU layer; that of the learned part when None.", default=None)
    pooling: str = choice("How a node's rows become one.", default="max", options=tuple(POOLING))
    zero_floor: bool | None = flag(
        "Max pooling sees one more row, of zeros. In the released program padding to a batch's longest bag has this "
        "effect on all shorter ones; here the longest has it too, so that a step does not depend on which nodes share "
        "a batch.",
        default=None,
    )
    bias: bool | None = flag("Train the ReLU layer's bias; without, it stays zero.", default=None)
    regularise: str | None = choice(
        "What l2 weighs: the parameters (‖Θ‖²), or the hidden vectors of a batch (Σ ‖h‖²).",
        default=None,
        options=("hidden", "parameters"),
    )
    l2: float | None = number("Weight of the regularisation, the paper's λ.", default=None, least=0)
    loss: str | None = choice("Mean or sum of −ln σ over a batch.", default=None, options=("mean", "sum"))
    negative_power: float | None = number(
        "j is drawn in proportion to this power of its number of neighbours.", default=None, least=0
    )
    allow_self_negative: bool | None = flag("Whether j may be u itself.", default=None)
    table_std: float | None = number("Standard deviation of the tables' first values.", default=None, above=0)
    weight_std: float | None = number("Standard deviation of the ReLU layer's first weights.", default=None, above=0)
    learning_rate: float | None = shared("learning_rate", default=None)
    batch_size: int | None = whole(
        "Triplets in a batch. Whatever it is, rows of the tables take the step that they would take at 100; the ReLU "
        "layer takes one step by the batch's mean. When None in the default recipe, by the number of nodes.",
        default=None,
    )
    epochs: int | None = shared("epochs", default=None, about="At most so many, where there is a tolerance.")
    batches_per_epoch: int | None = whole(
        "Batches in an epoch. When None in the default recipe, as many as make 2 million triplets in 20 epochs, or 300 "
        "for each node if that is more; 1000 in the others.",
        default=None,
    )
    tolerance: float | None = number(
        "Stop once three epochs together lower the loss by less than this share of it; never when None.",
        default=None,
        above=0,
    )
    output: str | None = choice(
        "The learned part: pooled (the paper's f), hidden (h), or released (the node's own row of P' beside "
        "max(0, v_attr)).",
        default=None,
        options=("pooled", "hidden", "released"),
    )
    score_steps: int = whole(
        "Steps that train the layer that scores pairs, where vectors have a `length`; with 0, or without it, the score "
        "is that of the model's own layer.",
        default=300,
        least=0,
    )
    device: str = choice(
        "Where to train: cpu, cuda (an NVIDIA GPU), auto, the GPU where there is one, or distributed, the ranks that "
        "torchrun has started.",
        default="cpu",
        options=("cpu", "cuda", "auto", "distributed"),
    )
    deterministic: bool = flag(
        "On the GPU, add gradients up in one order, so that a seed gives the same bits again; slower. The CPU always "
        "does.",
        default=False,
    )
    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def parameters_in_force(self) -> dict[str, Any]:
        """Every parameter's value as training uses it: where it is None the recipe's, or for the graph to decide."""
        return self.settings_by(None)

    def parameters_for(self, graph: AttributedGraph) -> dict[str, Any]:
        """The same for one graph: its size decides what the recipe leaves open."""
        return self.settings_by(Facts(graph))

    def settings_by(self, facts: Facts | None) -> dict[str, Any]:
        """The same for a graph of which some facts are known."""
        values = super().parameters_in_force()
        given = {name: value for name, value in values.items() if value is not None}
        spectral_dim = self._spectral_dim(given, facts)
        learned = given["dim"] - spectral_dim
        share = ATTRIBUTE_SHARE[given["recipe"]]
        if facts is not None and given["recipe"] == "default" and not facts.tell_apart:
            share = 0.0
        shape = {"attribute_dim": int(share * learned), "hidden": max(learned, 1)}
        values |= shape | RECIPES[given["recipe"]] | given | {"spectral_dim": spectral_dim}
        if facts is not None:
            values |= schedule(facts.nodes, {name: value for name, value in values.items() if value is not None})
        hidden, attribute_dim = values["hidden"], values["attribute_dim"]
        kept = "none with device='distributed': ranks keep a folder of checkpoints in 'brane distributed embed'"
        require(
            values["device"] != "distributed" or values["checkpoint"] is None, "checkpoint", values["checkpoint"], kept
        )
        if learned:
            require(
                attribute_dim <= learned, "attribute_dim", attribute_dim, f"0 to {learned}, the learned part of dim"
            )
            square = values["output"] != "hidden" or hidden == learned
            wide = f"{learned}, the learned part of dim, when output='hidden', whose vectors are hidden numbers wide"
            require(square, "hidden", hidden, wide)
        scaled = values["length"] > 0 or not values["spectral_dim"]
        require(scaled, "length", values["length"], "a number above 0 when there is a spectral part")
        if values["batch_size"] is not None:
            kernel = kernel_settings(values)
            shrinks = 2 * kernel.table_rate * kernel.parameter_l2 < 1
            too_large = f"a smaller number: a batch of {values['batch_size']} would shrink rows below nothing"
            require(shrinks, "l2", values["l2"], too_large)
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
            settings["device"] = "cpu"  # every rank does the rest
        else:
            if width:
                made = partial(spectral_part, graph, settings, seed)
                spectral = Decomposition(*self._stages.all_once("spectral part", made))
            part = learn(graph, settings, seed, self._stages.stage("learned part")) if width < self.dim else None
        joint = join(spectral.vectors, learned_vectors(part, nodes, settings) if part else iter(()), settings)
        values = spectral.values
        del spectral  # its vectors are a part of the joint ones now
        learned = Learned(joint.vectors, None, part, joint, values)
        return learned._replace(layer=make_layer(learned, graph, settings, seed, self._stages.stage("layer")))

    def _update(self, start: Start, graph: AttributedGraph, seed: int) -> Learned:
        settings, before, changes = self.get_params(), start.learned, start.changes
        spectral = Decomposition.empty(len(graph))
        if settings["spectral_dim"]:
            tables, hops = tables_on(settings["device"], settings["threads"]), hops_in(graph, settings)
            spectral = follow_changes(before.spectral(settings), hops, changes.nodes, tables, settings["threads"])
        part = learn_on(before.part, changes, settings, seed) if before.part else None
        joint = join(spectral.vectors, learned_vectors(part, len(graph), settings) if part else iter(()), settings)
        found: Learned = before._replace(vectors=joint.vectors, part=part, joint=joint, values=spectral.values)
        return found._replace(layer=make_layer(found, graph, settings, seed, Stages().stage("layer")))

    def _check_transforms(self, fitted: Fitted) -> None:
        needed = "'pooled' or 'hidden' for new nodes: vectors of the released program hold a row learned for each node"
        require(fitted.settings["output"] != "released", "output", "released", needed)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        learned, settings, parts = fitted.learned, fitted.settings, []
        if settings["spectral_dim"]:
            tables, weights = tables_on(settings["device"], settings["threads"]), settings["hop_weights"]
            found = learned.spectral(settings)
            parts.append(place_newcomers(found, new, weights, tables, settings["link_weight"]))
        if (part := learned.part) is not None:
            theirs = part._replace(bags=(bags_of(new.attributes), bags_of(new.links)))
            own = np.vstack(list(learned_vectors(theirs, len(new), settings))) - learned.joint.centre
            if settings["centre"] and settings["output"] == "pooled":  # what nothing was pooled for becomes the mean
                own[np.diff(new.attributes.indptr) == 0, : part.kernel_settings.attribute_dim] = 0
                own[np.diff(new.links.indptr) == 0, part.kernel_settings.attribute_dim :] = 0
            parts.append(own * learned.joint.scale)
        vectors = np.hstack(parts)
        set_length(vectors, settings["length"])
        return vectors

    def _reasons(self, fitted: Fitted) -> JointReasons:
        learned, settings, spectral, pooled = fitted.learned, fitted.settings, None, None
        length, joint, width = settings["length"], learned.joint, settings["spectral_dim"]
        lengths = joint.lengths / length if length else np.ones_like(joint.lengths)
        if width:
            found, hops = learned.spectral(settings), hops_in(fitted.graph, settings)
            spectral = spectral_reasons(found, hops, threads=settings["threads"])
        if (part := learned.part) is not None:
            last = settings["output"], joint.centre, float(joint.scale)
            pooled = PooledReasons(part.model, part.bags, part.kernel_settings, *last)
        return JointReasons(spectral, pooled, width, lengths)

    def _ignores_amounts(self) -> bool:
        return self.spectral_dim == 0 and self.attribute_dim != 0  # it is the spectral part that weighs attributes

    def memory(self, sizes: Sizes) -> Moments:
        settings = self._settings_for(sizes)
        n, dim, width = sizes.nodes, settings["dim"], settings["spectral_dim"]
        found: dict[str, Any] = {}
        if width:
            hops = len(settings["hop_weights"])
            found |= spectral_moments(sizes, width, hops=hops, links=settings["link_weight"] > 0)
        learned, tables = dim - width, 0
        if learned:  # P, P' and W
            own = settings["attribute_dim"]
            tables = SINGLE * (sizes.attributes * padded(own) + n * padded(learned - own) + learned**2)
            batches = {"sampling": _sampling(sizes), "batches": _batches(sizes, settings, learned)}
            found["training"] = {"vectors": SINGLE * n * width, "tables": tables} | batches
            tables += 2 * BAGS * n
            found["joining both parts"] = {"vectors": SINGLE * n * 2 * dim, "tables": tables}
        if settings["length"] and settings["score_steps"]:
            kept = {"tables": tables} if learned else {}
            layer = {"attribute_dim": dim, "hidden": dim, "batch_size": BATCH}
            scores = SINGLE * n * padded(dim) + (12 + BAGS) * n + _batches(sizes, layer, dim)
            vectors = {"vectors": SINGLE * n * dim, "layer that scores pairs": scores}
            found["scores of pairs"] = kept | vectors | {"sampling": _sampling(sizes)}
        return found

    def work(self, sizes: Sizes) -> float:
        """Triplets, if training goes to its last epoch."""
        settings = self._settings_for(sizes)
        return float(settings["epochs"] * settings["batches_per_epoch"] * settings["batch_size"])

    def seconds(self, sizes: Sizes) -> dict[str, float]:
        """The seconds of each part on this machine: each is tried for a moment, on tables of the true size."""
        from neural_brane.methods.neural_brane.timing import Probes

        return Probes(self._settings_for(sizes), sizes, self.threads).seconds()

    def _settings_for(self, sizes: Sizes) -> dict[str, Any]:
        """The parameters in force for a graph of these sizes, before it is there."""
        values = self.parameters_in_force()
        return values | schedule(sizes.nodes, {name: value for name, value in values.items() if value is not None})

    def _facts(self, graph: AttributedGraph, learned: Learned) -> dict[str, Any]:
        if learned.part is None:
            return {}
        losses, settings = learned.part.loss_history, self.get_params(deep=False)
        triplets = len(losses) * settings["batches_per_epoch"] * settings["batch_size"]
        facts = {"triplets": triplets, "triplets_per_node": round(triplets / len(graph), 1), "loss": losses[-1]}
        return {"training": facts}

    def score(self, pairs: Sequence[tuple[Any, Any]] | np.ndarray) -> np.ndarray:
        """Score how likely pairs of nodes, given by their ids, are to be linked: ⟨h(u), h(v)⟩, the higher the likelier.

        h is a ReLU layer over the vectors or, where `length` or `score_steps` is 0, that of the learned part.
        """
        fitted = self._require_fitted()
        rows = find_pairs(fitted.graph.ids, pairs)
        vectors, layer, part = fitted.learned[:3]
        if layer is not None:
            return layer.score(vectors, rows)
        if part is None:
            raise GraphError(
                f"no score was learned: graph '{fitted.graph.name}' has no links to learn it from, or score_steps is 0 "
                "and there is no learned part; compare vectors by their cosine"
            )
        nodes, places = np.unique(rows, return_inverse=True)
        with part.engine(fitted.settings) as engine:
            hidden = engine.hide(engine.embed(nodes.astype(np.int32)))
        return inner_products(hidden, places.reshape(rows.shape))
