"""Define the graphs and models of the plan: shapes, sizes and settings."""

from functools import cache
from typing import Any

from plan_rows import ATTRIBUTES_PER_NODE, DEGREE, NODES_PER_ATTRIBUTE, Shape, even, power_law

from neural_brane import NeuralBrane, load
from neural_brane.graph.memory import Sizes

PLANNED = (100_000_000, 1_000_000_000)
SHARE = 65_536  # triplets of a rank in a step
RANKS = (8, 16, 32, 64, 128, 256)
ALONE = "default, all of it learned"
MODELS: dict[str, dict[str, Any]] = {
    "default": {},  # three quarters of the vector are spectral
    ALONE: {"spectral_dim": 0, "centre": False, "length": 0.0},
    "released": {"recipe": "released"},
}


@cache
def debian_shape() -> Shape:
    """Return the shape of debian-packages, a real graph with hubs."""
    return Shape.of(load("debian-packages"))


@cache
def shapes(nodes: int) -> dict[str, Shape]:
    """Return the shapes of the plan: equal degrees, a power law, and many copies of debian-packages."""
    debian = debian_shape()
    known = debian.nodes.sum()
    scale = (mean * known / (own * debian.nodes).sum()
             for mean, own in ((DEGREE, debian.degrees), (ATTRIBUTES_PER_NODE, debian.bags)))  # fmt: skip
    copies = debian.times(nodes / known, *scale)
    return {"even": even(nodes), "debian's degrees": copies, "power law": power_law(nodes)}


def sizes_of(nodes: int) -> Sizes:
    """Return the sizes of a graph with 10 edges and 20 attributes per node, and one attribute per 10 nodes."""
    return Sizes(nodes=nodes, edges=nodes * DEGREE // 2, attributes=nodes // NODES_PER_ATTRIBUTE,
                 attribute_entries=nodes * ATTRIBUTES_PER_NODE)  # fmt: skip


def settings_of(model: str, nodes: int, ranks: int) -> dict[str, Any]:
    """Return the parameters of a model, with SHARE triplets per rank and step."""
    method = NeuralBrane(**MODELS[model], batch_size=SHARE * ranks)
    return method._settings_for(sizes_of(nodes))
