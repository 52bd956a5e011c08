"""Neural-Brane: attributes and neighbours, max-pooled, mixed by a ReLU layer, trained by BPR."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.checkpoint import Checkpoint
from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.kernels.model import POOLING, Bags, Model, Settings
from neural_brane.methods.base import OF_THE_RUN, Embedder, require
from neural_brane.methods.devices import resolve
from neural_brane.methods.neural_brane.engines import Engine, open_engine, require_room
from neural_brane.methods.neural_brane.initial import random_table
from neural_brane.methods.neural_brane.recipes import ATTRIBUTE_SHARE, RECIPES
from neural_brane.progress import Progress, Reporter

BLOCK_NODES = 65_536  # embedded at a time
FLAT_EPOCHS = 3


class NeuralBrane(Embedder):
    """Neural Bayesian personalized ranking for attributed network embedding (Dave, Zhang, Chen, Al Hasan; 2018).

    A node's vector is the largest entry, per dimension, among the embeddings of its attributes, beside the same
    for its neighbours. A ReLU layer mixes the two; training ranks neighbours above others by its inner products.
    It reads which attributes a node has, not how much of each.

    Parameters
    ----------
    recipe : what the parameters left as None mean: "default", "released" (the authors' program) or "paper".
    dim : width of a vector.
    attribute_dim : the attributes' share of dim; the rest is the neighbours'. More of it can tell classes
        better, less of it links. When None, three quarters in the default recipe and half in the two others.
    hidden : width of the ReLU layer; dim when None.
    pooling : "max", "sum" or "mean" over a node's rows.
    zero_floor : max pooling sees one more row, of zeros. In the released program padding to a batch's longest bag
        has this effect on all shorter ones; here the longest has it too, so that a step does not depend on which
        nodes share a batch.
    bias : train the ReLU layer's bias; without, it stays zero.
    regularise : what `l2` weighs: "parameters" (‖Θ‖²) or "hidden" (Σ ‖h‖² over the nodes of a batch).
    l2 : weight of the regularisation, the paper's λ.
    loss : "mean" or "sum" of −ln σ over a batch.
    negative_power : j is drawn in proportion to this power of its number of neighbours.
    allow_self_negative : j may be u itself.
    table_std, weight_std : spread of the first values of P and P', and of W.
    learning_rate, batch_size : of mini-batch SGD; the batch counts triplets.
    epochs, batches_per_epoch : the schedule; `epochs` is an upper bound where `tolerance` is given.
    tolerance : stop once three epochs together lower the loss by less than this share of it.
    output : "pooled" (the paper's f), "hidden" (h), or "released" (the node's own row of P' beside max(0, v_attr)).
    seed : the same seed gives the same vectors, on the CPU bit for bit on any number of threads. None draws one.
    threads : CPU threads; all when None.
    device : "cpu", "cuda" (an NVIDIA GPU, by PyTorch and Triton), or "auto": the GPU where there is one.
    deterministic : on the GPU, add gradients up in one order, so that a seed gives the same bits again; slower. The
        CPU always does.
    checkpoint : a file that keeps the state of the run: `fit` goes on from it where it exists, and ends with the
        same vectors as a run that was never stopped. Needs a seed.
    progress : called with a `Progress` a few times a second.

    Attributes
    ----------
    embedding_, loss_history_ (mean −ln σ of each epoch), model_, seed_, settings_, kernel_settings_

    Examples
    --------
    >>> from neural_brane import NeuralBrane, load
    >>> embedding = NeuralBrane(dim=32, epochs=1, seed=0).fit_transform(load("stdlib"))
    >>> embedding.vectors.shape
    (554, 32)
    """

    title = "neural-brane"
    uses = ("links", "attributes")
    inductive = False
    growth = "time: triplets × (dim² + mean bag × dim); memory: nodes + edges + attribute entries"
    paper = "Dave, Zhang, Chen, Al Hasan: Neural-Brane, 2018"

    def __init__(
        self,
        *,
        recipe: str = "default",
        dim: int = 150,
        attribute_dim: int | None = None,
        hidden: int | None = None,
        pooling: str = "max",
        zero_floor: bool | None = None,
        bias: bool | None = None,
        regularise: str | None = None,
        l2: float | None = None,
        loss: str | None = None,
        negative_power: float | None = None,
        allow_self_negative: bool | None = None,
        table_std: float | None = None,
        weight_std: float | None = None,
        learning_rate: float | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        batches_per_epoch: int = 1000,
        tolerance: float | None = None,
        output: str | None = None,
        seed: int | None = None,
        threads: int | None = None,
        device: str = "cpu",
        deterministic: bool = False,
        checkpoint: str | Path | None = None,
        progress: Reporter | None = None,
    ):
        self.recipe = recipe
        self.dim = dim
        self.attribute_dim = attribute_dim
        self.hidden = hidden
        self.pooling = pooling
        self.zero_floor = zero_floor
        self.bias = bias
        self.regularise = regularise
        self.l2 = l2
        self.loss = loss
        self.negative_power = negative_power
        self.allow_self_negative = allow_self_negative
        self.table_std = table_std
        self.weight_std = weight_std
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.batches_per_epoch = batches_per_epoch
        self.tolerance = tolerance
        self.output = output
        self.seed = seed
        self.threads = threads
        self.device = device
        self.deterministic = deterministic
        self.checkpoint = checkpoint
        self.progress = progress

    def _fit(self, graph: AttributedGraph) -> None:
        self.settings_ = self._settings()
        self.kernel_settings_ = kernel_settings(self.settings_)
        self.seed_ = secrets.randbits(63) if self.seed is None else self.seed
        self._attribute_bags = _bags(graph.attributes)
        self._neighbour_bags = _bags(graph.adjacency)
        require_room(self.settings_, graph)
        self.model_ = self._initial_model(graph)
        self.loss_history_: list[float] = []
        keeper = self._keeper(graph)
        if keeper and keeper.exists():
            self.model_, self.loss_history_ = keeper.load(self.model_)
        with self._engine() as engine:
            self._train(graph, keeper, engine)
            self.model_ = engine.model()

    def _settings(self) -> dict[str, Any]:
        """Every parameter's value in force, checked."""
        settings = self.parameters_in_force()
        _check(settings)
        return settings | {"device": resolve(self.device)}

    def parameters_in_force(self) -> dict[str, Any]:
        """Every parameter's value, where it is None the recipe's."""
        require(self.recipe in RECIPES, "recipe", self.recipe, f"one of {', '.join(RECIPES)}")
        shape = {"attribute_dim": int(ATTRIBUTE_SHARE[self.recipe] * self.dim), "hidden": self.dim}
        parameters = self.get_params()
        given = {name: value for name, value in parameters.items() if value is not None}
        return parameters | shape | RECIPES[self.recipe] | given

    def _initial_model(self, graph: AttributedGraph) -> Model:
        s = self.settings_
        attributes, neighbours, layer = np.random.SeedSequence(self.seed_).spawn(3)
        d1, hidden, rng = s["attribute_dim"], s["hidden"], np.random.default_rng(layer)
        return Model(
            attribute_table=random_table(attributes, graph.attributes.shape[1], d1, s["table_std"]),
            neighbour_table=random_table(neighbours, len(graph), self.dim - d1, s["table_std"]),
            weight=rng.standard_normal((hidden, self.dim), np.float32) * np.float32(s["weight_std"]),
            bias=np.zeros(hidden, np.float32),
        )

    def _keeper(self, graph: AttributedGraph) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        require(self.seed is not None, "seed", self.seed, "a number when there is a checkpoint, to go on with")
        free = {"epochs", "tolerance", "output", "recipe"}  # may change without changing the steps taken so far
        settings = {name: value for name, value in self._resolved().items() if name not in free}
        return Checkpoint(self.checkpoint, settings | {"data": graph.digest()})

    def _engine(self) -> Engine:
        return open_engine(
            self.settings_["device"], self.model_, self._attribute_bags, self._neighbour_bags, self.kernel_settings_,
            threads=self.threads, deterministic=self.deterministic,
        )  # fmt: skip

    def _train(self, graph: AttributedGraph, keeper: Checkpoint | None, engine: Engine) -> None:
        s = self.settings_
        options = {name: s[name] for name in ("negative_power", "allow_self_negative")}
        sampler = engine.sampler(graph.adjacency, seed=self.seed_, **options)
        batch, steps = s["batch_size"], s["batches_per_epoch"]
        chunk = max(1, min(steps, engine.chunk_triplets // batch))
        for epoch in range(len(self.loss_history_), s["epochs"]):
            total = 0.0
            for step in range(0, steps, chunk):
                begun = time.perf_counter()
                count = min(chunk, steps - step)
                first = (epoch * steps + step) * batch
                triplets = sampler.draw(first, count * batch).reshape(count, batch, 3)
                total += self._finite(engine.train(triplets), epoch).sum()
                if self.progress:
                    rate = count * batch / (time.perf_counter() - begun)
                    done, mean = first + count * batch, total / (step + count)
                    self.progress(Progress(epoch + 1, s["epochs"], done, s["epochs"] * steps * batch, mean, rate))
            self.loss_history_.append(float(total / steps))
            flat = s["tolerance"] is not None and _flat(self.loss_history_, s["tolerance"])
            if keeper:
                keeper.save(engine.model(), self.loss_history_, force=flat or epoch + 1 == s["epochs"])
            if flat:
                break

    def _finite(self, losses: np.ndarray, epoch: int) -> np.ndarray:
        if np.isfinite(losses).all():
            return losses
        raise ParameterError(
            f"training diverged in epoch {epoch + 1}: the loss is no longer a number; lower "
            f"learning_rate={self.settings_['learning_rate']} or set loss='mean'"
        )

    def _blocks(self) -> Iterator[np.ndarray]:
        with self._engine() as engine:
            for start in range(0, len(self.graph_), BLOCK_NODES):
                nodes = np.arange(start, min(start + BLOCK_NODES, len(self.graph_)), dtype=np.int32)
                yield self._output(nodes, engine)

    def _output(self, nodes: np.ndarray, engine: Engine) -> np.ndarray:
        """Vectors (k, dim) of some nodes, in the form `output` asks for."""
        d1, pooled = self.settings_["attribute_dim"], engine.embed(nodes)
        if self.settings_["output"] == "hidden":
            return engine.hide(pooled)
        if self.settings_["output"] == "released":
            own = self.model_.neighbour_table[nodes, : self.dim - d1]
            return np.hstack([own, np.maximum(pooled[:, :d1], 0)])
        return pooled

    def _resolved(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.settings_.items() if name not in OF_THE_RUN}
        return kept | {"seed": self.seed_}


def kernel_settings(s: dict[str, Any]) -> Settings:
    """What kernels want to know of the parameters in force."""
    return Settings(
        attribute_dim=s["attribute_dim"],
        pooling=POOLING[s["pooling"]],
        zero_floor=s["zero_floor"],
        learning_rate=float(s["learning_rate"]),
        triplet_scale=1 / s["batch_size"] if s["loss"] == "mean" else 1.0,
        hidden_l2=float(s["l2"]) if s["regularise"] == "hidden" else 0.0,
        parameter_l2=float(s["l2"]) if s["regularise"] == "parameters" else 0.0,
        train_bias=s["bias"],
    )


def _check(s: dict[str, Any]) -> None:
    """Refuse settings that make no sense, one clear message each."""
    choices = {
        "pooling": tuple(POOLING),
        "regularise": ("hidden", "parameters"),
        "loss": ("mean", "sum"),
        "output": ("pooled", "hidden", "released"),
    }
    for name, allowed in choices.items():
        require(s[name] in allowed, name, s[name], f"one of {', '.join(allowed)}")
    for name in ("hidden", "batch_size", "epochs", "batches_per_epoch"):
        require(isinstance(s[name], int) and s[name] >= 1, name, s[name], "a whole number from 1")
    for name in ("learning_rate", "table_std", "weight_std"):
        require(0 < s[name] < np.inf, name, s[name], "a number above 0")
    for name in ("l2", "negative_power"):
        require(0 <= s[name] < np.inf, name, s[name], "a number from 0")
    require(s["seed"] is None or 0 <= s["seed"] < 2**63, "seed", s["seed"], "a whole number from 0, or None")
    require(0 <= s["attribute_dim"] <= s["dim"], "attribute_dim", s["attribute_dim"], f"0 to dim={s['dim']}")
    require(s["tolerance"] is None or s["tolerance"] > 0, "tolerance", s["tolerance"], "a number above 0, or None")
    require(
        s["output"] != "hidden" or s["hidden"] == s["dim"],
        "hidden", s["hidden"], f"dim={s['dim']} when output='hidden', whose vectors are hidden numbers wide",
    )  # fmt: skip


def _bags(matrix: Any) -> Bags:
    return Bags(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False))


def _flat(history: list[float], tolerance: float) -> bool:
    """Whether the last epochs brought little, once the loss has left ln 2, where small first weights hold it."""
    if len(history) <= FLAT_EPOCHS or history[-1] > 0.98 * np.log(2):
        return False
    before = history[-1 - FLAT_EPOCHS]
    return before - history[-1] < tolerance * before
