"""The memory of a training of Neural-Brane, by moments."""

from typing import Any

from neural_brane.graph.sizes import Sizes
from neural_brane.kernels.model import padded
from neural_brane.methods._memory import ALIAS, SINGLE, Moments, neighbour_bytes, spectral_moments
from neural_brane.methods.neural_brane.layer import BATCH

DRAWN = 12 * 50_000  # bytes of the triplets that are drawn at a time
BAGS = 8  # bytes a node of bags: their bounds; what they hold is the graph's own


def moments(sizes: Sizes, settings: dict[str, Any]) -> Moments:
    """Bytes by part for the parameters in force: the spectral part first, then the learned one beside its vectors."""
    n, dim, width = sizes.nodes, settings["dim"], settings["spectral_dim"]
    found: dict[str, Any] = {}
    if width:
        hops = len(settings["hop_weights"])
        found |= spectral_moments(sizes, width, hops=hops, links=settings["link_weight"] > 0)
    spectral = {"vectors": SINGLE * n * width}
    learned = dim - width
    if learned:
        tables = {"tables": _tables(sizes, settings["attribute_dim"], learned), "sampling": _sampling(sizes)}
        found["training"] = spectral | tables | {"batches": _batches(sizes, settings, learned)}
        joined = {"vectors": SINGLE * n * (width + learned + dim)}
        found["joining both parts"] = joined | {"tables": tables["tables"] + 2 * BAGS * n}
    if settings["length"] and settings["score_steps"]:
        kept = {"tables": _tables(sizes, settings["attribute_dim"], learned) + 2 * BAGS * n} if learned else {}
        table = SINGLE * n * padded(dim) + 12 * n
        vectors = {"vectors": SINGLE * n * dim}
        own = {"attribute_dim": dim, "hidden": dim, "batch_size": BATCH}
        layer = {"layer that scores pairs": table + BAGS * n + _batches(sizes, own, dim), "sampling": _sampling(sizes)}
        found["scores of pairs"] = kept | vectors | layer
    return found


def _tables(sizes: Sizes, attribute_dim: int, learned: int) -> int:
    """P, P' and W."""
    rows = sizes.attributes * padded(attribute_dim) + sizes.nodes * padded(learned - attribute_dim)
    return SINGLE * (rows + learned * learned)


def _sampling(sizes: Sizes) -> int:
    """What triplets are drawn from, while the last of it, the alias table, is made."""
    return neighbour_bytes(sizes) + (2 * BAGS + 12 + ALIAS) * sizes.nodes + DRAWN


def _batches(sizes: Sizes, settings: dict[str, Any], learned: int) -> int:
    """The scratch of a step: pooled and hidden vectors of every distinct node, and the winners."""
    own, hidden = settings["attribute_dim"], settings["hidden"]
    rows = min(sizes.nodes, 3 * settings["batch_size"])
    pooled = padded(max(padded(own), own + padded(learned - own)))
    numbers = pooled + padded(hidden) + padded(own) + padded(learned - own) + 4
    shares = 64 * hidden * (pooled + 1)
    return SINGLE * (rows * numbers + shares + sizes.nodes + 7 * settings["batch_size"])
