"""`brane distributed embed`: a training that several processes or machines share."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer
from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, Training, bundled
from neural_brane.cli.terminal import LOG, Stopped, counting, echo, echo_and_log, log_to, reporting
from neural_brane.errors import BraneError, EmbeddingError, ParameterError, printable

if TYPE_CHECKING:
    from neural_brane.distributed.launch import Job as Place

PARTS = 16  # not the number of ranks: a job may resume on another number, and the parts belong to its identity
LONG = timedelta(days=30)  # how long ranks of a host wait for the one that writes the parts


class Work(NamedTuple):
    """A training by ranks: its graph, its output, its parameters, and how the ranks share the work."""

    source: str
    reading: Reading
    output: Path
    parameters: dict[str, Any]
    sharing: dict[str, Any]


@bundled
def embed(
    source: Annotated[str, Argument(metavar="SHARDS", help="Folder of 'brane shard', or any graph.")],
    reading: Reading,
    training: Training,
    output: Annotated[Path, Option("--output", "-o", metavar="<path>", help="Folder or file of vectors.")],
    ranks: Annotated[int | None, Option("--ranks", metavar="<whole>", help="Processes to start here.")] = None,
    checkpoint_every: Annotated[int, Option("--checkpoint-every", metavar="<whole>", help="Save every N steps.")] = 100,
    metrics: Annotated[Path | None, Option("--metrics", metavar="<path>", help="A .jsonl file or a folder.")] = None,
    parts_format: Annotated[
        Literal["npy", "parquet"], Option("--parts-format", metavar="<name>", help="npy or parquet.")
    ] = "npy",
    by_range: Annotated[bool, Option("--by-range", help="Ranks read their own nodes only.")] = False,
    log: o.Log = None,
) -> None:
    """Train Neural-Brane in many processes or on many machines.

    --ranks starts the processes on this machine. On several machines, torchrun
    starts them; --checkpoint is then a folder that all machines see. With
    --by-range, the graph may be larger than a machine's memory.

    \b
    brane distributed embed shards --ranks 2 --checkpoint kept -o parts
    torchrun --nproc-per-node 8 -m neural_brane distributed embed shards -o parts
    """
    from neural_brane.distributed.launch import AGENT, is_launched, require_packages
    from neural_brane.files.storage import check_writable
    from neural_brane.files.vectors.formats import VectorFile
    from neural_brane.files.vectors.parts import check_replaceable
    from neural_brane.methods.neural_brane import NeuralBrane

    start = time.perf_counter()
    if output.suffix:
        VectorFile(output)
    else:
        check_writable(output / "manifest.json", EmbeddingError)
        check_replaceable(output)
    parameters = training.parameters(NeuralBrane)
    NeuralBrane(**parameters).parameters_in_force()
    require_packages()
    if not is_launched():
        start_ranks(ranks, parameters.get("checkpoint"))
        return
    if ranks is not None and AGENT not in os.environ:
        raise ParameterError(f"--ranks {ranks}: torchrun has started the ranks of this job; leave it out")
    sharing = {
        "checkpoint": parameters.pop("checkpoint", None),
        "checkpoint_every": checkpoint_every,
        "metrics": metrics,
        "parts_format": parts_format,
        "by_range": by_range,
    }
    train_as_rank(Work(source, reading, output, parameters, sharing), log, start)


def start_ranks(ranks: int | None, checkpoint: str | None) -> None:
    """Start ranks on this machine with the words of this command, and end with their exit code."""
    from neural_brane.distributed.launch import start

    if ranks is None:
        raise ParameterError(
            "no ranks; give --ranks N to start N processes on this machine, or start them by "
            "'torchrun --nproc-per-node N -m neural_brane distributed embed …'"
        )
    try:
        code = start(ranks, sys.argv[1:])
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    if code > 128 and checkpoint:
        raise Stopped(code - 128, f"stopped; the same command resumes from {checkpoint}:", ())
    if code > 128:
        raise Stopped(code - 128, "stopped; nothing was kept")
    if code:
        raise typer.Exit(code)


def train_as_rank(work: Work, log: Path | None, start: float) -> None:
    """Train as a rank of the job that started this process."""
    from neural_brane.distributed.embedding import embed_shards
    from neural_brane.distributed.launch import advice, count, join
    from neural_brane.files.graphs.parts import open_shards
    from neural_brane.files.vectors.formats import merge_parts
    from neural_brane.methods.training import resolve

    output = work.output
    parts = output.with_name(f".{output.name}.parts") if output.suffix else output
    with (
        join(resolve(work.parameters.pop("device", "cpu"))) as place,
        ending_together(place),
        in_parts(work, place) as folder,
    ):
        first = place.rank == 0
        if first:
            log_to(log)
            if warning := advice():
                echo_and_log(f"note: {warning}")
        graph = open_shards(folder).manifest
        title = f"{graph.name}: {graph.nodes:,} nodes, {graph.edges:,} edges, on {count(place.ranks)}"
        with reporting(title) if first else nullcontext(None) as report:
            embed_shards(
                folder, parts, job=place, progress=report, tell=echo_and_log, **work.sharing, **work.parameters
            )
        if first:
            if parts != output:
                merge_parts(parts, output)
                shutil.rmtree(parts, ignore_errors=True)
            echo(f"wrote the vectors to {output} in {time.perf_counter() - start:.1f} s")


# A source that is not a folder of parts is split into parts beside the output, once per host, for this job.


@contextmanager
def in_parts(work: Work, place: Place) -> Iterator[Path]:
    """Give the folder of the source's parts; one made for this job is removed when all ranks are done."""
    from neural_brane.files.graphs.parts import MANIFEST, write_shards

    if (Path(work.source) / MANIFEST).is_file():
        yield Path(work.source)
        return
    # The name holds a digest of the source and its files, so that old parts are not reused.
    states = []
    for path in work.reading.files(work.source).values():
        found = os.stat(path) if path is not None and os.path.isfile(path) else None
        states.append(None if found is None else (found.st_size, found.st_mtime_ns))
    digest = hashlib.sha256(repr((work.source, work.reading, states)).encode()).hexdigest()[:8]
    folder = work.output.with_name(f".{work.output.name}.shards-{digest}")
    key = f"neural-brane/parts on {socket.gethostname()}"
    makes = place.store.compare_set(f"{key}, made by", "", str(place.rank)) == str(place.rank).encode()
    if makes:
        if not (folder / MANIFEST).is_file():
            shutil.rmtree(folder, ignore_errors=True)  # left by a job that was killed
            graph = work.reading.read(work.source)
            with counting(f"{graph.name} in parts") as report:
                write_shards(graph, folder, min(PARTS, len(graph)), report=report)
        place.store.set(key, "made")
    place.store.wait([key], LONG)
    yield folder
    place.wait_for_all()
    if makes:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ending_together(place: Place) -> Iterator[None]:
    """If the block fails, let one rank print why; a rank that fails because another is gone ends silently."""
    from neural_brane.distributed.launch import forgo_restarts, has_said, is_consequence, is_first, wait_until_said

    try:
        yield
    except KeyboardInterrupt as stop:  # the launcher says what becomes of the job
        raise typer.Exit(128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)) from None
    except Exception as error:
        if is_consequence(error):
            raise typer.Exit(1) from None
        if is_first(place.store, place.rank):
            LOG.error(printable(f"{type(error).__name__}: {error}"))
            if isinstance(error, (BraneError, OSError, MemoryError)):
                echo(f"error: {error}", err=True)
            else:
                traceback.print_exception(error)
            sys.stderr.flush()
            has_said(place.store)
        else:
            wait_until_said(place.store)
        forgo_restarts()
        raise typer.Exit(2) from None
