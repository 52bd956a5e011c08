"""`brane embed --model`: vectors of new nodes by a model that was saved, or the model brought up to date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.cli.tables import read
from neural_brane.cli.terminal import echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.cli.embed import Job
    from neural_brane.embedding import Embedding
    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder


def embed_new(job: Job, path: Path, *, update: bool, unused: Sequence[str]) -> None:
    """Embed the nodes of a graph, of a table, or of both, with the model in a file; `unused` were given for a training.

    With `update` the model goes on learning from the graph first.
    """
    from neural_brane.cli.terminal import log_to
    from neural_brane.files.models import load_model

    _check(job, update, unused)
    log_to(job.log)
    model: Any = load_model(path)
    if not update and not model.inductive:
        raise ParameterError(
            f"{path}: method '{model.title}' makes no vectors for nodes it never saw; embed the whole graph again, or "
            "choose a method that 'brane methods' calls inductive"
        )
    graph = read_alike(job, model)
    made = _update(model, graph) if update else model.transform(graph)
    if job.save_model is not None:
        model.save(job.save_model)
    if job.output is not None:
        made.save(job.output)
    if made.made_from is not None:
        counts = Counter(made.made_from.tolist())
        echo("made from: " + ", ".join(f"{what} {count:,}" for what, count in counts.most_common()))
    job.report(made.ids, made.dim)


def _check(job: Job, update: bool, unused: Sequence[str]) -> None:
    """Refuse what goes with a training, and has no effect on a model that has learned."""
    if unused:
        raise ParameterError(
            f"'{unused[0]}' says how to learn, and the model of --model has learned already; leave out one of the two"
        )
    if job.save_model is not None and not update:
        raise ParameterError("--save-model would write the model of --model as it is; add --update, or leave it out")
    if job.source is None and job.tables.nodes is None:
        raise ParameterError("no new nodes; give SOURCE, a graph file, or --nodes, a table of nodes, or both")
    fixed = {"--column": job.tables.column, "--ignore": job.tables.ignore, "--label": job.tables.label_column}
    given = [name for name, value in fixed.items() if value]
    if given:
        raise ParameterError(f"{given[0]} says how a table is read, and the model has fixed that; leave it out")


def read_alike(job: Job, model: Embedder) -> AttributedGraph:
    """The graph of SOURCE; a table of nodes is encoded as the one that the model learned from."""
    from dataclasses import replace

    from neural_brane.files.nodes import read_node_frame
    from neural_brane.graph.convert import join_alike

    links = None
    if job.source is not None:
        links = read(job.source, replace(job.tables, nodes=None, id_column=None), **job.reading)
    if links is not None and job.tables.nodes is None:
        return links
    frame, place = read_node_frame(job.tables.nodes)  # type: ignore[arg-type]  # `_check` has seen one of the two
    return join_alike(links, frame, model.graph_, place=place, id=job.tables.id_column)


def _update(model: Any, graph: AttributedGraph) -> Embedding:
    """Go on learning from a changed graph, with progress."""
    from neural_brane.cli.terminal import reporting

    with reporting(f"{graph.name}: {len(graph):,} nodes, {graph.edges:,} edges") as report:
        embedding: Embedding = model.set_params(progress=report).update(graph).embedding_
    return embedding
