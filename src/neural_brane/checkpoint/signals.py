"""Signals that end a process wait until the step in progress is over, so that what is kept is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

# Ctrl-C, a request to end, and the terminal's end, which Windows does not know.
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Patience:
    """Holds back, while `busy`, whatever would stop a run: signals, and errors of the function that is told progress.

    Whoever does the work sets `busy` while it must not be cut short, and calls `release` when it may be. A second
    signal is not held back. A signal then does what it would have done: what was installed for it is called. Signals
    that the process ignores stay ignored; outside the main thread, where Python allows no handlers, none are held.
    """

    def __init__(self) -> None:
        self.busy = False
        self._signal: int | None = None
        self._error: BaseException | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            found = {number: signal.getsignal(number) for number in ENDING}
            self._before = {number: old for number, old in found.items() if old not in (signal.SIG_IGN, None)}
            self._install()
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()
        self.busy = False
        if self._signal is not None:
            signal.raise_signal(self._signal)
        if self._error is not None and error[1] is None:
            raise self._error

    @property
    def asked(self) -> bool:
        """Whether something wants the run to stop."""
        return self._signal is not None or self._error is not None

    def release(self) -> None:
        """Let happen what was held back."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._signal is not None:
            number, self._signal = self._signal, None
            self._restore()
            signal.raise_signal(number)
            self._install()  # whoever handled it wants the run to go on

    def patient(self, report: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same function of progress; what it raises in the middle of a step is held back."""

        def tell(progress: Any) -> None:
            if self._error is not None:
                return
            try:
                report(progress)
            except BaseException as error:
                if not self.busy:
                    raise
                self._error = error

        return tell

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first = self._signal is None
        self._signal = number
        if not (first and self.busy):
            self.busy = False
            self.release()

    def _install(self) -> None:
        for number in self._before:
            signal.signal(number, self._handle)

    def _restore(self) -> None:
        for number, old in self._before.items():
            signal.signal(number, old)
