"""Make the two parts of a vector, join them as [spectral ‖ learned], score pairs of vectors and explain them."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane.embedding import Layer
from neural_brane.files.checkpoints import Stage
from neural_brane.graph import AttributedGraph
from neural_brane.insight.contributions import Contributions, PooledReasons, SpectralReasons
from neural_brane.kernels.model import POOLING, Bags, Model, Settings, bags_of, padded, zeros
from neural_brane.linalg.eigenvectors import REPORTS, Hops
from neural_brane.methods.base import stack
from neural_brane.methods.neural_brane.training import (
    Engine,
    GradientDescent,
    initial_model,
    open_engine,
    require_room,
    start_numbers,
)
from neural_brane.methods.spectral import Decomposition, decompose, hops_of
from neural_brane.methods.training import Loop
from neural_brane.progress import Meter
from neural_brane.sampling.tables import can_rank

if TYPE_CHECKING:
    from neural_brane.methods.neural_brane.model import Learned

BLOCK_NODES = 65_536  # nodes embedded at a time
STEP_BATCH = 100  # batch size at which table_rate equals the learning rate


class LearnedPart(NamedTuple):
    """A trained model, the bags that it pools, and its losses."""

    model: Model
    bags: tuple[Bags, Bags]  # bags of attributes, bags of neighbours
    kernel_settings: Settings
    loss_history: list[float]  # mean −ln σ of each epoch

    def engine(self, settings: dict[str, Any]) -> Engine:
        """Return an engine that runs the model on its device."""
        return open_engine(settings, self.model, self.bags, self.kernel_settings)


def hops_in(graph: AttributedGraph, settings: dict[str, Any]) -> Hops:
    """Return the matrix of attributes and links over hops; its SVD is the spectral part."""
    return hops_of(graph, settings["hop_weights"], link_weight=settings["link_weight"])


def spectral_part(graph: AttributedGraph, settings: dict[str, Any], seed: int) -> Decomposition:
    """Return the joint SVD of attributes and links over hops, vectors (nodes, spectral_dim)."""
    meter = Meter(settings["progress"], REPORTS, "steps", stage="spectral part")
    return decompose(
        hops_in(graph, settings), settings["spectral_dim"], seed=seed, threads=settings["threads"],
        device=settings["device"], report=meter.advance,
    )  # fmt: skip


def learn(graph: AttributedGraph, settings: dict[str, Any], seed: int, stage: Stage) -> LearnedPart:
    """Return a trained model; training starts again, or resumes from the checkpoint of its stage."""
    own = settings | {"dim": settings["dim"] - settings["spectral_dim"]}
    require_room(own, graph)
    bags = bags_of(graph.attributes), bags_of(graph.adjacency)
    model, numbers = initial_model(graph, own, seed), start_numbers()
    stage.restore(model._asdict(), numbers)  # must come before the model is copied to a device
    start = LearnedPart(model, bags, kernel_settings(own), numbers["losses"])
    with start.engine(own) as engine:
        training = GradientDescent(own, engine, numbers)
        training.run(graph, seed, stage)
        training.warn_if_untrained()
        return start._replace(model=engine.model())


def learned_vectors(part: LearnedPart, nodes: int, settings: dict[str, Any]) -> Iterator[np.ndarray]:
    """Yield the vectors of a trained model, some rows at a time, in the form that `output` names."""
    d1, dim = part.kernel_settings.attribute_dim, part.model.weight.shape[1]
    with part.engine(settings) as engine:
        for start in range(0, nodes, BLOCK_NODES):
            rows = np.arange(start, min(start + BLOCK_NODES, nodes), dtype=np.int32)
            pooled = engine.embed(rows)
            if settings["output"] == "hidden":
                yield engine.hide(pooled)
            elif settings["output"] == "released":
                yield np.hstack([part.model.neighbour_table[rows, : dim - d1], np.maximum(pooled[:, :d1], 0)])
            else:
                yield pooled


class Joint(NamedTuple):
    """Vectors of two parts, and the numbers needed to make more of them."""

    vectors: np.ndarray  # (nodes, dim) float32
    centre: np.ndarray  # mean of the learned part, subtracted from it
    scale: np.float32  # factor of the learned part
    lengths: np.ndarray  # (nodes, 1), lengths of the vectors before all got the same one


def join(
    spectral: np.ndarray,
    learned: Iterator[np.ndarray],
    settings: dict[str, Any],
    mean: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Joint:
    """Return both parts side by side: the learned part centred and scaled by `learned_weight`, each vector at `length`.

    mean: returns the float64 mean over all nodes; needed if the rows are those of one rank only.
    """
    mean = mean or (lambda values: values.mean(axis=0, dtype=np.float64))
    nodes, width = spectral.shape
    own = stack(learned, nodes, settings["dim"] - width)
    centre, scale = np.zeros(own.shape[1], np.float32), np.float32(1)
    if settings["centre"]:
        centre = mean(own).astype(np.float32)
        own -= centre
    if width:
        scale = np.float32(settings["learned_weight"] * _length(spectral, mean) / (_length(own, mean) or 1.0))
        own *= scale
    vectors = np.hstack([spectral, own]) if width else own
    return Joint(vectors, centre, scale, set_length(vectors, settings["length"]))


def set_length(vectors: np.ndarray, length: float) -> np.ndarray:
    """Scale all vectors to one length in place, unless it is 0; return the earlier lengths (nodes, 1), 1 for zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    lengths[lengths == 0] = 1
    if length:
        vectors *= length / lengths
    return lengths


