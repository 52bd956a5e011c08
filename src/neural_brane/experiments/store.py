"""Describe a training, its code and its machine, and store its result in a folder."""

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

PACKAGES = ("neural-brane", "numpy", "scipy", "numba", "scikit-learn", "torch")


def describe_machine() -> dict[str, object]:
    """Return the processor, cores and memory of this machine, and the versions of Python and of PACKAGES."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES if any(distributions(name=name))},
    }


def machine_name(machine: dict[str, Any]) -> str:
    """Return a machine in one line: processor, cores, memory, GPU."""
    gpu = f", {machine['gpu']}" if "gpu" in machine else ""
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB{gpu}"


def _processor(path: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name, with family and model if the name has no number and is thus ambiguous."""
    facts: dict[str, str] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in facts and not any(letter.isdigit() for letter in name):
        return f"{name} (family {facts['cpu family']}, model {facts['model']})"
    return name


SCORES = 2  # version of the scores; raise it if the same options come to give other scores
Record = dict[str, Any]  # values that JSON can represent


@dataclass(frozen=True, slots=True)
class Training:
    """A method with its parameters and seed, a dataset, and the scores to compute."""

    method: str
    parameters: dict[str, Any]  # without the seed; parameters that are not set have the method's defaults
    dataset: str
    seed: int
    scoring: Record  # see `score`

    def model(self, threads: int | None = 1) -> Embedder:
        """Return the unfitted method; it uses `threads` unless its parameters set another number."""
        return METHODS[self.method](**{"threads": threads} | self.parameters | {"seed": self.seed})

    def deciding_parameters(self) -> Record:
        """Return the parameters that affect the vectors, except the seed, as JSON; invalid ones as they were set."""
        try:
            found = self.model().deciding_parameters()
        except ParameterError:
            found = self.parameters
        parameters: Record = json.loads(json.dumps(found, default=str))
        return parameters

    def identity(self, digest: str, fingerprint: str) -> Record:
        """Return everything that affects the result, including the data's digest and the method's fingerprint."""
        return {
            "method": self.method, "parameters": self.deciding_parameters(), "seed": self.seed, "data": digest,
            "scoring": json.loads(json.dumps(self.scoring)), "scores": SCORES, "fingerprint": fingerprint,
        }  # fmt: skip


def key(identity: Record) -> str:
    """Return 16 hexadecimal digits that identify an identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]


def fingerprint(method: str, parameters: dict[str, Any]) -> str:
    """Return 16 hexadecimal digits of a method's results, or "" if it cannot run here; see `behaviour`."""
    return behaviour(METHODS[method], parameters).digest


@cache
def dataset_digest(dataset: str) -> str:
    """Return the digest of a dataset by its name."""
    return datasets.load(dataset).digest()


def check_names(names: Iterable[str], known: Sequence[str], kind: str) -> None:
    """Raise an error if a name is unknown."""
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean '{close[0]}'?)" if close else ""
            raise ParameterError(f"there is no {kind} '{name}'{hint}; choose from {', '.join(dict.fromkeys(known))}")


class Store:
    """A folder of finished trainings, one small JSON file each.

    The name of a file contains a hash of everything that affects the training's result: the method, its parameters,
    the seed, the data, the scores, and the method's fingerprint. If one of them changes, the training is missing.

    graph: the graph of all trainings; with None, each training loads its dataset by name. digest: returns the digest
    of a dataset by its name. fingerprint: returns a method's fingerprint by its name and parameters.
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
        """Return the file of a training: a readable name and 16 digits of its hash."""
        name = re.sub(r"[^\w.+-]", "_", f"{training.dataset}-{training.method}-{training.seed}")
        return self.folder / f"{name}-{key(self._identity(training))}.json"

    def get(self, training: Training) -> Record | None:
        """Return the record of a finished training, or None."""
        path = self.path(training)
        if not path.exists():
            return None
        try:
            record: Record = json.loads(path.read_text(encoding="utf-8"))["record"]
        except (ValueError, KeyError, TypeError) as error:
            advice = "remove the file to compute it again"
            raise BraneError(f"{path}: not the record of a finished training ({error}); {advice}") from None
        return record

    def put(self, training: Training, record: Record) -> None:
        """Write the record of a finished training atomically."""
        content = {"training": self._identity(training), "record": record}
        with atomic(self.path(training)) as draft:
            draft.write_text(json.dumps(content, separators=(",", ":")) + "\n", encoding="utf-8")

    def distinct(self, trainings: Iterable[Training]) -> list[Training]:
        """Return the trainings without duplicates; setting a parameter to its default makes no difference."""
        return list({self.path(one): one for one in trainings}.values())

    def missing(self, trainings: Iterable[Training]) -> list[Training]:
        """Return the distinct trainings that are not finished."""
        return [one for one in self.distinct(trainings) if self.get(one) is None]

    def fingerprint(self, training: Training) -> str:
        """Return the fingerprint of a training's method, which is part of its file's hash."""
        return self._fingerprint(training.method, training.deciding_parameters())

    def _identity(self, training: Training) -> Record:
        return training.identity(self._digest(training.dataset), self.fingerprint(training))
