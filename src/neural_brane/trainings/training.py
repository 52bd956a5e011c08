"""One training and how its vectors are scored: what decides the result, and nothing else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from neural_brane.errors import ParameterError
from neural_brane.methods import METHODS
from neural_brane.methods.base import Embedder

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
