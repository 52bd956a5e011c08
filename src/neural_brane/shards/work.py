"""The unfinished work of a sharding: what has been done, of which sources, so that a second start goes on."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neural_brane.errors import ShardError
from neural_brane.io.atomic import atomic

FOLDER, STATE, VERSION = ".unfinished", "state.json", 1
ENDS = 1 << 20  # bytes of a file's beginning and of its end that its digest is made of
Facts = dict[str, Any]


def describe_source(path: Path) -> Facts:
    """What tells whether a file has changed: its size, when it was written, and a digest of its two ends."""
    about = path.stat()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(ENDS))
        file.seek(max(about.st_size - ENDS, 0))
        digest.update(file.read(ENDS))
    return {"size": about.st_size, "written": about.st_mtime_ns, "digest": digest.hexdigest()[:16]}


class Work:
    """The folder of unfinished work inside the folder that is made; `done` has the facts of every finished stage."""

    def __init__(self, folder: Path, sources: Sequence[Path], options: Facts) -> None:
        self.folder, self.home = folder, folder / FOLDER
        self.identity: Facts = {
            "version": VERSION,
            "options": {name: str(value) for name, value in options.items() if value is not None},
            "sources": {str(path.resolve()): describe_source(path) for path in sources},
        }
        self.done: Facts = {}
        if (self.home / STATE).exists():
            self._resume()
        else:
            shutil.rmtree(self.home, ignore_errors=True)
            self.home.mkdir(parents=True)
            self._write()

    def _resume(self) -> None:
        path = self.home / STATE
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            before, self.done = state["identity"], dict(state["done"])
        except (ValueError, KeyError, TypeError):
            raise ShardError(f"{path}: is damaged; remove {self.folder} and begin again") from None
        if before == self.identity:
            return
        for name, about in before.get("sources", {}).items():
            if self.identity["sources"].get(name, about) != about:
                raise ShardError(
                    f"{name}: has changed since {self.folder} was begun; remove {self.folder} and begin again"
                )
        raise ShardError(
            f"{self.folder}: was begun with {_spelled(before)}, not {_spelled(self.identity)}; "
            "give the same to go on, or remove the folder to begin again"
        )

    def finish(self, stage: str, facts: Facts) -> None:
        """Note that a stage is done."""
        self.done[stage] = facts
        self._write()

    def _write(self) -> None:
        with atomic(self.home / STATE) as draft:
            draft.write_text(json.dumps({"identity": self.identity, "done": self.done}), encoding="utf-8")

    def remove(self) -> None:
        """Remove the folder of unfinished work."""
        shutil.rmtree(self.home, ignore_errors=True)


def _spelled(identity: Facts) -> str:
    """The sources and options of a run in words."""
    options = [f"{name} {value}" for name, value in identity.get("options", {}).items()]
    return ", ".join([*(Path(name).name for name in identity.get("sources", {})), *options])
