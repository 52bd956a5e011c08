"""Make the two parts of a vector, join them as [spectral ‖ learned], and explain them."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from neural_brane.files.checkpoints import Stage
from neural_brane.graph import AttributedGraph
from neural_brane.insight.contributions import Contributions, PooledReasons, SpectralReasons
from neural_brane.kernels.model import POOLING, Bags, Model, Settings, bags_of
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
from neural_brane.progress import Meter

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
    return hops_of(graph, settings["hop_weights"], link_weight=settings["link_weight"], centred=settings["centre"])


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
    divisors: np.ndarray  # (nodes, 2) float32, what the rows of the spectral and of the learned part were divided by


def join(
    spectral: Decomposition,
    learned: Iterator[np.ndarray],
    settings: dict[str, Any],
    mean: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Joint:
    """Return both parts side by side, the learned part centred; see `side_by_side`.

    mean: returns the float64 mean over all nodes; needed if the rows are those of one rank only.
    """
    nodes, width = spectral.vectors.shape
    own = stack(learned, nodes, settings["dim"] - width)
    centre = np.zeros(own.shape[1], np.float32)
    if settings["centre"]:
        centre = (mean(own) if mean else own.mean(axis=0, dtype=np.float64)).astype(np.float32)
        own -= centre
    vectors, divisors = side_by_side(spectral.vectors * column_scale(spectral.values, settings), own, settings)
    return Joint(vectors, centre, divisors)


def column_scale(values: np.ndarray, settings: dict[str, Any]) -> np.ndarray:
    """Return the factor of each spectral column, which raises its singular value to `spectral_power`."""
    share = np.divide(values, values.max(initial=0), out=np.ones_like(values), where=values > 0)
    return (share ** ((settings["spectral_power"] - 1) / 2)).astype(np.float32)


def side_by_side(spectral: np.ndarray, own: np.ndarray, settings: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of both parts, and what the rows of each part were divided by.

    The rows of both parts come to one length before they are joined, so that `learned_weight` holds for every node;
    then every vector comes to `length`. If that is 0, there is only a learned part, and it stays as it is.
    """
    width, length = spectral.shape[1], settings["length"]
    vectors, divisors = np.hstack([spectral, own]), np.ones((len(own), 2), np.float32)
    if not length:
        return vectors, divisors
    parts = vectors[:, :width], vectors[:, width:]
    for column, (part, weight) in enumerate(zip(parts, (1.0, settings["learned_weight"]), strict=True)):
        lengths = _lengths(part) / np.float32(weight)
        part /= lengths
        divisors[:, [column]] = lengths
    lengths = _lengths(vectors) / np.float32(length)
    vectors /= lengths
    return vectors, divisors * lengths


def _lengths(rows: np.ndarray) -> np.ndarray:
    """Return the lengths of rows (nodes, 1), 1 for a row of zeros."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.where(lengths > 0, lengths, np.float32(1))


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
    scale: np.ndarray  # factors of the spectral columns
    divisors: np.ndarray  # (nodes, 2), of the rows of both parts

    def contributions(self, row: int, targets: np.ndarray) -> Contributions:
        """Return the terms that add up to the inner products of a node's vector with targets (t, dim)."""
        parts, width = [], len(self.scale)
        first, second = self.divisors[row].astype(np.float64)
        if self.spectral is not None:
            parts.append(self.spectral.contributions(row, targets[:, :width] * self.scale / first))
        if self.learned is not None:
            parts.append(self.learned.contributions(row, targets[:, width:] / second))
        return Contributions.sum(parts, len(targets))
