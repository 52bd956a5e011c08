"""Try to read a file in a second process, because a damaged file could crash this one.

Polars and HDF5 trust the sizes in a file. A damaged Parquet, Arrow or HDF5 file can therefore crash the process that
reads it, and no `except` can prevent this. So this module is also a program: it reads such a file from standard input
and prints why it cannot be read. The program imports nothing from this package, so that it starts quickly.
"""

from __future__ import annotations

import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import IO

END_MARKS = {"Parquet": b"PAR1", "Arrow": b"ARROW1"}  # an Arrow stream has none
LONGEST = 200  # characters of a reason


def why_unreadable(kind: str, content: bytes | IO[bytes]) -> str | None:
    """Return why a file cannot be read, or None; where no second process can start, only its end is checked."""
    from neural_brane.graph.memory import available

    if not _last_bytes(content).endswith(END_MARKS.get(kind, b"")):
        return "its end is missing"
    if kind == "Arrow stream" and isinstance(content, bytes) and int.from_bytes(content[4:8], "little") > len(content):
        return "its first part is cut off"  # bytes 4 to 8 hold the size of that part
    if not sys.executable:
        return None
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "RUST_BACKTRACE": "0"}
    ended: subprocess.CompletedProcess[bytes] = subprocess.run(  # noqa: S603 - this file as a program
        [sys.executable, "-P", str(Path(__file__)), kind, str(available() or 0)],
        input=content if isinstance(content, bytes) else None,
        stdin=None if isinstance(content, bytes) else content,
        capture_output=True,
        env=environment,
        check=False,
    )
    if ended.returncode == 0:
        return None
    lines = [line for line in (ended.stdout or ended.stderr).decode("utf-8", "replace").splitlines() if line.strip()]
    return (lines[0] if lines else f"reading ends with status {ended.returncode}")[:LONGEST]


def _last_bytes(content: bytes | IO[bytes], count: int = 8) -> bytes:
    if isinstance(content, bytes):
        return content[-count:]
    content.seek(max(content.seek(0, 2) - count, 0))
    last = content.read()
    content.seek(0)
    return last


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


def _try_reading(kind: str, memory: int) -> None:
    """Read a file with at most `memory` bytes; 0 means that the limit is unknown."""
    if memory and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    data = BytesIO(sys.stdin.buffer.read())
    try:
        if kind == "HDF5":
            _read_hdf5(data)
        else:
            import polars

            read = {"Parquet": polars.read_parquet, "Arrow": polars.read_ipc, "Arrow stream": polars.read_ipc_stream}
            read[kind](data)
    except BaseException as error:  # a panic of Polars is not an Exception
        print((str(error).strip() or type(error).__name__).splitlines()[0])
        sys.exit(1)


if __name__ == "__main__":
    _try_reading(sys.argv[1], int(sys.argv[2]))
