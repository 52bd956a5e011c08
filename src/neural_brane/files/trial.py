"""Read a file in a process of its own first, because reading it here could end this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

from neural_brane.graph.memory import available

PROGRAM = Path(__file__).with_name("trial_reading.py")
ENDS = {"Parquet": b"PAR1", "Arrow": b"ARROW1"}  # an Arrow stream may end anywhere
LONGEST = 200  # characters of a reason


def why_unreadable(kind: str, content: bytes | IO[bytes]) -> str | None:
    """Why a file of a kind, "Parquet", "Arrow", "Arrow stream" or "HDF5", cannot be read; None where it can.

    A Python that stands inside another program cannot be started again: there the file is not tried.
    """
    if not _last_bytes(content).endswith(ENDS.get(kind, b"")):
        return "its end is missing"
    if kind == "Arrow stream" and isinstance(content, bytes) and int.from_bytes(content[4:8], "little") > len(content):
        return "its first part is cut off"  # whose size stands after the mark
    if not sys.executable:
        return None
    command = [sys.executable, "-P", str(PROGRAM), kind, str(available() or 0)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RUST_BACKTRACE": "0"}
    found: subprocess.CompletedProcess[bytes] = subprocess.run(  # noqa: S603 - a program of ours
        command,
        input=content if isinstance(content, bytes) else None,
        stdin=None if isinstance(content, bytes) else content,
        capture_output=True,
        env=environment,
        check=False,
    )
    if found.returncode == 0:
        return None
    said = [line for line in (found.stdout or found.stderr).decode("utf-8", "replace").splitlines() if line.strip()]
    return (said[0] if said else f"reading ends with status {found.returncode}")[:LONGEST]


def _last_bytes(content: bytes | IO[bytes], count: int = 8) -> bytes:
    if isinstance(content, bytes):
        return content[-count:]
    content.seek(max(content.seek(0, 2) - count, 0))
    last = content.read()
    content.seek(0)
    return last
