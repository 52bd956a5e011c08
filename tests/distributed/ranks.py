"""Run test programs as four processes, with groups of the first one, two and four of them."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

RANKS = 4
GROUPS = (1, 2, 4)
PATIENCE = 300.0  # seconds until ranks count as waiting for one another forever


def run_ranks(program: str, output: Path, patience: float = PATIENCE, ranks: int = RANKS) -> None:
    """Run a program of this folder as so many connected processes; they write their results to `output`."""
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, "-W", "error", str(Path(__file__).parent / program), f"{store}/store", str(output)]
        settings = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        logs = [(output / f"rank-{rank}.log").open("w+") for rank in range(ranks)]
        processes = [
            subprocess.Popen([*command, str(rank)], env=settings, stdout=log, stderr=log)
            for rank, log in enumerate(logs)
        ]
        try:
            _wait(processes, time.monotonic() + patience)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        texts = [log.seek(0) or log.read() for log in logs]
        for log in logs:
            log.close()
    failed = [text for process, text in zip(processes, texts, strict=True) if process.returncode]
    assert not failed, "\n".join(failed)


def _wait(processes: list[subprocess.Popen], until: float) -> None:
    """Wait until all processes have ended, or one has failed, since the others may wait for it forever."""
    while any(process.poll() is None for process in processes):
        if any(process.poll() for process in processes) or time.monotonic() > until:
            return
        time.sleep(0.05)


def each_group(main: Callable[[object, int, Path], None]) -> None:
    """Call main(exchange, ranks, output) for each group that this process belongs to; test programs use this."""
    from torch import distributed

    from neural_brane.distributed.exchange import Exchange

    store, output, rank = sys.argv[1:]
    limit = timedelta(seconds=PATIENCE)
    distributed.init_process_group(
        "gloo", store=distributed.FileStore(store, RANKS), rank=int(rank), world_size=RANKS, timeout=limit
    )
    for ranks, group in list(_groups(limit)):
        if int(rank) < ranks:
            main(Exchange(group), ranks, Path(output))
    distributed.barrier()
    distributed.destroy_process_group()


def _groups(limit: timedelta) -> Iterator[tuple[int, object]]:
    from torch import distributed

    for ranks in GROUPS:
        yield ranks, distributed.new_group(list(range(ranks)), timeout=limit)
