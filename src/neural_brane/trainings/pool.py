"""A pool of processes, one for each call: so its peak memory can be measured, and its crash leaves the others alone."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from neural_brane.errors import BraneError, ParameterError

T = TypeVar("T")
OUT_OF_TIME = "took longer than the time it had"


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """A call that has ended: what it returned, or why it failed."""

    task: T
    result: Any = None
    failure: str = ""


def run(
    function: Callable[[T], Any], tasks: Sequence[T], *, jobs: int, isolated: bool = True, timeout: float | None = None
) -> Iterator[Ended[T]]:
    """Call `function` with each task, `jobs` at a time, and yield each call as it ends.

    A process is started for every call. A call that raises an error, or whose process is killed, is yielded with its
    failure, and the others go on. When the caller stops, by Ctrl-C for instance, processes that still run are killed;
    when the caller itself is killed, they end by themselves.

    isolated: False calls the function in this process if jobs is 1, which saves the time that a process takes to start.
    timeout: seconds that a process may take; one that takes longer fails with OUT_OF_TIME.
    """
    if jobs < 1:
        raise ParameterError(f"jobs={jobs}: at least one is needed")
    if jobs == 1 and not isolated:
        yield from (_call(function, task) for task in tasks)
        return
    waiting, running = list(reversed(tasks)), dict[Any, Process[T]]()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                process = Process(function, waiting.pop(), timeout)
                running[process.answer] = process
            for answer in wait(list(running)):
                yield running.pop(answer).end()
    finally:
        for process in running.values():
            process.kill()


def _call(function: Callable[[T], Any], task: T) -> Ended[T]:
    """Call the function in this process; an error that this package raises on purpose becomes its failure."""
    try:
        return Ended(task, function(task))
    except BraneError as error:
        return Ended(task, failure=str(error))


class Process(Generic[T]):
    """A process that makes one call and sends back its result or its failure."""

    def __init__(self, function: Callable[[T], Any], task: T, timeout: float | None = None):
        # Processes start afresh: a forked one would inherit this one's memory, and locks that its threads hold.
        context = get_context("spawn")
        self.task = task
        self.answer, sender = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(function, task, sender, timeout))
        self._process.start()
        sender.close()

    def end(self) -> Ended[T]:
        """Wait for the call to end; its result or its failure."""
        try:
            result, failure = self.answer.recv()
        except EOFError:  # the process ended before it could send anything
            self._process.join()
            result, failure = None, _why(self._process.exitcode or 0)
        self._process.join()
        self.answer.close()
        return Ended(self.task, result, failure)

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.join()


def _why(code: int) -> str:
    """Why a process ended before it could send anything, by its exit code."""
    if code == -signal.SIGALRM:
        return OUT_OF_TIME
    return "its process " + (
        f"was killed by signal {-code} (too little memory?)" if code < 0 else f"ended with code {code}"
    )


def _work(function: Callable[[T], Any], task: T, answer: Connection, timeout: float | None) -> None:
    """Make the call, in the process that was started for it, and send its result or its failure."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which then ends this process
    signal.setitimer(signal.ITIMER_REAL, timeout or 0)  # nobody handles this signal, so it ends the process
    threading.Thread(target=_follow_parent, daemon=True).start()
    try:
        ended = _call(function, task)
    except Exception as error:
        answer.send((None, f"{type(error).__name__}: {error}"))
        raise
    answer.send((ended.result, ended.failure))


def _follow_parent() -> None:
    """End this process when the one that started it has ended, even by SIGKILL."""
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