def _length(part: np.ndarray, mean: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the root mean square length of a table's rows."""
    return float(np.sqrt(mean(np.einsum("ij,ij->i", part, part))))


def kernel_settings(s: dict[str, Any]) -> Settings:
    """Return the parameters in force in the form of the kernels.

    The mean over a batch divides a row's gradient by the batch size, although few triplets use the row. So the rate of
    rows grows with the batch size: their step size stays that of batch 100, as in the recipes. All triplets use W and
    b, which take one step by the mean.
    """
    batches = s["batch_size"] / STEP_BATCH if s["loss"] == "mean" else 1.0
    table_rate, whole = s["learning_rate"] * batches, s["regularise"] == "parameters"
    return Settings(
        attribute_dim=s["attribute_dim"], pooling=POOLING[s["pooling"]], zero_floor=s["zero_floor"],
        learning_rate=s["learning_rate"], table_rate=table_rate, train_bias=s["bias"],
        triplet_scale=1 / s["batch_size"] if s["loss"] == "mean" else 1.0,
        hidden_l2=s["l2"] / batches if s["regularise"] == "hidden" else 0.0, parameter_l2=s["l2"] if whole else 0.0,
    )  # fmt: skip


class JointReasons(NamedTuple):
    """The explainers of both parts of a vector."""

    spectral: SpectralReasons | None
    learned: PooledReasons | None
    width: int  # columns of the spectral part
    lengths: np.ndarray  # (nodes, 1), divisor of each vector

    def contributions(self, row: int, targets: np.ndarray) -> Contributions:
        """Return the terms that add up to the inner products of a node's vector with targets (t, dim)."""
        scaled = targets / float(self.lengths[row, 0])
        parts = []
        if self.spectral is not None:
            parts.append(self.spectral.contributions(row, scaled[:, : self.width]))
        if self.learned is not None:
            parts.append(self.learned.contributions(row, scaled[:, self.width :]))
        return Contributions.sum(parts, len(targets))


BATCH = 1_024
RATE, WEIGHT_STD, L2 = 0.5, 0.05, 5e-5  # at twice the rate, few classes and a small dim led to h = 0 for all
UPDATE_SHARE = 10  # score_steps are divided by this if an earlier layer is trained further
SEED = 4  # second part of the layer's seed, used nowhere else


def make_layer(
    learned: "Learned", graph: AttributedGraph, settings: dict[str, Any], seed: int, stage: Stage
) -> Layer | None:
    """Return the layer that scores pairs of vectors, trained further from an earlier one; None if there can be none."""
    before, part = learned.layer, learned.part
    if settings["length"] and settings["score_steps"] and can_rank(graph.adjacency):
        return train_layer(learned, graph, settings, seed, stage)
    if part and settings["output"] == "pooled" and not settings["length"]:
        model = part.model  # Vectors are v = f − centre, so W f + b = W v + W centre + b.
        return Layer(model.weight, model.bias + model.weight @ learned.joint.centre)
    return before


def train_layer(learned: "Learned", graph: AttributedGraph, settings: dict[str, Any], seed: int, stage: Stage) -> Layer:
    """Return the layer h(u) = ReLU(W v(u)) after training W by Bayesian personalized ranking; v stays unchanged.

    It uses the kernels of the model: a node's bag of attributes has one row, its own vector, with step size zero, and
    the table of neighbours has no columns. An earlier layer is trained further.
    """
    before, (nodes, dim) = learned.layer, learned.vectors.shape
    table = zeros(nodes, padded(dim))
    table[:, :dim] = learned.vectors
    steps = -(-settings["score_steps"] // (UPDATE_SHARE if before else 1))
    drawn = np.random.default_rng((seed, SEED)).standard_normal((dim, dim), np.float32) * np.float32(WEIGHT_STD)
    weight = before.weight.copy() if before else drawn
    model = Model(table, zeros(nodes, 0), weight, np.zeros(dim, np.float32))
    stage.restore({"weight": weight}, {})  # Training changes nothing else.
    bags = Bags(np.arange(nodes + 1, dtype=np.int64), np.arange(nodes, dtype=np.int32)), bags_of(graph.adjacency)
    with open_engine(settings, model, bags, layer_settings(dim)) as engine:
        options = {name: settings[name] for name in ("negative_power", "allow_self_negative")}
        sampler = engine.sampler(graph.adjacency, seed=seed, **options)
        chunk = max(1, engine.chunk_triplets // BATCH)

        loop = Loop(
            stage, Meter(settings["progress"], steps, "steps", stage="scores of pairs"), -(-steps // chunk),
            units=lambda at: min(at * chunk, steps), length=settings["length"],
        )  # fmt: skip

        def step(at: int) -> None:
            first, count = at * chunk, min(chunk, steps - at * chunk)
            losses = engine.train(sampler.draw(first * BATCH, count * BATCH).reshape(count, BATCH, 3))
            loop.require_finite(at, **{"the losses of the score": losses})

        loop.run(lambda: {"weight": engine.model().weight}, step)
        trained = engine.model()
    return Layer(trained.weight, trained.bias)


def layer_settings(dim: int) -> Settings:
    """Return the settings of the kernels for the layer that scores pairs."""
    return Settings(
        attribute_dim=dim, pooling=POOLING["max"], zero_floor=False, learning_rate=RATE, table_rate=0.0,
        triplet_scale=1 / BATCH, hidden_l2=L2 * 100 / BATCH, parameter_l2=0.0, train_bias=False,
    )  # fmt: skip
