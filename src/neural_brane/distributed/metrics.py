"""Report the progress of a training on many ranks: one progress line, JSON lines, and files for TensorBoard.

Rank 0 writes for all. A line of the file is one JSON object::

    {"step": 40, "triplets": 160000, "loss": 0.41, "triplets_per_second": 81000.0, "ranks": 2, "restarts": 1,
     "seconds": {"sample": 0.1, "lookup": 0.2}}

Its loss is the mean over the steps since the line before, and so are its seconds, by phase of a step. A run that goes
on adds {"event": "resumed", …}. If a step appears twice, use the later line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from neural_brane.distributed.launch import count
from neural_brane.errors import ParameterError
from neural_brane.progress import Meter, Reporter

INTERVAL = 1.0  # seconds between two lines
FILES = (".jsonl", ".json")


class Sizes(NamedTuple):
    """Sizes of a training that goes to its last epoch."""

    batch: int  # triplets in a step of the whole job
    steps: int
    epochs: int
    nodes: int
    ranks: int


class Metrics:
    """Count steps, seconds by phase and losses, and tell them; ranks other than 0 only count.

    target: a file ending in .jsonl, or a folder that gets a file metrics.jsonl and TensorBoard's; None for neither.
    report: is told progress.
    """

    def __init__(
        self,
        target: str | Path | None,
        sizes: Sizes,
        *,
        rank: int,
        report: Reporter | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        tells = rank == 0
        self.batch, self.steps, epochs, nodes, self.ranks = sizes
        self.restarts = 0
        self._clock = clock
        self._meter = Meter(report if tells else None, self.steps * self.batch, "triplets", epochs=epochs, nodes=nodes)
        self._target = None if target is None or not tells else Path(target)
        self._file = None if self._target is None else _open(self._target)
        self._board: Any = None
        self._seconds: dict[str, float] = {}
        self._step = self._told = 0
        self._sum, self._told_at = 0.0, clock()

    def begin(self, step: int = 0, *, was: int | None = None) -> str | None:
        """Begin at a step. was: the ranks that had come so far, where a run goes on; returns the line that says so."""
        self._step = self._told = step
        self._meter.resume(step * self.batch)
        self._told_at = self._clock()
        if self._target is not None:
            self.restarts = 0 if was is None else _restarts(self._target) + 1
            self._board = _open_board(self._target, step)
        if was is None:
            return None
        self._write({"event": "resumed", "step": step, "ranks": self.ranks, "was": was, "restarts": self.restarts})
        return f"resumed at step {step:,} on {count(self.ranks)}" + (f" (was {was})" if was != self.ranks else "")

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the seconds of the block as those of a phase."""
        begun = self._clock()
        try:
            yield
        finally:
            self.add_seconds({name: self._clock() - begun})

    def add_seconds(self, seconds: Mapping[str, float]) -> None:
        """Count seconds by phase that were measured elsewhere."""
        for name, value in seconds.items():
            self._seconds[name] = self._seconds.get(name, 0.0) + value

    def advance(self, step: int, *, epoch: int, loss: float, mean: float | None = None, tell: bool = False) -> None:
        """Count one step as done.

        step: how many are done now. epoch: 1, 2, … loss: of the batch. mean: over the epoch so far, for the progress
        line. tell: write a line in any case, as where a checkpoint was saved.
        """
        self._meter.advance(self.batch * (step - self._step), epoch=epoch, loss=loss if mean is None else mean)
        self._sum += loss
        self._step = step
        now = self._clock()
        if self._file is not None and (tell or step == self.steps or now - self._told_at >= INTERVAL):
            self._tell(now)

    def close(self) -> None:
        """Write what is not yet written."""
        if self._file is not None:
            if self._step > self._told:
                self._tell(self._clock())
            self._file.close()
        if self._board is not None:
            self._board.close()
        self._file = self._board = None

    def _tell(self, now: float) -> None:
        steps = self._step - self._told
        line = {
            "step": self._step,
            "triplets": self._step * self.batch,
            "loss": self._sum / steps,
            "triplets_per_second": round(steps * self.batch / max(now - self._told_at, 1e-9), 1),
            "ranks": self.ranks,
            "restarts": self.restarts,
            "seconds": {name: round(value / steps, 6) for name, value in self._seconds.items()},
        }
        self._write(line)
        if self._board is not None:
            for name in ("loss", "triplets_per_second", "ranks", "restarts"):
                self._board.add_scalar(name, line[name], self._step)
            for name, value in self._seconds.items():
                self._board.add_scalar(f"seconds/{name}", value / steps, self._step)
        self._seconds.clear()
        self._sum, self._told, self._told_at = 0.0, self._step, now

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()


def metrics_file(target: str | Path) -> Path:
    """The file of JSON lines.

    >>> metrics_file("run.jsonl").as_posix(), metrics_file("runs").as_posix()
    ('run.jsonl', 'runs/metrics.jsonl')
    """
    path = Path(target)
    return path if path.suffix in FILES else path / "metrics.jsonl"


def read_lines(target: str | Path) -> list[dict[str, Any]]:
    """The lines of a file that are whole: the last of a job that was killed may be cut off."""
    path, lines = metrics_file(target), []
    for text in path.read_text().splitlines() if path.is_file() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def _open(target: Path) -> Any:
    """The file of JSON lines, open to be added to: unlike a result, it is of use before it is whole."""
    path = metrics_file(target)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        raise ParameterError(f"--metrics {target}: cannot be written ({error.strerror}); choose another file") from None
    end = file.seek(0, 2)
    file.seek(max(end - 1, 0))
    if file.read() not in (b"", b"\n"):  # the last line of a job that was killed
        file.write(b"\n")
    return file


def _open_board(target: Path, step: int) -> Any:
    """TensorBoard's writer, if there is a folder for it and it is installed; what it had of later steps is dropped."""
    if target.suffix in FILES:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(target), purge_step=step + 1)


def _restarts(target: Path) -> int:
    """Count how often the run was resumed so far."""
    return sum(line.get("event") == "resumed" for line in read_lines(target))
