"""Score pairs of nodes: a ReLU layer over finished vectors that ranks neighbours above others."""

from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.embedding import Layer
from neural_brane.files.checkpoints import Stage
from neural_brane.graph import AttributedGraph
from neural_brane.kernels.model import POOLING, Bags, Model, Settings, bags_of, padded, zeros
from neural_brane.methods.neural_brane.training import open_engine
from neural_brane.methods.training import Loop
from neural_brane.progress import Meter
from neural_brane.sampling.tables import can_rank

if TYPE_CHECKING:
    from neural_brane.methods.neural_brane.model import Learned

BATCH = 1_024
RATE, WEIGHT_STD, L2 = 0.5, 0.05, 5e-5  # at twice the rate, few classes in few dimensions end with all h = 0
LEADING_ON = 10  # a layer that continues an earlier one takes one in so many of its steps
SEED = 4  # beside the run's own seed: no other part of a model is drawn with it


def make_layer(
    learned: "Learned", graph: AttributedGraph, settings: dict[str, Any], seed: int, stage: Stage
) -> Layer | None:
    """Train the layer that scores pairs of vectors, where one can be learned; it continues any earlier one."""
    before, part = learned.layer, learned.part
    if settings["length"] and settings["score_steps"] and can_rank(graph.adjacency):
        return train_layer(learned.vectors, graph, settings, seed, stage, before)
    if part and settings["output"] == "pooled" and not settings["length"]:
        return fold_layer(part.model, learned.joint.centre)
    return before


def train_layer(
    vectors: np.ndarray,
    graph: AttributedGraph,
    settings: dict[str, Any],
    seed: int,
    stage: Stage,
    before: Layer | None = None,
) -> Layer:
    """Train W of h(u) = ReLU(W v(u)) by Bayesian personalized ranking; the vectors v stay as they are.

    The kernels of the model do it: a node's bag of attributes is one row, its own vector, which takes steps of length
    zero, and the table of neighbours has no columns. before: a layer to continue.
    """
    nodes, dim = vectors.shape
    table = zeros(nodes, padded(dim))
    table[:, :dim] = vectors
    steps = -(-settings["score_steps"] // (LEADING_ON if before else 1))
    drawn = np.random.default_rng((seed, SEED)).standard_normal((dim, dim), np.float32) * np.float32(WEIGHT_STD)
    weight = before.weight.copy() if before else drawn
    model = Model(table, zeros(nodes, 0), weight, np.zeros(dim, np.float32))
    stage.restore({"weight": weight}, {})  # all that training changes
    bags = Bags(np.arange(nodes + 1, dtype=np.int64), np.arange(nodes, dtype=np.int32)), bags_of(graph.adjacency)
    with open_engine(settings, model, bags, _settings(dim)) as engine:
        options = {name: settings[name] for name in ("negative_power", "allow_self_negative")}
        sampler = engine.sampler(graph.adjacency, seed=seed, **options)
        chunk = max(1, engine.chunk_triplets // BATCH)

        loop = Loop(
            stage, Meter(settings["progress"], steps, "steps", part="scores of pairs"), -(-steps // chunk),
            units=lambda at: min(at * chunk, steps), length=settings["length"],
        )  # fmt: skip

        def step(at: int) -> None:
            first, count = at * chunk, min(chunk, steps - at * chunk)
            losses = engine.train(sampler.draw(first * BATCH, count * BATCH).reshape(count, BATCH, 3))
            loop.require_finite(at, **{"the losses of the score": losses})

        loop.run(lambda: {"weight": engine.model().weight}, step)
        trained = engine.model()
    return Layer(trained.weight, trained.bias)


def fold_layer(model: Model, centre: np.ndarray) -> Layer:
    """Make the model's own layer fit vectors v = f − centre: W f + b = W v + W centre + b."""
    return Layer(model.weight, model.bias + model.weight @ centre)


def _settings(dim: int) -> Settings:
    return Settings(
        attribute_dim=dim,
        pooling=POOLING["max"],
        zero_floor=False,
        learning_rate=RATE,
        table_rate=0.0,
        triplet_scale=1 / BATCH,
        hidden_l2=L2 * 100 / BATCH,
        parameter_l2=0.0,
        train_bias=False,
    )
