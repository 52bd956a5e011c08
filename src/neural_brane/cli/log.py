"""The log of a run, `--log FILE`: its progress, its warnings and its error, each with the time."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from neural_brane.cli.console import echo
from neural_brane.errors import ParameterError, printable

LOG = logging.getLogger("neural_brane.cli")
LOG.setLevel(logging.INFO)
LOG.propagate = False
LOG.addHandler(logging.NullHandler())


class _File(logging.FileHandler):
    """A file that is added to; when it cannot be, the run goes on without it."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say once that the log ends here."""
        LOG.removeHandler(self)
        with suppress(OSError):
            self.close()
        echo(f"warning: {self.baseFilename} can no longer be written; the run goes on without a log", err=True)


def log_to(path: Path | None) -> None:
    """Add lines to a file from now on; None for no log."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _File(path, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ParameterError(f"--log {path}: cannot be written ({error.strerror}); choose another file") from None
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S%z"))
    LOG.addHandler(file)


def end_log() -> None:
    """Close the log, if there is one."""
    for handler in LOG.handlers[:]:
        if isinstance(handler, logging.FileHandler):
            LOG.removeHandler(handler)
            handler.close()


def tell(line: str) -> None:
    """Print a line on stderr and add it to the log."""
    echo(line, err=True)
    LOG.info(printable(line))


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning in a line and add it to the log; takes the place of `warnings.showwarning`."""
    echo(f"warning: {message}", err=True)
    LOG.warning(printable(message))
