"""`brane embed`: from a graph to a file of vectors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.cli import options as o
from neural_brane.cli.console import echo
from neural_brane.cli.parameters import parse_settings
from neural_brane.cli.stopping import telling_what_is_kept
from neural_brane.cli.tables import Tables, read, takes_tables
from neural_brane.methods import find_method

if TYPE_CHECKING:
    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder


@takes_tables
def embed(
    source: o.Source,
    output: o.Output,
    tables: Tables,
    method: o.Method = "neural-brane",
    settings: o.Settings = None,
    tuned: o.Tuned = False,
    attributes: o.Attributes = None,
    labels: o.Labels = None,
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
) -> None:
    """Learn one vector per node of SOURCE and write them to a file.

    --set name=value takes every parameter of a method; 'brane methods NAME' lists them with their defaults.

    \b
    brane embed citeseer -o vectors.npz
    brane embed citeseer --set recipe=released --seed 0 -o vectors.npz
    brane embed citeseer --method node2vec --set walk_length=40 -o vectors.npz
    brane embed graph.txt --attributes words.txt --epochs 10 -o vectors.tsv
    brane embed edges.csv --nodes people.csv --label team -o vectors.parquet
    """
    from neural_brane import datasets
    from neural_brane.cli.estimate import answer
    from neural_brane.cli.log import log_to
    from neural_brane.errors import CheckpointError
    from neural_brane.estimation import look_at
    from neural_brane.io import VectorFile
    from neural_brane.io.atomic import check_distinct, check_writable
    from neural_brane.methods._memory import check_room
    from neural_brane.tune.tuned import tuned_parameters

    short = {"dim": dim, "epochs": epochs, "seed": seed, "threads": threads, "device": device, "checkpoint": checkpoint}
    typed = [f"{name}={value}" for name, value in short.items() if value is not None]
    kind = find_method(method)
    kept = tuned_parameters(method, source) if tuned else {}
    model = kind(**kept | parse_settings(kind, [*typed, *(settings or ())]))
    start = time.perf_counter()
    check_distinct(
        {"--output": output, "--checkpoint": getattr(model, "checkpoint", None), "--log": log},
        {"--attributes": attributes, "--labels": labels, "--nodes": tables.nodes, **datasets.source_files(source)},
    )
    file = VectorFile(output)
    if (target := getattr(model, "checkpoint", None)) is not None:
        check_writable(target, CheckpointError)
    log_to(log)
    rules = {"duplicates": duplicates, "self_loops": self_loops}

    def read_source() -> AttributedGraph:
        return read(source, tables, attributes=attributes, labels=labels, **rules)

    found = look_at(source, read_source)
    if dry_run:
        answer(model, found)
        return
    checked = kind(**model.parameters_in_force())
    check_room(checked, found.sizes, beside=0 if found.graph else found.sizes.graph_bytes)
    graph = found.graph or read_source()
    file.check_ids(graph.ids)
    file.check_size(graph.ids, model.dim)
    with telling_what_is_kept(model):
        train(model, graph)
        file.write(graph.ids, model.blocks, dim=model.dim, provenance=model.provenance(), layer=model.layer_)
    seconds = time.perf_counter() - start
    echo(f"wrote {len(graph):,} x {model.dim} vectors to {output} ({size(*file.files)}) in {seconds:.1f} s")
    if usage := file.usage(graph.ids, model.dim):
        echo(usage)


def train(model: Embedder, graph: AttributedGraph) -> Any:
    """Fit a method and show its progress."""
    from neural_brane.cli.progress import reporting

    with reporting(f"{graph.name}: {len(graph):,} nodes, {graph.edges:,} edges") as report:
        return model.set_params(progress=report).fit(graph)


def size(*paths: Path) -> str:
    """The size of files for people."""
    number = float(sum(path.stat().st_size for path in paths))
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
