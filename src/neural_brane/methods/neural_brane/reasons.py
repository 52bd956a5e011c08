"""What the two parts of a vector are made of."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.methods._spectral import Decomposition, hops_of, spectral_reasons
from neural_brane.reasons import Contributions
from neural_brane.reasons.pooled import PooledReasons
from neural_brane.reasons.spectral import SpectralReasons

if TYPE_CHECKING:
    from neural_brane.methods.neural_brane.model import Learned


class JointReasons(NamedTuple):
    """Both parts, each with its columns of the vector."""

    spectral: SpectralReasons | None
    learned: PooledReasons | None
    width: int  # of the spectral part
    lengths: np.ndarray  # (nodes, 1) what every vector was divided by

    def of(self, row: int, targets: np.ndarray) -> Contributions:
        """What adds up to the inner products of a node's vector with targets (t, dim)."""
        scaled = targets / float(self.lengths[row, 0])
        parts = []
        if self.spectral is not None:
            parts.append(self.spectral.of(row, scaled[:, : self.width]))
        if self.learned is not None:
            parts.append(self.learned.of(row, scaled[:, self.width :]))
        return Contributions.sum(parts, len(targets))


def joint_reasons(learned: "Learned", graph: AttributedGraph, settings: dict[str, Any]) -> JointReasons:
    """What it takes to explain a model's vectors."""
    width, length, joint = settings["spectral_dim"], settings["length"], learned.joint
    lengths = joint.lengths / length if length else np.ones_like(joint.lengths)
    spectral, pooled = None, None
    if width:
        found = Decomposition(learned.vectors[:, :width] * lengths, learned.values)
        hops = hops_of(graph, settings["hop_weights"], link_weight=settings["link_weight"])
        spectral = spectral_reasons(found, hops, threads=settings["threads"])
    if (part := learned.part) is not None:
        pooled = PooledReasons(
            part.model, part.bags, part.kernel_settings, settings["output"], joint.centre, float(joint.scale)
        )
    return JointReasons(spectral, pooled, width, lengths)
