"""`brane embed`, `transform`, `update` and `estimate`: learn vectors, embed new nodes, estimate a training."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Exit

from neural_brane.cli import options as o
from neural_brane.cli.options import EdgeOptions, Reading, TrainingOptions, bundled
from neural_brane.cli.terminal import echo, explaining_stop, file_size, log_to, reporting, show_table
from neural_brane.errors import CheckpointError, ParameterError
from neural_brane.methods import METHODS, find_method

if TYPE_CHECKING:
    import numpy as np

    from neural_brane.embedding import Embedding
    from neural_brane.experiments.estimate import Estimate, RankDetails
    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder


@bundled
def embed(
    source: o.Source,
    reading: Reading,
    training: TrainingOptions,
    output: o.OutputOrNone = None,
    save_model: o.SaveModel = None,
    method: o.Method = "neural-brane",
    tuned: Annotated[bool, o.flag("--tuned", "Start from the values of 'brane tune'.")] = False,
    learn_labels: Annotated[bool, o.flag("--learn-labels", "Learn from the labels too (methods with †).")] = False,
    log: o.Log = None,
) -> None:
    r"""Learn one vector per node of a graph.

    Give -o to write the vectors, --save-model to write the trained model, or
    both. Labels are ignored without --learn-labels.

    \b
    brane embed stdlib -o vectors.npz
    brane embed stdlib --method node2vec --set walk_length=40 -o vectors.npz
    brane embed edges.csv --nodes people.csv --save-model m.brane
    """
    from neural_brane.experiments.estimate import find_sizes
    from neural_brane.files.storage import check_writable
    from neural_brane.methods.training import check_room

    kind = find_method(method)
    if learn_labels and not kind.uses_labels:
        able = ", ".join(name for name, one in METHODS.items() if one.uses_labels)
        raise ParameterError(
            f"--learn-labels: {kind.title} cannot learn from labels; leave it out, or give --method with one of {able}"
        )
    tuned_values: dict[str, Any] = {}
    if tuned:
        from neural_brane.experiments.tune import tuned_parameters

        tuned_values = tuned_parameters(method, source)
    model = kind(**tuned_values | training.parameters(kind))
    checkpoint = getattr(model, "checkpoint", None)
    results = Results(output, save_model)
    results.check(reading.files(source), {"--log": log, "--checkpoint": checkpoint})
    if checkpoint is not None:
        check_writable(checkpoint, CheckpointError)
    log_to(log)
    look = find_sizes(source, lambda: reading.read(source))
    checked = type(model)(**model.parameters_in_force())
    check_room(checked, look.sizes, beside=0 if look.graph else look.sizes.graph_bytes)  # before reading if possible
    graph = look.graph or reading.read(source)
    if learn_labels and (graph.labels is None or not len(graph.classes)):
        raise ParameterError(
            f"--learn-labels: graph '{graph.name}' has no labels; give --labels FILE, or --label COLUMN of --nodes"
        )
    learn(model, graph, results, graph.labels if learn_labels else None)


@bundled
def transform(
    model: o.ModelFile,
    reading: EdgeOptions,
    output: o.Output,
    source: o.SourceOrNone = None,
    log: o.Log = None,
) -> None:
    r"""Compute vectors of new nodes with a saved model.

    Give the edges of the new nodes as SOURCE, their table as --nodes, or both.
    The columns of the table become attributes by the rules of the training.

    \b
    brane transform m.brane --nodes new_people.csv -o new.npz
    brane transform m.brane new_edges.csv -o new.npz
    brane transform m.brane new_edges.csv --nodes new_people.csv -o new.npz
    """
    from neural_brane.files.models import load_model

    results = Results(output, None)
    results.check({**reading.files(source), "MODEL": model}, {"--log": log})
    if source is None and reading.nodes is None:
        raise ParameterError("no new nodes; give SOURCE, a graph file, or --nodes, a table of nodes, or both")
    log_to(log)
    fitted: Any = load_model(model)
    if not fitted.inductive:
        raise ParameterError(
            f"{model}: method '{fitted.title}' cannot compute vectors of new nodes; run 'brane embed' on the whole "
            "graph, or train a method that 'brane methods' calls inductive"
        )
    made: Embedding = fitted.transform(read_alike(source, reading, fitted))
    made.save(output)
    if made.made_from is not None:
        counts = Counter(made.made_from.tolist())
        echo("made from: " + ", ".join(f"{origin} {count:,}" for origin, count in counts.most_common()))
    results.report(made.ids, made.dim)


@bundled
def update(
    model: o.ModelFile,
    source: o.Source,
    reading: EdgeOptions,
    output: o.OutputOrNone = None,
    save_model: o.SaveModel = None,
    log: o.Log = None,
) -> None:
    r"""Continue training a saved model on a changed graph.

    SOURCE is the whole graph as it is now. The columns of --nodes become
    attributes by the rules of the training.

    \b
    brane update m.brane changed.csv --nodes people.csv -o vectors.npz
    brane update m.brane changed.csv --nodes people.csv --save-model m.brane
    """
    from neural_brane.files.models import load_model

    results = Results(output, save_model)
    results.check(reading.files(source) | ({"MODEL": model} if save_model != model else {}), {"--log": log})
    log_to(log)
    fitted: Any = load_model(model)
    graph = read_alike(source, reading, fitted)
    with reporting(title_of(graph)) as report:
        made: Embedding = fitted.set_params(progress=report).update(graph).embedding_
    if save_model is not None:
        fitted.save(save_model)
    if output is not None:
        made.save(output)
    results.report(made.ids, made.dim)


@dataclass(frozen=True)
class Results:
    """The files that a command writes: checked before the work, reported after it."""

    output: Path | None
    save_model: Path | None
    start: float = field(default_factory=time.perf_counter)

    def check(self, inputs: dict[str, Any], others: dict[str, Any]) -> None:
        """Refuse files that cannot be written or would overwrite another; `others` are written too."""
        from neural_brane.files.models import check_model_target
        from neural_brane.files.storage import check_distinct
        from neural_brane.files.vectors.formats import VectorFile

        if self.output is None and self.save_model is None:
            raise ParameterError("no output; give --output FILE for the vectors, --save-model FILE, or both")
        check_distinct({"--output": self.output, "--save-model": self.save_model, **others}, inputs)
        if self.output is not None:
            VectorFile(self.output)
        if self.save_model is not None:
            check_model_target(self.save_model)

    def report(self, ids: np.ndarray, dim: int) -> None:
        """Print what was written, how long it took, and for some formats how another program reads the file."""
        from neural_brane.files.vectors.formats import VectorFile

        done, usage = [], ""
        if self.output is not None:
            file = VectorFile(self.output)
            done.append(f"wrote {len(ids):,} x {dim} vectors to {self.output} ({file_size(*file.files)})")
            usage = file.usage(ids, dim)
        if self.save_model is not None:
            done.append(f"{'and' if done else 'wrote'} the model to {self.save_model} ({file_size(self.save_model)})")
        echo(f"{' '.join(done)} in {time.perf_counter() - self.start:.1f} s")
        if usage:
            echo(usage)


def read_alike(source: str | None, reading: EdgeOptions, model: Embedder) -> AttributedGraph:
    """Read a graph; its table of nodes is encoded by the rules of the model's training."""
    from neural_brane.files.nodes import read_node_frame
    from neural_brane.graph.convert import join_new_nodes

    if reading.nodes is None:
        return reading.read(str(source))
    links = None if source is None else replace(reading, nodes=None, id_column=None).read(source)
    frame, place = read_node_frame(reading.nodes)
    return join_new_nodes(links, frame, model.graph_, place=place, id=reading.id_column)


