"""The store of finished trainings: a folder, so that no training is computed twice."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from neural_brane import datasets
from neural_brane.errors import BraneError
from neural_brane.io.atomic import atomic
from neural_brane.trainings.fingerprint import fingerprint
from neural_brane.trainings.training import Record, Training, key


@cache
def dataset_digest(dataset: str) -> str:
    """The digest of a dataset by its name."""
    return datasets.load(dataset).digest()


class Store:
    """A folder of finished trainings, one small JSON file each.

    A file is found by what decides its training's result: the method's name, its parameters, the seed, the data, the
    scores wanted, and the method's fingerprint. Where one of them has changed, the training counts as not finished.

    digest: gives a dataset's digest by its name. fingerprint: gives a method's fingerprint by its name and parameters.
    `tune` replaces the first, as its graphs may come from files; tests replace both.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        digest: Callable[[str], str] = dataset_digest,
        fingerprint: Callable[[str, dict[str, Any]], str] = fingerprint,
    ):
        self.folder = Path(folder)
        self._digest = digest
        self._fingerprint = fingerprint

    def path(self, training: Training) -> Path:
        """The file of a training: a name that can be read, and sixteen digits that stand for the rest."""
        name = re.sub(r"[^\w.+-]", "_", f"{training.dataset}-{training.method}-{training.seed}")
        return self.folder / f"{name}-{key(self._identity(training))}.json"

    def get(self, training: Training) -> Record | None:
        """The record of a finished training, or None."""
        path = self.path(training)
        if not path.exists():
            return None
        try:
            record: Record = json.loads(path.read_text(encoding="utf-8"))["record"]
        except (ValueError, KeyError, TypeError) as error:
            raise BraneError(
                f"{path}: not the record of a finished training ({error}); remove the file, and it is computed again"
            ) from None
        return record

    def put(self, training: Training, record: Record) -> None:
        """Keep the record of a finished training; its file appears whole or not at all."""
        content = {"training": self._identity(training), "record": record}
        with atomic(self.path(training)) as draft:
            draft.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")

    def distinct(self, trainings: Iterable[Training]) -> list[Training]:
        """The trainings without repetitions; one that spells out a default is the same as one that does not."""
        return list({self.path(one): one for one in trainings}.values())

    def missing(self, trainings: Iterable[Training]) -> list[Training]:
        """The distinct trainings that are not finished."""
        return [one for one in self.distinct(trainings) if self.get(one) is None]

    def fingerprint(self, training: Training) -> str:
        """The fingerprint of a training's method: a part of what its record is found by."""
        return self._fingerprint(training.method, training.deciding_parameters())

    def _identity(self, training: Training) -> Record:
        return training.identity(self._digest(training.dataset), self.fingerprint(training))
