"""The names of the files of a folder of vectors."""

from __future__ import annotations

from typing import Literal, get_args

FORMAT, VERSION = "neural-brane vectors", 1
Kind = Literal["npy", "parquet"]
KINDS = get_args(Kind)
LAYER_FILE = "layer.npz"
REPLACED = "manifest.old.json"  # the manifest of an older set, until the new one is complete
RECORDS = "part-*.json"
INTEGER, STRING = "integer", "string"  # what ids are


def part_files(part: int, kind: Kind) -> list[str]:
    """The files of a part; the ids are in the last.

    >>> part_files(3, "npy")
    ['part-00003.npy', 'part-00003.ids.parquet']
    """
    return [f"part-{part:05}.parquet"] if kind == "parquet" else [f"part-{part:05}.npy", f"part-{part:05}.ids.parquet"]


def record_file(part: int) -> str:
    """The file that tells of a part which is written, until the manifest does."""
    return f"part-{part:05}.json"
