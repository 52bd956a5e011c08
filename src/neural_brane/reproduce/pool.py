"""Cells computed side by side, each in a process of its own: its memory can be told, and its end hurts no other."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from neural_brane.errors import BraneError, ParameterError
from neural_brane.reproduce.cells import Store, compute
from neural_brane.reproduce.plan import Cell


@dataclass(frozen=True, slots=True)
class Finished:
    """A cell whose process has ended; `failure` says why where it was not computed."""

    cell: Cell
    failure: str = ""


def compute_all(cells: list[Cell], store: Store, *, jobs: int) -> Iterator[Finished]:
    """Compute cells and keep them, `jobs` at a time, yielding each as it ends."""
    if jobs < 1:
        raise ParameterError(f"jobs={jobs}: at least one is needed")
    waiting, running = list(reversed(cells)), dict[Any, _Job]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                job = _Job(waiting.pop(), store)
                running[job.process.sentinel] = job
            for sentinel in wait(list(running)):
                yield running.pop(sentinel).finish()
    finally:
        for job in running.values():
            job.process.kill()


class _Job:
    """A process that computes one cell."""

    def __init__(self, cell: Cell, store: Store):
        # Processes start afresh: one that is forked would inherit this one's memory and its threads' locks.
        context = get_context("spawn")
        self.cell = cell
        self.answer, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(cell, store.folder, sender))
        self.process.start()
        sender.close()

    def finish(self) -> Finished:
        """What became of the cell, once the process has ended."""
        self.process.join()
        code = self.process.exitcode or 0
        try:
            failure = self.answer.recv()
        except EOFError:  # the process was killed before it could say anything
            how = f"was killed by signal {-code} (too little memory?)" if code < 0 else f"ended with code {code}"
            failure = f"its process {how}"
        self.answer.close()
        return Finished(self.cell, failure)


def _work(cell: Cell, folder: Path, answer: Connection) -> None:
    """Compute a cell, keep it, and tell how it went."""
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        Store(folder).put(cell, compute(cell))
        answer.send("")
    except BraneError as error:
        answer.send(str(error))
    except Exception as error:
        answer.send(f"{type(error).__name__}: {error}")
        raise


def _follow_parent() -> None:
    """End this process when the one that started it has ended, even by SIGKILL."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
