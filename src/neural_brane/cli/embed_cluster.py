"""`brane embed --cluster`: a training shared among ranks, joined or started."""

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
from typing import TYPE_CHECKING, Any

import typer

from neural_brane.cli.options import parse_settings
from neural_brane.cli.stopping import Stopped
from neural_brane.cli.tables import read
from neural_brane.cli.terminal import LOG, counting, echo, log_to, tell
from neural_brane.errors import BraneError, ParameterError, printable

if TYPE_CHECKING:
    from neural_brane.cli.embed import Job, Shared
    from neural_brane.distributed.launch import Job as Place


# A source that is not in parts yet is put in parts beside the output: once on each host, for as long as the job.

PARTS = 16  # not the number of ranks, which may be another when the job goes on: parts are a part of its identity
LONG = timedelta(days=30)  # that a rank waits for the one of its host that makes them


@contextmanager
def in_parts(job: Job, place: Place) -> Iterator[Path]:
    """The folder of a source's parts. What was made for this job is removed when all ranks have done with it."""
    from neural_brane.files.graphs.parts import MANIFEST

    source = Path(str(job.source))
    if (source / MANIFEST).is_file():
        yield source
        return
    folder, host = _beside(job), socket.gethostname()
    key = f"neural-brane/parts on {host}"
    makes = place.store.compare_set(f"{key}, made by", "", str(place.rank)) == str(place.rank).encode()
    if makes:
        if not (folder / MANIFEST).is_file():
            _make(job, folder)
        place.store.set(key, "made")
    place.store.wait([key], LONG)
    yield folder
    place.wait_for_all()
    if makes:
        shutil.rmtree(folder, ignore_errors=True)


def _make(job: Job, folder: Path) -> None:
    from neural_brane.files.graphs.parts import write_shards

    shutil.rmtree(folder, ignore_errors=True)  # of a job that was killed
    graph = read(str(job.source), job.tables, **job.reading)
    with counting(f"{graph.name} in parts") as report:
        write_shards(graph, folder, min(PARTS, len(graph)), report=report)


def _beside(job: Job) -> Path:
    """A folder beside the output whose name says from what its parts are made: those of another source do not pass."""
    from neural_brane.files import datasets

    files = {**datasets.source_files(str(job.source)), **job.reading, "nodes": job.tables.nodes}
    told = [job.source, job.reading, job.tables, *(_state(path) for path in files.values())]
    digest = hashlib.sha256(repr(told).encode()).hexdigest()[:8]
    output = Path(str(job.output))
    return output.with_name(f".{output.name}.shards-{digest}")


def _state(path: object) -> tuple[int, int] | None:
    """The size and the time of a file; None of what is none."""
    if not isinstance(path, (str, Path)) or not os.path.isfile(path):
        return None
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


# `brane embed --cluster`: a training shared among ranks, joined or started.


def embed_on_cluster(job: Job, shared: Shared, settings: list[str]) -> None:
    """Train as a rank of the job that has started this process, or start ranks that do."""
    from neural_brane.distributed.launch import AGENT, is_launched, require_packages
    from neural_brane.methods.neural_brane import NeuralBrane

    if job.source is None or job.output is None:
        raise ParameterError("--cluster needs a SOURCE and an --output, a folder or a file")
    _check_output(job.output)
    parameters = parse_settings(NeuralBrane, settings)
    NeuralBrane(**parameters).parameters_in_force()
    require_packages()
    if not is_launched():
        _start(job, shared, parameters)
        return
    if shared.ranks is not None and AGENT not in os.environ:
        raise ParameterError(f"--ranks {shared.ranks}: torchrun has started the ranks of this job; leave it out")
    _train(job, shared, parameters)


def _check_output(output: Path) -> None:
    """Refuse an output that cannot be written, before the work."""
    from neural_brane.errors import EmbeddingError
    from neural_brane.files.storage import check_writable
    from neural_brane.files.vectors.formats import VectorFile
    from neural_brane.files.vectors.parts import check_replaceable

    if output.suffix:
        VectorFile(output)
        return
    check_writable(output / "manifest.json", EmbeddingError)
    check_replaceable(output)


