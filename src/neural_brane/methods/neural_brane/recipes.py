"""Named settings of Neural-Brane, and the values that follow from a graph where a setting is left open."""

from functools import cached_property
from typing import Any

from neural_brane.graph import AttributedGraph
from neural_brane.linalg.weights import tell_apart
from neural_brane.methods.base import require
from neural_brane.methods.neural_brane.parts import kernel_settings
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
BATCH = (4_000, 65_536)  # the smallest and the largest, but for tiny graphs
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
    fit = min(max(nodes // NODES_PER_TRIPLET, BATCH[0]), BATCH[1])
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


def check_parameters(values: dict[str, Any], learned: int) -> None:
    """Refuse parameters in force that do not go together; `learned` is the width of the learned part."""
    hidden, attribute_dim = values["hidden"], values["attribute_dim"]
    kept = "none with device='distributed': ranks keep a folder of checkpoints in 'brane distributed embed'"
    require(values["device"] != "distributed" or values["checkpoint"] is None, "checkpoint", values["checkpoint"], kept)
    if learned:
        require(attribute_dim <= learned, "attribute_dim", attribute_dim, f"0 to {learned}, the learned part of dim")
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
