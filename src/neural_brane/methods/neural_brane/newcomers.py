"""Vectors for nodes that were not there when the model was trained."""

from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.graph.newcomers import Newcomers
from neural_brane.kernels.model import bags_of
from neural_brane.methods._spectral import Decomposition, place_newcomers
from neural_brane.methods.neural_brane.parts import LearnedPart, learned_vectors, set_length

if TYPE_CHECKING:
    from neural_brane.methods.neural_brane.model import Learned


def place(learned: "Learned", new: Newcomers, settings: dict[str, Any]) -> np.ndarray:
    """The vectors of new nodes: both parts as known nodes have them, from what there is of attributes and links."""
    width = settings["spectral_dim"]
    parts = []
    if width:
        spectral = learned.vectors[:, :width] * (learned.joint.lengths / settings["length"])
        parts.append(_place_spectral(Decomposition(spectral, learned.values), new, settings))
    if learned.part is not None:
        own = _pool(learned.part, new, settings) - learned.joint.centre
        if settings["centre"] and settings["output"] == "pooled":
            _forget_empty(own, learned.part.kernel_settings.attribute_dim, new)
        parts.append(own * learned.joint.scale)
    vectors = np.hstack(parts)
    set_length(vectors, settings["length"])
    return vectors


def _place_spectral(found: Decomposition, new: Newcomers, settings: dict[str, Any]) -> np.ndarray:
    return place_newcomers(
        found, new, settings["hop_weights"], link_weight=settings["link_weight"], threads=settings["threads"],
        device=settings["device"],
    )  # fmt: skip


def _pool(part: LearnedPart, new: Newcomers, settings: dict[str, Any]) -> np.ndarray:
    """What the model makes of the new nodes' attributes and known neighbours."""
    theirs = part._replace(bags=(bags_of(new.attributes), bags_of(new.links)))
    return np.vstack(list(learned_vectors(theirs, len(new), settings)))


def _forget_empty(own: np.ndarray, attribute_dim: int, new: Newcomers) -> None:
    """Put a part of a vector that nothing was pooled for in the middle, where it tells nothing."""
    own[np.diff(new.attributes.indptr) == 0, :attribute_dim] = 0
    own[np.diff(new.links.indptr) == 0, attribute_dim:] = 0
