"""The file of a checkpoint: a safetensors file of `io.tensors`, with a checksum of every bit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import BraneError, CheckpointError
from neural_brane.io import tensors

AFRESH = "remove it to start afresh, or name another file"
CHECKPOINT = tensors.Kind(
    "checkpoint",
    "2",
    CheckpointError,
    mend=f"restore it from a copy, or {AFRESH}",
    outdated=f"finish it with the version that wrote it, or {AFRESH}",
)


def write(path: Path, about: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file that appears whole or not at all; `about` is anything that JSON can hold."""
    tensors.write(path, CHECKPOINT, about, arrays)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is told and the arrays; refused where the file is no checkpoint, or where a single bit is not as written."""
    return tensors.read(path, CHECKPOINT)


def read_about(path: Path) -> dict[str, Any]:
    """What is told, with the arrays left unread and so without a check of the sum; {} where it cannot be read."""
    return tensors.read_about(path, CHECKPOINT)


def damaged(path: Path, why: str) -> BraneError:
    """The error for a file that is not as it was written."""
    return CHECKPOINT.damaged(path, why)
