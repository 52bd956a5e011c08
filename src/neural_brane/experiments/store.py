"""Describe a training, the code that computes it and the machine, and keep its result in a folder."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

from neural_brane.errors import BraneError, ParameterError
from neural_brane.files import datasets
from neural_brane.files.storage import atomic
from neural_brane.graph import AttributedGraph
from neural_brane.methods import METHODS
from neural_brane.methods.base import Embedder
from neural_brane.methods.identity import behaviour

# The machine that a measurement was made on, to be kept beside its results.

PACKAGES = ("neural-brane", "numpy", "scipy", "numba", "scikit-learn", "torch")


def describe_machine() -> dict[str, object]:
    """The processor, its cores and memory, and the versions of Python and of the packages that compute."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES if any(distributions(name=name))},
    }


def machine_name(machine: dict[str, Any]) -> str:
    """A machine in one line: processor, cores, memory, GPU."""
    gpu = f", {machine['gpu']}" if "gpu" in machine else ""
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB{gpu}"


def _processor(path: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name; one without a number stands for several, so its family and model are told too."""
    facts: dict[str, str] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in facts and not any(letter.isdigit() for letter in name):
        return f"{name} (family {facts['cpu family']}, model {facts['model']})"
    return name


# One training and how its vectors are scored: what decides the result, and nothing else.

Record = dict[str, Any]  # what JSON can hold


@dataclass(frozen=True, slots=True)
class Training:
    """A method with its parameters and seed, on a dataset, and the scores that are wanted of its vectors."""

    method: str
    parameters: dict[str, Any]  # those that are set, without the seed; the others have the method's defaults
    dataset: str
    seed: int
    scoring: Record  # see `score`

    def model(self, threads: int | None = 1) -> Embedder:
        """The method, ready to be trained, on `threads` unless its parameters say how many."""
        return METHODS[self.method](**{"threads": threads} | self.parameters | {"seed": self.seed})

    def deciding_parameters(self) -> Record:
        """The parameters in force that decide the vectors, besides the seed, as JSON holds them.

        Where the method refuses its parameters, they are those that are set: the training then fails and says why.
        """
        try:
            found = self.model().deciding_parameters()
        except ParameterError:
            found = self.parameters
        parameters: Record = json.loads(json.dumps(found, default=str))
        return parameters

    def identity(self, digest: str, fingerprint: str) -> Record:
        """All that decides the result, given the data's digest and the method's fingerprint."""
        return {
            "method": self.method,
            "parameters": self.deciding_parameters(),
            "seed": self.seed,
            "data": digest,
            "scoring": json.loads(json.dumps(self.scoring)),
            "fingerprint": fingerprint,
        }


def key(identity: Record) -> str:
    """Sixteen hexadecimal digits that stand for an identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def fingerprint(method: str, parameters: dict[str, Any]) -> str:
    """Sixteen hexadecimal digits of what a method computes, or "" where it cannot be tried here; see `behaviour`."""
    return behaviour(METHODS[method], parameters).digest


# The store of finished trainings: a folder, so that no training is computed twice.


@cache
def dataset_digest(dataset: str) -> str:
    """The digest of a dataset by its name."""
    return datasets.load(dataset).digest()


def check_names(names: Iterable[str], known: Sequence[str], what: str) -> None:
    """Refuse a name that is none of those known."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean '{close[0]}'?)" if close else ""
            raise ParameterError(f"there is no {what} '{name}'{hint}; choose from {', '.join(dict.fromkeys(known))}")


class Store:
    """A folder of finished trainings, one small JSON file each.

    A file is found by what decides its training's result: the method's name, its parameters, the seed, the data, the
    scores wanted, and the method's fingerprint. Where one of them has changed, the training counts as not finished.

    graph: what all trainings learn from, whatever their dataset is called; without it each loads its dataset.
    digest: gives a dataset's digest by its name. fingerprint: gives a method's fingerprint by its name and parameters.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        graph: AttributedGraph | None = None,
        digest: Callable[[str], str] = dataset_digest,
        fingerprint: Callable[[str, dict[str, Any]], str] = fingerprint,
    ):
        self.folder, self.graph = Path(folder), graph
        own = "" if graph is None else graph.digest()
        self._digest = digest if graph is None else lambda dataset: own
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
