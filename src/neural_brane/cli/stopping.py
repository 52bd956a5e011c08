"""How a command ends that is asked to: by Ctrl-C, by a request to end, or because its terminal is gone."""

from __future__ import annotations

import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

from neural_brane.cli.console import echo
from neural_brane.cli.log import LOG
from neural_brane.errors import printable

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

REQUESTS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
LONG = 5.0  # seconds of a run that it is a pity to lose
TYPED = "neural_brane.typed"  # the words of the command, among the notes of its context


class Stopped(KeyboardInterrupt):
    """A command is asked to end by the signal `number`; `message` says what becomes of its work.

    add: words to add to the command, for it to go on; None where it cannot.
    """

    def __init__(self, number: int, message: str = "stopped", add: tuple[str, ...] | None = None):
        super().__init__(message)
        self.number, self.message, self.add = number, message, add


@contextmanager
def requests_as_errors() -> Iterator[None]:
    """Raise `Stopped` where a signal asks to end, so that files are tidied up as they are after Ctrl-C."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.getsignal(number) for number in REQUESTS}
    for number, old in before.items():
        if old is not signal.SIG_IGN:  # as nohup asks for
            signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Stopped(number)


def leave(stop: KeyboardInterrupt, typed: list[str]) -> None:
    """Say what a stopped command leaves, where somebody can still read it, and end with the exit code of the signal.

    typed: the words after `brane`.
    """
    stopped = stop if isinstance(stop, Stopped) else Stopped(signal.SIGINT)
    command = "" if stopped.add is None else f"\n  {shlex.join(['brane', *typed, *stopped.add])}"
    LOG.error(printable(stopped.message + command, keep="\n"))
    echo(stopped.message + command, err=True)
    raise typer.Exit(128 + stopped.number) from None


@contextmanager
def telling_what_is_kept(model: Embedder, *, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Where the block is stopped, say whether its training is kept, and which command goes on."""
    begun = clock()
    try:
        yield
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        raise Stopped(number, *_what_is_kept(model, clock() - begun)) from None


def _what_is_kept(model: Embedder, seconds: float) -> tuple[str, tuple[str, ...] | None]:
    """What to say, and what to add to the command."""
    parameters = model.get_params(deep=False)
    path = parameters.get("checkpoint")
    if path is not None and Path(path).exists():
        return f"stopped; {path} keeps the training, and the same command goes on:", ()
    if path is not None:
        return f"stopped before anything could be kept in {path}; the same command starts afresh", None
    if "checkpoint" in parameters and seconds >= LONG:
        message = "stopped; nothing was kept. With a checkpoint, a training that is stopped goes on:"
        return message, ("--checkpoint", "run.checkpoint")
    return "stopped; nothing was kept", None