def learn(model: Embedder, graph: AttributedGraph, results: Results, labels: np.ndarray | None) -> None:
    """Train a method, and write the vectors, the model, or both."""
    from neural_brane.files.vectors.formats import VectorFile

    file = None if results.output is None else VectorFile(results.output)
    if file is not None:
        file.check_ids(graph.ids)
        file.check_size(graph.ids, model.dim)
    with explaining_stop(model):
        train(model, graph, labels)
        if results.save_model is not None:
            model.save(results.save_model)
        if file is not None:
            file.write(graph.ids, model.blocks, dim=model.dim, provenance=model.provenance())
    results.report(graph.ids, model.dim)


def train(model: Embedder, graph: AttributedGraph, labels: np.ndarray | None = None) -> Any:
    """Fit a method to a graph, show progress and return the method."""
    with reporting(title_of(graph)) as report:
        return model.set_params(progress=report).fit(graph, labels=labels)


def title_of(graph: AttributedGraph) -> str:
    """Return the line that is printed above progress."""
    return f"{graph.name}: {len(graph):,} nodes, {graph.edges:,} edges"


@bundled
def estimate(
    source: o.Source,
    reading: Reading,
    training: TrainingOptions,
    method: o.Method = "neural-brane",
    ranks: Annotated[int | None, o.option("whole", "Estimate one of N ranks.", min=1)] = None,
    no_time: Annotated[bool, o.flag("--no-time", "Skip the time, which needs a trial run.")] = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Estimate the memory and time of a training.

    Exit code 1 means that the training would not fit into memory. An .npz file
    or a folder of 'brane shard' is not loaded; other graphs are. With --ranks,
    prints the bytes sent per step in place of the time.

    \b
    brane estimate stdlib
    brane estimate synthetic:1000000 --dim 64
    brane estimate edges.csv --nodes people.csv --method deepwalk --json
    brane estimate synthetic:1000000000 --ranks 64
    """
    from neural_brane.experiments.estimate import estimate as estimate_training
    from neural_brane.experiments.estimate import find_sizes

    kind = find_method(method)
    model = kind(**training.parameters(kind))
    look = find_sizes(source, lambda: reading.read(source))
    estimated = estimate_training(
        look.graph or look.sizes,
        model,
        time=not no_time,
        reading_bytes=look.reading_bytes,
        reading_seconds=look.reading_seconds,
        ranks=ranks,
    )
    if as_json:
        echo(json.dumps(estimated.as_dict(), indent=2))
    else:
        show_estimate(estimated)
    if not estimated.fits:
        raise Exit(1)


def show_estimate(estimated: Estimate) -> None:
    """Print memory and time by part, and whether the training fits."""
    from neural_brane.graph.memory import show_size

    sizes = estimated.sizes
    title = f"{estimated.method}, dim {estimated.parameters['dim']}: {sizes.nodes:,} nodes, {sizes.edges:,} edges"
    if estimated.several is not None:
        title += f"; one of {estimated.several.ranks:,} ranks"
    rows = [(part, show_size(count)) for part, count in estimated.memory.items()]
    rows.append((f"at most, in '{estimated.moment}'", show_size(estimated.peak)))
    rows.append(("file of vectors, about", show_size(estimated.output_bytes)))
    show_table(("memory", "bytes"), rows, title=title, right=("bytes",))
    if estimated.seconds is not None:
        times = [*estimated.seconds.items(), ("at most", estimated.total_seconds or 0.0)]
        show_table(("time", "here"), [(part, show_time(count)) for part, count in times], right=("here",))
    if estimated.triplets_per_node is not None:
        echo(f"triplets: at most {estimated.triplets_per_node:,.0f} per node; fewer if the loss stops falling earlier")
    if estimated.several is not None:
        show_several(estimated.several)
    echo(estimated.verdict)


def show_several(several: RankDetails) -> None:
    """Print the memory that the ranks of a host share and the bytes that a rank sends per step."""
    from neural_brane.graph.memory import show_size

    moments = [
        (moment, part, show_size(count)) for moment, parts in several.moments.items() for part, count in parts.items()
    ]
    show_table(("moment", "memory of a rank", "bytes"), moments, right=("bytes",))
    shared = [(part, show_size(count)) for part, count in several.host.items()]
    show_table(("memory shared by the ranks of a host", "bytes"), shared, right=("bytes",))
    names = {
        "ids": "numbers of the rows that it needs",
        "lengths": "lengths of bags, to all ranks",
        "rows": "rows that other ranks need",
        "gradients": "gradients of rows",
        "layer": "gradients of the ReLU layer",
        "graph": "bags (only with --by-range)",
    }
    sent = [(name, show_size(several.traffic[part])) for part, name in names.items()]
    show_table(("sent by a rank per step", "bytes"), sent, right=("bytes",))
    batch = several.batch
    how = "counted on a batch" if several.counted else "if all nodes have equally many neighbours; hubs need more"
    echo(
        f"a rank's share of a batch: {batch['triplets']:,} triplets, {batch['attribute_rows']:,.0f} rows of attributes "
        f"and {batch['neighbour_rows']:,.0f} rows of neighbours, {how}"
    )
    echo(f"time: not estimated for several ranks; at most {several.steps:,} steps")


def show_time(seconds: float) -> str:
    """Return a time as text, in the units that people use.

    >>> show_time(0.4), show_time(75), show_time(9000)
    ('0.4 s', '1 min 15 s', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
