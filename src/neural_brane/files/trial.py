"""Read a file in a process of its own first, because reading it here could end this one.

A damaged Parquet, Arrow or HDF5 file can end the process that reads it, which no `except` can stop: Polars and HDF5
believe the sizes that the file claims. So this module is a program as well, which reads such a file from standard input
and prints why it cannot be read. As a program it imports nothing of ours, so that it starts at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import IO

ENDS = {"Parquet": b"PAR1", "Arrow": b"ARROW1"}  # an Arrow stream may end anywhere
LONGEST = 200  # characters of a reason


def why_unreadable(kind: str, content: bytes | IO[bytes]) -> str | None:
    """Say why a file of a kind, "Parquet", "Arrow", "Arrow stream" or "HDF5", cannot be read; None where it can.

    A Python that stands inside another program cannot be started again: there the file is not tried.
    """
    from neural_brane.graph.memory import available

    if not _last_bytes(content).endswith(ENDS.get(kind, b"")):
        return "its end is missing"
    if kind == "Arrow stream" and isinstance(content, bytes) and int.from_bytes(content[4:8], "little") > len(content):
        return "its first part is cut off"  # whose size stands after the mark
    if not sys.executable:
        return None
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RUST_BACKTRACE": "0"}
    found: subprocess.CompletedProcess[bytes] = subprocess.run(  # noqa: S603 - this file as a program
        [sys.executable, "-P", str(Path(__file__)), kind, str(available() or 0)],
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


# The program.


def _read_frame(kind: str, data: BytesIO) -> None:
    import polars

    readers = {"Parquet": polars.read_parquet, "Arrow": polars.read_ipc, "Arrow stream": polars.read_ipc_stream}
    readers[kind](data)


def _read_hdf5(data: BytesIO) -> None:
    """Read every array and every attribute."""
    import h5py

    def read(_: str, item: object) -> None:
        dict(item.attrs)  # type: ignore[attr-defined]
        if isinstance(item, h5py.Dataset):
            item[()]

    with h5py.File(data, "r") as file:
        dict(file.attrs)
        file.visititems(read)


def _try_reading(kind: str, most: int) -> None:
    """Read a file of a kind; `most` is how many bytes of memory may be had, 0 where it is not known."""
    if most and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    data = BytesIO(sys.stdin.buffer.read())
    try:
        _read_hdf5(data) if kind == "HDF5" else _read_frame(kind, data)
    except BaseException as error:  # a panic of Polars is no Exception
        print((str(error).strip() or type(error).__name__).splitlines()[0])
        sys.exit(1)


if __name__ == "__main__":
    _try_reading(sys.argv[1], int(sys.argv[2]))
