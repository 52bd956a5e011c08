"""Neural-Brane: attributes and neighbours, max-pooled, mixed by a ReLU layer, trained by BPR."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.checkpoint import Checkpoint
from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.kernels.model import POOLING, Bags, Model, Settings
from neural_brane.methods.base import Embedder, require
from neural_brane.methods.neural_brane.engines import Engine, open_engine, require_room
from neural_brane.methods.neural_brane.initial import initial_model
from neural_brane.methods.neural_brane.recipes import ATTRIBUTE_SHARE, RECIPES
from neural_brane.methods.parameters import choice, flag, number, shared, whole
from neural_brane.progress import Meter

BLOCK_NODES = 65_536  # embedded at a time
FLAT_EPOCHS = 3
STEP_BATCH = 100  # rows of the tables take the step that they would take at this batch
RESUMABLE = {"epochs", "tolerance", "output", "recipe"}  # may differ from those of the run that is gone on with


class Learned(NamedTuple):
    """A trained model, what it pools, and how its training went."""

    model: Model
    bags: tuple[Bags, Bags]  # of attributes and of neighbours
    kernel_settings: Settings
    loss_history: list[float]  # the mean −ln σ of each epoch


class NeuralBrane(Embedder):
    """Neural Bayesian personalized ranking for attributed network embedding (Dave, Zhang, Chen, Al Hasan; 2018).

    A node's vector is the largest entry, per dimension, among the embeddings of its attributes, beside the same
    for its neighbours. A ReLU layer mixes the two; training ranks neighbours above others by its inner products.
    It reads which attributes a node has, not how much of each. Parameters left as None follow the recipe.

    Examples
    --------
    >>> from neural_brane import NeuralBrane, load
    >>> embedding = NeuralBrane(dim=32, epochs=1, seed=0).fit_transform(load("stdlib"))
    >>> embedding.vectors.shape
    (554, 32)
    """

    title = "neural-brane"
    uses = ("links", "attributes")
    growth = "time: triplets × (dim² + mean bag × dim); memory: nodes + edges + attribute entries"
    paper = "Dave, Zhang, Chen, Al Hasan: Neural-Brane, 2018"
    packages = ("torch", "triton")

    recipe: str = choice(
        "Decides the parameters left as None: default, released (the authors' program) or paper (its text).",
        default="default",
        options=tuple(RECIPES),
    )
    attribute_dim: int | None = whole(
        "How much of dim is made from attributes; the rest is made from neighbours. More of it can tell classes "
        "better, less of it links. When None three quarters in the default recipe, half in the others.",
        default=None,
        least=0,
    )
    hidden: int | None = whole("Width of the ReLU layer; dim when None.", default=None)
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
        "layer takes one step by the batch's mean.",
        default=None,
    )
    epochs: int | None = shared("epochs", default=None, about="At most so many, where there is a tolerance.")
    batches_per_epoch: int = whole("Batches in an epoch.", default=1000)
    tolerance: float | None = number(
        "Stop once three epochs together lower the loss by less than this share of it; never when None.",
        default=None,
        above=0,
    )
    output: str | None = choice(
        "The vector: pooled (the paper's f), hidden (h), or released (the node's own row of P' beside max(0, v_attr)).",
        default=None,
        options=("pooled", "hidden", "released"),
    )
    device: str = shared("device", default="cpu")
    deterministic: bool = flag(
        "On the GPU, add gradients up in one order, so that a seed gives the same bits again; slower. The CPU always "
        "does.",
        default=False,
    )
    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def parameters_in_force(self) -> dict[str, Any]:
        """Every parameter's value as training uses it: where it is None, the recipe's."""
        values = super().parameters_in_force()
        given = {name: value for name, value in values.items() if value is not None}
        shape = {"attribute_dim": int(ATTRIBUTE_SHARE[values["recipe"]] * values["dim"]), "hidden": values["dim"]}
        values |= shape | RECIPES[values["recipe"]] | given
        dim, hidden, attribute_dim = values["dim"], values["hidden"], values["attribute_dim"]
        require(attribute_dim <= dim, "attribute_dim", attribute_dim, f"0 to dim={dim}")
        square = values["output"] != "hidden" or hidden == dim
        require(square, "hidden", hidden, f"dim={dim} when output='hidden', whose vectors are hidden numbers wide")
        kernel = kernel_settings(values)
        shrinks = 2 * kernel.table_rate * kernel.parameter_l2 < 1
        require(
            shrinks,
            "l2",
            values["l2"],
            f"a smaller number: a batch of {values['batch_size']} would shrink rows below nothing",
        )
        seeded = values["checkpoint"] is None or values["seed"] is not None
        require(seeded, "seed", None, "a number when there is a checkpoint, to go on with")
        return values

    def _learn(self, graph: AttributedGraph, seed: int) -> Learned:
        settings = self.get_params()
        require_room(settings, graph)
        bags = _bags(graph.attributes), _bags(graph.adjacency)
        start = Learned(initial_model(graph, settings, seed), bags, kernel_settings(settings), [])
        checkpoint = self._checkpoint(graph)
        if checkpoint and checkpoint.exists():
            start.loss_history.extend(checkpoint.load(start.model._asdict()))
        with self._engine(start) as engine:
            self._train(graph, seed, engine, start.loss_history, checkpoint)
            return start._replace(model=engine.model())

    def _checkpoint(self, graph: AttributedGraph) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        settings = self.deciding_parameters() | {"seed": self.seed}
        same = {name: value for name, value in settings.items() if name not in RESUMABLE}
        return Checkpoint(self.checkpoint, same | {"data": graph.digest()})

    def _engine(self, learned: Learned) -> Engine:
        return open_engine(
            self.device, learned.model, learned.bags, learned.kernel_settings,
            threads=self.threads, deterministic=self.deterministic,
        )  # fmt: skip

    def _train(
        self, graph: AttributedGraph, seed: int, engine: Engine, losses: list[float], checkpoint: Checkpoint | None
    ) -> None:
        """Train to the last epoch, or until the loss is flat; adds the loss of each epoch to losses."""
        s = self.get_params()
        options = {name: s[name] for name in ("negative_power", "allow_self_negative")}
        sampler = engine.sampler(graph.adjacency, seed=seed, **options)
        per_epoch = s["batches_per_epoch"] * s["batch_size"]
        done = len(losses) * per_epoch
        meter = Meter(self.progress, s["epochs"] * per_epoch, "triplets", epochs=s["epochs"], done=done)
        for epoch in range(len(losses), s["epochs"]):
            losses.append(self._epoch(epoch, sampler, engine, meter))
            flat = s["tolerance"] is not None and _flat(losses, s["tolerance"])
            if checkpoint:
                last = flat or epoch + 1 == s["epochs"]
                checkpoint.save(engine.model()._asdict(), losses, force=last)
            if flat:
                break

    def _epoch(self, epoch: int, sampler: Any, engine: Engine, meter: Meter) -> float:
        """Train one epoch, as many batches at a time as the engine likes; returns its mean loss."""
        s = self.get_params()
        batch, steps = s["batch_size"], s["batches_per_epoch"]
        chunk = max(1, min(steps, engine.chunk_triplets // batch))
        total = 0.0
        for step in range(0, steps, chunk):
            count = min(chunk, steps - step)
            first = (epoch * steps + step) * batch
            triplets = sampler.draw(first, count * batch).reshape(count, batch, 3)
            losses = engine.train(triplets)
            if not np.isfinite(losses).all():
                raise ParameterError(
                    f"training diverged in epoch {epoch + 1}: the loss is no longer a number; lower "
                    f"learning_rate={s['learning_rate']} or set loss='mean'"
                )
            total += losses.sum()
            meter.advance(count * batch, epoch=epoch + 1, loss=total / (step + count))
        return float(total / steps)

    def _blocks(self, graph: AttributedGraph, learned: Learned) -> Iterator[np.ndarray]:
        with self._engine(learned) as engine:
            for start in range(0, len(graph), BLOCK_NODES):
                nodes = np.arange(start, min(start + BLOCK_NODES, len(graph)), dtype=np.int32)
                yield self._output(nodes, engine, learned.model)

    def _output(self, nodes: np.ndarray, engine: Engine, model: Model) -> np.ndarray:
        """Vectors (k, dim) of some nodes, in the form `output` asks for."""
        d1, pooled = self.get_params()["attribute_dim"], engine.embed(nodes)
        if self.output == "hidden":
            return engine.hide(pooled)
        if self.output == "released":
            own = model.neighbour_table[nodes, : self.dim - d1]
            return np.hstack([own, np.maximum(pooled[:, :d1], 0)])
        return pooled


def kernel_settings(s: dict[str, Any]) -> Settings:
    """The parameters in force as the kernels take them.

    The mean over a batch divides every row's gradient by the batch, though a row is touched by a few of its triplets.
    So the rows' rate grows with the batch, and they take the step that they would take at batch 100, the recipes' own;
    W and b, which every triplet touches, take one step by the mean.
    """
    batches = s["batch_size"] / STEP_BATCH if s["loss"] == "mean" else 1.0
    return Settings(
        attribute_dim=s["attribute_dim"],
        pooling=POOLING[s["pooling"]],
        zero_floor=s["zero_floor"],
        learning_rate=s["learning_rate"],
        table_rate=s["learning_rate"] * batches,
        triplet_scale=1 / s["batch_size"] if s["loss"] == "mean" else 1.0,
        hidden_l2=s["l2"] / batches if s["regularise"] == "hidden" else 0.0,
        parameter_l2=s["l2"] if s["regularise"] == "parameters" else 0.0,
        train_bias=s["bias"],
    )


def _bags(matrix: sparse.csr_array) -> Bags:
    return Bags(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False))


def _flat(history: list[float], tolerance: float) -> bool:
    """Whether the loss has stopped falling; small first weights hold it at ln 2 for a while, which does not count."""
    if len(history) <= FLAT_EPOCHS or history[-1] > 0.98 * np.log(2):
        return False
    before = history[-1 - FLAT_EPOCHS]
    return before - history[-1] < tolerance * before