def _start(job: Job, shared: Shared, parameters: dict[str, Any]) -> None:
    """Start ranks on this machine with the words of this command, and end as they do."""
    from neural_brane.distributed.launch import start

    if shared.ranks is None:
        raise ParameterError(
            "--cluster needs ranks: give --ranks N for this machine, or start it by "
            "'torchrun --nproc-per-node N -m neural_brane embed …'"
        )
    kept = parameters.get("checkpoint")
    try:
        code = start(shared.ranks, sys.argv[1:])
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    if code > 128:
        where = f"{kept} keeps what was saved, and the same command goes on" if kept else "nothing was kept"
        raise Stopped(code - 128, f"stopped; {where}:" if kept else f"stopped; {where}", () if kept else None)
    if code:
        raise typer.Exit(code)


def _train(job: Job, shared: Shared, parameters: dict[str, Any]) -> None:
    """Train as a rank."""
    from neural_brane.cli.terminal import reporting
    from neural_brane.distributed.embedding import embed_shards
    from neural_brane.distributed.launch import advice, join
    from neural_brane.methods.training import resolve

    kept, parts = parameters.pop("checkpoint", None), _parts_of(Path(str(job.output)))
    with (
        join(resolve(parameters.pop("device", "cpu"))) as place,
        ending_together(place),
        in_parts(job, place) as folder,
    ):
        first = place.rank == 0
        if first:
            log_to(job.log)
            if told := advice():
                tell(f"note: {told}")
        with reporting(_title(folder, place.ranks)) if first else nullcontext(None) as report:
            embed_shards(
                folder,
                parts,
                job=place,
                checkpoint=kept,
                checkpoint_every=shared.checkpoint_every,
                metrics=shared.metrics,
                parts_format=shared.parts_format,
                by_range=shared.by_range,
                progress=report,
                tell=tell,
                **parameters,
            )
        if first:
            if parts != job.output:
                _merge(parts, Path(str(job.output)))
            echo(f"wrote the vectors to {job.output} in {time.perf_counter() - job.start:.1f} s")


def _parts_of(output: Path) -> Path:
    """The folder that ranks write their vectors to: OUTPUT, or one beside it where that is a file."""
    return output.with_name(f".{output.name}.parts") if output.suffix else output


def _merge(parts: Path, output: Path) -> None:
    """Write the vectors of a folder of parts as one file, and remove the parts."""
    from neural_brane.files.vectors.formats import merge_parts

    merge_parts(parts, output)
    shutil.rmtree(parts, ignore_errors=True)


def _title(folder: Path, ranks: int) -> str:
    """What is trained, and on how many ranks."""
    from neural_brane.distributed.launch import count
    from neural_brane.files.graphs.parts import open_shards

    graph = open_shards(folder).manifest
    return f"{graph.name}: {graph.nodes:,} nodes, {graph.edges:,} edges, on {count(ranks)}"


@contextmanager
def ending_together(place: Place) -> Iterator[None]:
    """Where the block fails on a rank, one rank says why, and none is started again.

    Where it fails because another rank is gone, it ends without a word: the launcher starts all of them again.
    """
    from neural_brane.distributed.launch import forgo_restarts, has_said, is_consequence, is_first, wait_until_said

    try:
        yield
    except KeyboardInterrupt as stop:  # the launcher tells what becomes of the job
        raise typer.Exit(128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)) from None
    except Exception as error:
        if is_consequence(error):
            raise typer.Exit(1) from None
        if is_first(place.store, place.rank):
            _say(error)
            has_said(place.store)
        else:
            wait_until_said(place.store)
        forgo_restarts()
        raise typer.Exit(2) from None


def _say(error: Exception) -> None:
    """Say what is wrong: in a line where it was foreseen, else in full."""
    LOG.error(printable(f"{type(error).__name__}: {error}"))
    if isinstance(error, (BraneError, OSError, MemoryError)):
        echo(f"error: {error}", err=True)
    else:
        traceback.print_exception(error)
    sys.stderr.flush()
