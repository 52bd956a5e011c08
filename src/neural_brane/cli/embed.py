"""`brane embed`: from a graph to a file of vectors."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.cli import options as o
from neural_brane.cli.options import parse_settings
from neural_brane.cli.stopping import telling_what_is_kept
from neural_brane.cli.tables import Tables, read, takes_tables
from neural_brane.cli.terminal import echo
from neural_brane.errors import ParameterError
from neural_brane.methods import find_method

if TYPE_CHECKING:
    import numpy as np

    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder


@takes_tables
def embed(
    tables: Tables,
    source: o.SourceOrNone = None,
    output: o.OutputOrNone = None,
    method: o.Method = "neural-brane",
    settings: o.Settings = None,
    tuned: o.Tuned = False,
    save_model: o.SaveModel = None,
    model: o.Model = None,
    update: o.Update = False,
    attributes: o.Attributes = None,
    labels: o.Labels = None,
    learn_labels: o.LearnLabels = False,
    duplicates: o.Duplicates = "max",
    self_loops: o.SelfLoops = "keep",
    dim: o.Dim = None,
    epochs: o.Epochs = None,
    seed: o.Seed = None,
    threads: o.Threads = None,
    device: o.Device = None,
    checkpoint: o.Checkpoint = None,
    dry_run: o.DryRun = False,
    log: o.Log = None,
    cluster: o.Cluster = False,
    ranks: o.Ranks = None,
    checkpoint_every: o.CheckpointEvery = 100,
    metrics: o.Metrics = None,
    parts_format: o.PartsFormat = "npy",
    by_range: o.ByRange = False,
) -> None:
    """Learn one vector per node of SOURCE and write them to a file.

    --set name=value takes every parameter of a method; 'brane methods NAME' lists them with their defaults.

    --save-model keeps what was learned; --model embeds new nodes with it. They
    come with SOURCE, linked to known nodes, or with --nodes, a table, or both.

    Labels are for evaluation: no method sees them without --learn-labels.

    \b
    brane embed citeseer -o vectors.npz
    brane embed citeseer --method node2vec --set walk_length=40 -o vectors.npz
    brane embed graph.txt --attributes words.txt --epochs 10 -o vectors.tsv
    brane embed edges.csv --nodes people.csv --label team -o vectors.parquet
    brane embed g.txt --method lane --labels train.txt --learn-labels -o v.npz
    brane embed edges.csv --nodes people.csv --save-model m.brane
    brane embed --nodes new_people.csv --model m.brane -o new.npz
    brane embed shards --cluster --ranks 2 --checkpoint kept -o vectors.parts
    """
    from neural_brane.cli.terminal import log_to

    short = {"dim": dim, "epochs": epochs, "seed": seed, "threads": threads, "device": device, "checkpoint": checkpoint}
    typed = [f"{name}={value}" for name, value in short.items() if value is not None]
    reading = {"attributes": attributes, "labels": labels, "duplicates": duplicates, "self_loops": self_loops}
    job = Job(source, output, save_model, tables, reading, log)
    shared = Shared(ranks, checkpoint_every, metrics, parts_format, by_range)
    if cluster:
        from neural_brane.cli.embed_cluster import embed_on_cluster

        unfit = {"--model": model, "--save-model": save_model, "--tuned": tuned, "--dry-run": dry_run}
        shared.refuse({**unfit, f"--method {method}": method != "neural-brane"})
        embed_on_cluster(job, shared, [*typed, *(settings or ())])
        return
    if shared != Shared():
        raise ParameterError("--ranks, --checkpoint-every, --metrics, --parts-format and --by-range need --cluster")
    job.check_files(model)
    if model is not None:
        from neural_brane.cli.embed_new import embed_new

        flags = {
            "--tuned": tuned,
            "--dry-run": dry_run,
            "--learn-labels": learn_labels,
            f"--method {method}": method != "neural-brane",
        }
        unused = [*typed, *(settings or ()), *(name for name, given in flags.items() if given)]
        embed_new(job, model, update=update, unused=unused)
        return
    if update:
        raise ParameterError("--update goes on from a model; give one with --model")
    if source is None:
        raise ParameterError("no SOURCE; give a dataset's name or a graph file, or --model and --nodes for new nodes")
    kind = find_method(method)
    if learn_labels:
        require_labels_used(kind)
    kept = tuned_values(method, source) if tuned else {}
    fresh = kind(**kept | parse_settings(kind, [*typed, *(settings or ())]))
    job.check_checkpoint(getattr(fresh, "checkpoint", None))
    log_to(log)
    learn(job, fresh, source, dry_run=dry_run, learn_labels=learn_labels)


def require_labels_used(kind: type[Embedder]) -> None:
    """Refuse --learn-labels for a method that learns from none."""
    from neural_brane.methods import METHODS

    if not kind.uses_labels:
        able = ", ".join(name for name, one in METHODS.items() if one.uses_labels)
        raise ParameterError(f"--learn-labels: {kind.title} learns from no labels; leave it out, or choose from {able}")


@dataclass(frozen=True)
class Job:
    """What is read and what is written, as given on the command line."""

    source: str | None
    output: Path | None
    save_model: Path | None
    tables: Tables
    reading: dict[str, Any]
    log: Path | None
    start: float = field(default_factory=time.perf_counter)

    def check_files(self, model: Path | None) -> None:
        """Refuse files that cannot be written or would be overwritten, before the work."""
        from neural_brane.files.models import check_model_target

        if self.output is None and self.save_model is None:
            raise ParameterError("nothing to write; give --output FILE for the vectors, --save-model FILE, or both")
        self._check_distinct({}, {"--model": model} if self.save_model != model else {})
        if self.output is not None:
            from neural_brane.files.vectors.formats import VectorFile

            VectorFile(self.output)
        if self.save_model is not None:
            check_model_target(self.save_model)

    def check_checkpoint(self, checkpoint: str | Path | None) -> None:
        """The same for the file of a checkpoint."""
        from neural_brane.errors import CheckpointError
        from neural_brane.files.storage import check_writable

        if checkpoint is not None:
            self._check_distinct({"--checkpoint": checkpoint}, {})
            check_writable(checkpoint, CheckpointError)

    def _check_distinct(self, outputs: dict[str, Any], inputs: dict[str, Any]) -> None:
        from neural_brane.files import datasets
        from neural_brane.files.storage import check_distinct

        read = {"--attributes": self.reading["attributes"], "--labels": self.reading["labels"]}
        check_distinct(
            {"--output": self.output, "--save-model": self.save_model, "--log": self.log, **outputs},
            {
                **read,
                "--nodes": self.tables.nodes,
                **inputs,
                **({} if self.source is None else datasets.source_files(self.source)),
            },
        )

    def report(self, ids: np.ndarray, dim: int) -> None:
        """Say what was written, how long it took, and what to do with it where the format has a program of its own."""
        from neural_brane.files.vectors.formats import VectorFile

        done, usage = [], ""
        if self.output is not None:
            file = VectorFile(self.output)
            done.append(f"wrote {len(ids):,} x {dim} vectors to {self.output} ({size(*file.files)})")
            usage = file.usage(ids, dim)
        if self.save_model is not None:
            done.append(f"{'and' if done else 'wrote'} the model to {self.save_model} ({size(self.save_model)})")
        echo(f"{' '.join(done)} in {time.perf_counter() - self.start:.1f} s")
        if usage:
            echo(usage)


@dataclass(frozen=True)
class Shared:
    """How a training is shared among ranks, as given on the command line."""

    ranks: int | None = None
    checkpoint_every: int = 100
    metrics: Path | None = None
    parts_format: str = "npy"
    by_range: bool = False

    def refuse(self, options: dict[str, Any]) -> None:
        """Refuse options that a cluster does not know, of those by name that were given."""
        if given := [name for name, value in options.items() if value]:
            raise ParameterError(f"{given[0]} does not go with --cluster, which trains Neural-Brane; leave one out")


def tuned_values(method: str, source: str) -> dict[str, Any]:
    """The values that 'brane tune' found."""
    from neural_brane.experiments.tune import tuned_parameters

    return tuned_parameters(method, source)


def learn(job: Job, model: Embedder, source: str, *, dry_run: bool, learn_labels: bool = False) -> None:
    """Train a method on SOURCE, with its labels only where asked to, and write the vectors, the model, or both."""
    from neural_brane.cli.estimate import answer
    from neural_brane.experiments.estimate import look_at
    from neural_brane.files.vectors.formats import VectorFile
    from neural_brane.methods.training import check_room

    def read_source() -> AttributedGraph:
        return read(source, job.tables, **job.reading)

    found = look_at(source, read_source)
    if dry_run:
        answer(model, found)
        return
    checked = type(model)(**model.parameters_in_force())
    check_room(checked, found.sizes, beside=0 if found.graph else found.sizes.graph_bytes)
    graph = found.graph or read_source()
    known = labels_of(graph) if learn_labels else None
    file = None if job.output is None else VectorFile(job.output)
    if file is not None:
        file.check_ids(graph.ids)
        file.check_size(graph.ids, model.dim)
    with telling_what_is_kept(model):
        train(model, graph, known)
        if job.save_model is not None:
            model.save(job.save_model)
        if file is not None:
            file.write(graph.ids, model.blocks, dim=model.dim, provenance=model.provenance(), layer=model.layer_)
    job.report(graph.ids, model.dim)


def labels_of(graph: AttributedGraph) -> np.ndarray:
    """The labels to learn from; there must be some."""
    if graph.labels is None or not len(graph.classes):
        raise ParameterError(
            f"--learn-labels: graph '{graph.name}' has no labels; give a file with --labels, or a column with --label"
        )
    return graph.labels


def train(model: Embedder, graph: AttributedGraph, known: np.ndarray | None = None) -> Any:
    """Fit a method, to known labels as well where there are any, and show its progress."""
    from neural_brane.cli.terminal import reporting

    with reporting(f"{graph.name}: {len(graph):,} nodes, {graph.edges:,} edges") as report:
        return model.set_params(progress=report).fit(graph, labels=known)


def size(*paths: Path) -> str:
    """The size of files for people."""
    return spell_size(sum(path.stat().st_size for path in paths))


def spell_size(number: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
