"""Embed nodes that Neural-Brane never saw, and continue a model on a changed graph."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from neural_brane.files.checkpoints import Stages
from neural_brane.graph.changes import Changes, Newcomers, carry
from neural_brane.kernels.model import Model, bags_of, zeros
from neural_brane.methods.neural_brane.layer import make_layer
from neural_brane.methods.neural_brane.parts import (
    LearnedPart,
    hops_in,
    join,
    kernel_settings,
    learned_vectors,
    set_length,
)
from neural_brane.methods.neural_brane.recipes import schedule
from neural_brane.methods.neural_brane.training import Training, random_table, require_room, start_numbers
from neural_brane.methods.spectral import Decomposition, follow, place_newcomers
from neural_brane.methods.updates import Start
from neural_brane.sampling.tables import can_rank

if TYPE_CHECKING:
    from neural_brane.methods.neural_brane.model import Learned


# Vectors for nodes that were not there when the model was trained.


def place(learned: "Learned", new: Newcomers, settings: dict[str, Any]) -> np.ndarray:
    """The vectors of new nodes: both parts as known nodes have them, from what there is of attributes and links."""
    parts = []
    if settings["spectral_dim"]:
        parts.append(
            place_newcomers(
                learned.spectral(settings), new, settings["hop_weights"], link_weight=settings["link_weight"],
                threads=settings["threads"], device=settings["device"],
            )
        )  # fmt: skip
    if (part := learned.part) is not None:
        theirs = part._replace(bags=(bags_of(new.attributes), bags_of(new.links)))
        own = np.vstack(list(learned_vectors(theirs, len(new), settings))) - learned.joint.centre
        if settings["centre"] and settings["output"] == "pooled":  # columns that nothing was pooled for become the mean
            own[np.diff(new.attributes.indptr) == 0, : part.kernel_settings.attribute_dim] = 0
            own[np.diff(new.links.indptr) == 0, part.kernel_settings.attribute_dim :] = 0
        parts.append(own * learned.joint.scale)
    vectors = np.hstack(parts)
    set_length(vectors, settings["length"])
    return vectors


# Updates: both parts continue from what was learned before.

TRIPLETS_PER_NEW, TRIPLETS_PER_CHANGED = 100, 5  # for each new node, and for each that is new or has changed
ROWS = 2  # the seed of new rows, beside that of the update


def update(start: Start, settings: dict[str, Any], seed: int) -> "Learned":
    """All that was learned, brought up to what the graph has become."""
    before, changes, graph = start.learned, start.changes, start.changes.after
    spectral = Decomposition.empty(len(graph))
    if settings["spectral_dim"]:
        spectral = follow(
            before.spectral(settings), hops_in(graph, settings), changes.nodes,
            threads=settings["threads"], device=settings["device"],
        )  # fmt: skip
    part = learn_on(before.part, changes, settings, seed) if before.part else None
    joint = join(spectral.vectors, learned_vectors(part, len(graph), settings) if part else iter(()), settings)
    found: Learned = before._replace(vectors=joint.vectors, part=part, joint=joint, values=spectral.values)
    return found._replace(layer=make_layer(found, graph, settings, seed, Stages().stage("layer")))


def learn_on(part: LearnedPart, changes: Changes, settings: dict[str, Any], seed: int) -> LearnedPart:
    """Train a model on, by triplets of nodes that are new or have changed; other nodes are what these are ranked by."""
    graph = changes.after
    own = settings | {"dim": settings["dim"] - settings["spectral_dim"]}
    require_room(own, graph)
    model = carry_model(part.model, changes, own, seed)
    carried = part._replace(model=model, bags=(bags_of(graph.attributes), bags_of(graph.adjacency)))
    anchors = changes.touched & (np.diff(graph.adjacency.indptr) > 0)
    if not anchors.any() or not can_rank(graph.adjacency):
        return carried
    own |= _schedule(changes, int(np.count_nonzero(anchors)), own)
    with carried._replace(kernel_settings=kernel_settings(own)).engine(own) as engine:
        training = Training(own, engine, start_numbers())
        training.run(graph, seed, Stages().stage("learned part"), among=anchors)
        return carried._replace(model=engine.model())


def _schedule(changes: Changes, anchors: int, settings: dict[str, Any]) -> dict[str, Any]:
    """One epoch of some triplets for each node that is new or has changed, in batches that suit their number."""
    batch = min(settings["batch_size"], schedule(anchors, {"pooling": settings["pooling"]})["batch_size"])
    triplets = TRIPLETS_PER_NEW * int(np.count_nonzero(changes.new)) + TRIPLETS_PER_CHANGED * anchors
    return {"batch_size": batch, "epochs": 1, "batches_per_epoch": max(triplets // batch, 1), "tolerance": None}


def carry_model(model: Model, changes: Changes, settings: dict[str, Any], seed: int) -> Model:
    """The model with a row for everything there is now.

    A new attribute begins as the mean of those that its nodes have beside it, a new node as the mean of its
    neighbours: rows of the tables are much alike where nodes are near. Those that are alone begin at random.
    """
    attributes, neighbours = np.random.SeedSequence((seed, ROWS)).spawn(2)
    after, std = changes.after, settings["table_std"]
    shared = after.attributes.T.tocsr()[changes.attributes < 0]
    return Model(
        _carry_table(model.attribute_table, changes.attributes, (shared, after.attributes), attributes, std),
        _carry_table(model.neighbour_table, changes.nodes, (after.adjacency[changes.new],), neighbours, std),
        model.weight.copy(),
        model.bias.copy(),
    )


def _carry_table(
    table: np.ndarray,
    places: np.ndarray,
    towards: tuple[sparse.csr_array, ...],
    seed: np.random.SeedSequence,
    std: float,
) -> np.ndarray:
    """A table's rows where there were some, the mean of known rows for others, which products of `towards` lead to."""
    rows = zeros(len(places), table.shape[1])
    rows[:] = carry(table, places)
    new = np.flatnonzero(places < 0)
    if len(new) == 0 or table.shape[1] == 0:
        return rows
    known = np.hstack([rows, (places >= 0).astype(np.float32)[:, None]])  # the last column counts
    for matrix in reversed(towards):
        ones = np.ones(matrix.nnz, np.float32)
        known = sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape) @ known
    counts = known[:, -1:]
    means = np.divide(known[:, :-1], counts, out=random_table(seed, len(new), table.shape[1], std), where=counts > 0)
    rows[new] = means
    return rows
