"""`brane distributed embed`: train in several processes, on one machine or many."""

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
from typer import Argument

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, TrainingOptions, bundled
from neural_brane.cli.terminal import LOG, Stopped, counting, echo, echo_and_log, log_to, reporting
from neural_brane.errors import BraneError, CheckpointError, EmbeddingError, ParameterError, printable

if TYPE_CHECKING:
    from neural_brane.distributed.launch import Job

# A checkpoint is valid only for the same shards, so their number must not depend on the number of ranks.
SHARDS = 16
LONG = timedelta(days=30)  # longest time that the ranks of a host wait for the shards


class Work(NamedTuple):
    """A training by ranks: its graph, output and parameters, and the options of `embed_shards`."""

    source: str
    reading: Reading
    output: Path
    parameters: dict[str, Any]
    sharing: dict[str, Any]


@bundled
def embed(
    source: Annotated[str, Argument(metavar="SHARDS", help="Folder of 'brane shard', or a graph.")],
    reading: Reading,
    training: TrainingOptions,
    output: Annotated[Path, o.option("path", "File or folder to write.", "--output", "-o")],
    ranks: Annotated[int | None, o.option("whole", "Processes to start here.")] = None,
    checkpoint_every: Annotated[int, o.option("whole", "Save every N steps.")] = 100,
    metrics: Annotated[Path | None, o.option("path", "Write metrics: .jsonl or a folder.")] = None,
    parts_format: Annotated[Literal["npy", "parquet"], o.option("name", "npy or parquet.")] = "npy",
    by_range: Annotated[bool, o.flag("--by-range", "Divide the graph among the ranks.")] = False,
    log: o.Log = None,
) -> None:
    r"""Train Neural-Brane in several processes, on one machine or many.

    On one machine, --ranks starts the processes. On several, torchrun starts
    them; --checkpoint and -o are then on a disk that all machines share.
    With --by-range, the graph may be larger than the memory of a machine.

    \b
    brane distributed embed stdlib --ranks 2 -o vectors.npz
    torchrun --nproc-per-node 8 -m neural_brane distributed embed shards -o out
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
        check_writable(output, EmbeddingError, folder=True)
        check_replaceable(output)
    parameters = training.parameters(NeuralBrane)
    NeuralBrane(**parameters).parameters_in_force()
    if parameters.get("checkpoint"):
        check_writable(parameters["checkpoint"], CheckpointError, folder=True)
    require_packages()
    if not is_launched():
        start_ranks(ranks, parameters.get("checkpoint"))
        return
    if ranks is not None and AGENT not in os.environ:
        raise ParameterError(f"--ranks {ranks}: torchrun has already started the ranks; leave --ranks out")
    sharing = {
        "checkpoint": parameters.pop("checkpoint", None),
        "checkpoint_every": checkpoint_every,
        "metrics": metrics,
        "parts_format": parts_format,
        "by_range": by_range,
    }
    train_as_rank(Work(source, reading, output, parameters, sharing), log, start)


def start_ranks(ranks: int | None, checkpoint: str | None) -> None:
    """Start ranks of this command on this machine, and exit with their exit code."""
    from neural_brane.distributed.launch import start

    if ranks is None:
        raise ParameterError(
            "no ranks; give --ranks N to start N processes on this machine, or start the command by "
            "'torchrun --nproc-per-node N -m neural_brane distributed embed …'"
        )
    try:
        code = start(ranks, sys.argv[1:])
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    if code > 128 and checkpoint:
        raise Stopped(code - 128, f"stopped; the same command resumes from {checkpoint}:", ())
    if code > 128:
        raise Stopped(code - 128, "stopped; nothing was saved")
    if code:
        raise typer.Exit(code)


def train_as_rank(work: Work, log: Path | None, start: float) -> None:
    """Train as one rank of the job that started this process."""
    from neural_brane.distributed.embedding import embed_shards
    from neural_brane.distributed.launch import advice, count, join
    from neural_brane.files.graphs.shards import open_shards
    from neural_brane.files.vectors.formats import merge_parts
    from neural_brane.methods.training import resolve

    output = work.output
    parts = output.with_name(f".{output.name}.parts") if output.suffix else output
    with (
        join(resolve(work.parameters.pop("device", "cpu"))) as job,
        ending_together(job),
        sharded(work, job) as folder,
    ):
        first = job.rank == 0
        if first:
            log_to(log)
            if warning := advice():
                echo_and_log(f"note: {warning}")
        graph = open_shards(folder).manifest
        title = f"{graph.name}: {graph.nodes:,} nodes, {graph.edges:,} edges, on {count(job.ranks)}"
        with reporting(title) if first else nullcontext(None) as report:
            embed_shards(
                folder, parts, job=job, progress=report, print_line=echo_and_log, **work.sharing, **work.parameters
            )
        if first:
            if parts != output:
                merge_parts(parts, output)
                shutil.rmtree(parts, ignore_errors=True)
            echo(f"wrote the vectors to {output} in {time.perf_counter() - start:.1f} s")


@contextmanager
def sharded(work: Work, job: Job) -> Iterator[Path]:
    """Yield a folder with the shards of the source.

    If the source is not such a folder, one rank of each host writes the shards beside the output, and removes them
    when all ranks are done.
    """
    from neural_brane.files.graphs.shards import MANIFEST, write_shards

    if (Path(work.source) / MANIFEST).is_file():
        yield Path(work.source)
        return
    # The name contains a digest of the source and its files, so that shards of an older source are not reused.
    states = []
    for path in work.reading.files(work.source).values():
        state = os.stat(path) if path is not None and os.path.isfile(path) else None
        states.append(None if state is None else (state.st_size, state.st_mtime_ns))
    digest = hashlib.sha256(repr((work.source, work.reading, states)).encode()).hexdigest()[:8]
    folder = work.output.with_name(f".{work.output.name}.shards-{digest}")
    key = f"neural-brane/shards on {socket.gethostname()}"
    is_writer = job.store.compare_set(f"{key}, written by", "", str(job.rank)) == str(job.rank).encode()
    if is_writer:
        if not (folder / MANIFEST).is_file():
            shutil.rmtree(folder, ignore_errors=True)  # an incomplete folder of a job that was killed
            graph = work.reading.read(work.source)
            with counting(f"shards of {graph.name}") as report:
                write_shards(graph, folder, min(SHARDS, len(graph)), report=report)
        job.store.set(key, "written")
    job.store.wait([key], LONG)
    yield folder
    job.wait_for_all()
    if is_writer:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ending_together(job: Job) -> Iterator[None]:
    """If the block fails, let one rank print why; a rank that fails because another one ended stays silent."""
    from neural_brane.distributed.launch import (
        forgo_restarts,
        is_consequence,
        is_first,
        mark_printed,
        wait_until_printed,
    )

    try:
        yield
    except KeyboardInterrupt as stop:  # the launcher prints how to resume
        raise typer.Exit(128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)) from None
    except Exception as error:
        if is_consequence(error):
            raise typer.Exit(1) from None
        if is_first(job.store, job.rank):
            LOG.error(printable(f"{type(error).__name__}: {error}"))
            if isinstance(error, (BraneError, OSError, MemoryError, Warning)):
                echo(f"error: {error}", err=True)
            else:
                traceback.print_exception(error)
            sys.stderr.flush()
            mark_printed(job.store)
        else:
            wait_until_printed(job.store)
        forgo_restarts()
        raise typer.Exit(2) from None
