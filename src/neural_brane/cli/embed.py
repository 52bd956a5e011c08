"""`brane embed`: from a graph to a file of vectors."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import typer

from neural_brane.cli import options as o
from neural_brane.cli.parameters import build, gather

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


def embed(
    source: o.Source,
    output: o.Output,
    method: o.Method = "neural-brane",
    settings: o.Settings = None,
    tuned: o.Tuned = False,
    attributes: o.Attributes = None,
    labels: o.Labels = None,
    duplicates: o.Duplicates = "max",
    self_loops: o.SelfLoops = "keep",
    recipe: o.Recipe = None,
    dim: o.Dim = None,
    attribute_dim: o.AttributeDim = None,
    hidden: o.Hidden = None,
    pooling: o.Pooling = None,
    vector: o.Vector = None,
    epochs: o.Epochs = None,
    tolerance: o.Tolerance = None,
    batch_size: o.BatchSize = None,
    batches_per_epoch: o.BatchesPerEpoch = None,
    learning_rate: o.LearningRate = None,
    l2: o.L2 = None,
    zero_floor: o.ZeroFloor = None,
    bias: o.Bias = None,
    regularise: o.Regularise = None,
    loss: o.Loss = None,
    negative_power: o.NegativePower = None,
    allow_self_negative: o.AllowSelfNegative = None,
    table_std: o.TableStd = None,
    weight_std: o.WeightStd = None,
    seed: o.Seed = None,
    threads: o.Threads = None,
    device: o.Device = None,
    deterministic: o.Deterministic = None,
    checkpoint: o.Checkpoint = None,
) -> None:
    """Learn one vector per node of SOURCE and write them to a file.

    \b
    brane embed citeseer -o vectors.npz
    brane embed citeseer --recipe released --seed 0 -o vectors.npz
    brane embed citeseer --method node2vec --set walk_length=40 -o vectors.npz
    brane embed graph.txt --attributes words.txt --epochs 10 -o vectors.tsv
    """
    parameters = {
        "recipe": recipe,
        "dim": dim,
        "attribute_dim": attribute_dim,
        "hidden": hidden,
        "pooling": pooling,
        "output": vector,
        "epochs": epochs,
        "tolerance": tolerance,
        "batch_size": batch_size,
        "batches_per_epoch": batches_per_epoch,
        "learning_rate": learning_rate,
        "l2": l2,
        "zero_floor": zero_floor,
        "bias": bias,
        "regularise": regularise,
        "loss": loss,
        "negative_power": negative_power,
        "allow_self_negative": allow_self_negative,
        "table_std": table_std,
        "weight_std": weight_std,
        "seed": seed,
        "threads": threads,
        "device": device,
        "deterministic": deterministic,
        "checkpoint": checkpoint,
    }
    model = build(method, gather(method, parameters, settings or (), tuned_for=source if tuned else None))
    from neural_brane import datasets
    from neural_brane.io import VectorFile

    start = time.perf_counter()
    target = VectorFile(output)
    graph = datasets.read(source, attributes=attributes, labels=labels, duplicates=duplicates, self_loops=self_loops)
    target.check_ids(graph.ids)
    train(model, graph)
    target.write(graph.ids, model.blocks(), dim=model.dim, provenance=model.provenance())
    seconds = time.perf_counter() - start
    typer.echo(f"wrote {len(graph):,} x {model.dim} vectors to {output} ({size(output)}) in {seconds:.1f} s")


def train(model: Embedder, graph: Any) -> None:
    """Fit, showing progress where the method reports it."""
    if "progress" not in model.get_params():
        model.fit(graph)
        return
    from neural_brane.cli.progress import reporting

    with reporting(f"{graph.name}: {len(graph):,} nodes, {graph.edges:,} edges") as report:
        model.set_params(progress=report).fit(graph)


def size(path: Any) -> str:
    """A file's size for people."""
    number = float(path.stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
