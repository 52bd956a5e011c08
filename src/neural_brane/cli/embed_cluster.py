"""`brane embed --cluster`: a training shared among ranks, joined or started."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neural_brane.cli.console import echo
from neural_brane.cli.log import LOG, log_to, tell
from neural_brane.cli.parameters import parse_settings
from neural_brane.cli.parts_beside import in_parts
from neural_brane.cli.stopping import Stopped
from neural_brane.errors import BraneError, ParameterError, printable

if TYPE_CHECKING:
    from neural_brane.cli.embed import Job, Shared
    from neural_brane.cluster.launch import Job as Place


def embed_on_cluster(job: Job, shared: Shared, settings: list[str]) -> None:
    """Train as a rank of the job that has started this process, or start ranks that do."""
    from neural_brane.cluster.launch import AGENT, is_launched
    from neural_brane.cluster.packages import require_packages
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
    from neural_brane.io import VectorFile
    from neural_brane.io.atomic import check_writable
    from neural_brane.io.vector_parts.writing import check_replaceable

    if output.suffix:
        VectorFile(output)
        return
    check_writable(output / "manifest.json", EmbeddingError)
    check_replaceable(output)


def _start(job: Job, shared: Shared, parameters: dict[str, Any]) -> None:
    """Start ranks on this machine with the words of this command, and end as they do."""
    from neural_brane.cluster.launch import start

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
    from neural_brane.cli.progress import reporting
    from neural_brane.cluster import embed_shards
    from neural_brane.cluster.launch import advice, join
    from neural_brane.methods.devices import resolve

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
    from neural_brane.io.merging import merge_parts

    merge_parts(parts, output)
    shutil.rmtree(parts, ignore_errors=True)


def _title(folder: Path, ranks: int) -> str:
    """What is trained, and on how many ranks."""
    from neural_brane.cluster.launch import count
    from neural_brane.shards import open_shards

    graph = open_shards(folder).manifest
    return f"{graph.name}: {graph.nodes:,} nodes, {graph.edges:,} edges, on {count(ranks)}"


@contextmanager
def ending_together(place: Place) -> Iterator[None]:
    """Where the block fails on a rank, one rank says why, and none is started again.

    Where it fails because another rank is gone, it ends without a word: the launcher starts all of them again.
    """
    from neural_brane.cluster.ending import forgo_restarts, has_said, is_consequence, is_first, wait_until_said

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
