"""Tables whose format has types of its own: Parquet, Arrow and JSON lines."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.io.compressed import Unpacked
from neural_brane.io.text_blocks import Block
from neural_brane.io.trial import why_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import polars as pl


def read_parquet(file: Unpacked, data: bytes) -> pl.DataFrame:
    """Read the bytes of a Parquet file."""
    import polars as pl

    _try(file, "Parquet", data)
    return _guarded(file, "Parquet", lambda: pl.read_parquet(BytesIO(data)))


def read_arrow(file: Unpacked, data: bytes, *, stream: bool) -> pl.DataFrame:
    """Read the bytes of an Arrow file (also called Feather) or of an Arrow stream."""
    import polars as pl

    _try(file, "Arrow stream" if stream else "Arrow", data)
    if stream:
        return _guarded(file, "Arrow", lambda: pl.read_ipc_stream(BytesIO(data)))
    return _guarded(file, "Arrow", lambda: pl.read_ipc(BytesIO(data)))


def read_json_lines(file: Unpacked, blocks: Iterable[Block]) -> tuple[pl.DataFrame, int, np.ndarray]:
    """Read lines that are each a JSON object; the types follow from all of them. Return also their line numbers."""
    import polars as pl

    data = b"".join(block.data for block in blocks)
    lines = np.flatnonzero([bool(line.strip()) for line in data.split(b"\n")]) + 1
    try:
        frame = _guarded(file, "JSON lines", lambda: pl.read_ndjson(data, infer_schema_length=None))
    except GraphError:
        _check_json_lines(file, data)
        raise
    if len(frame) != len(lines):
        _check_json_lines(file, data)
        raise GraphError(f"{file.path}: {len(lines)} lines hold {len(frame)} objects; write one object per line")
    return frame, int(lines[0]), lines


def _check_json_lines(file: Unpacked, data: bytes) -> None:
    """Refuse the first line that is not a JSON object."""
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if not line.strip() or isinstance(json.loads(line), dict):
                continue
            found = "is no object"
        except (ValueError, RecursionError) as error:
            found = f"is no JSON ({error})"
        raise GraphError(
            f"{file.path}:{number}: the line {found}; write one object per line, as in "
            '{"source": "ann", "target": "bob"}'
        )


def _guarded(file: Unpacked, kind: str, read: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Turn what Polars raises for a damaged file, panics included, into an error that says what to do."""
    try:
        return read()
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise _unreadable(file, kind, reason) from None


def _try(file: Unpacked, kind: str, data: bytes) -> None:
    """Refuse bytes that Polars cannot read, or that would end the process which reads them."""
    if reason := why_unreadable(kind, data):
        raise _unreadable(file, kind, reason)


def _unreadable(file: Unpacked, kind: str, reason: str) -> GraphError:
    return GraphError(f"{file.path}: the {file.what} cannot be read as {kind} ({reason}); write the file again")
