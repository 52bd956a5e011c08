"""A source that is not in parts yet is put in parts beside the output: once on each host, for as long as the job."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from neural_brane.cli.progress import counting
from neural_brane.cli.tables import read

if TYPE_CHECKING:
    from neural_brane.cli.embed import Job
    from neural_brane.cluster.launch import Job as Place

PARTS = 16  # not the number of ranks, which may be another when the job goes on: parts are a part of its identity
LONG = timedelta(days=30)  # that a rank waits for the one of its host that makes them


@contextmanager
def in_parts(job: Job, place: Place) -> Iterator[Path]:
    """The folder of a source's parts. What was made for this job is removed when all ranks have done with it."""
    from neural_brane.shards.manifest import MANIFEST

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
    from neural_brane.shards import write_shards

    shutil.rmtree(folder, ignore_errors=True)  # of a job that was killed
    graph = read(str(job.source), job.tables, **job.reading)
    with counting(f"{graph.name} in parts") as report:
        write_shards(graph, folder, min(PARTS, len(graph)), report=report)


def _beside(job: Job) -> Path:
    """A folder beside the output whose name says from what its parts are made: those of another source do not pass."""
    from neural_brane import datasets

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
