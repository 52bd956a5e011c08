"""Files that appear whole or not at all, and whose path is checked before the work that fills them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from neural_brane.errors import BraneError


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what is written there becomes `path` if nothing fails.

    Missing folders are made. The temporary name keeps the suffix, by which many writers choose a format.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.stem}-{secrets.token_hex(4)}{target.suffix}")
    try:
        yield draft
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)


def check_target(path: str | Path, suffixes: Collection[str], expected: str, error: type[BraneError]) -> Path:
    """Return the path if a file with one of the suffixes can be written there, else raise `error`.

    Call it before the work whose result the file shall hold. `expected` lists the suffixes in the message.
    """
    path = Path(path)
    if path.suffix not in suffixes:
        raise error(f"{path}: cannot tell its format; name a file ending in {expected}")
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise error(f"{path}: '{folder}' is not a folder that can be written to; choose another")
    if path.is_dir():
        raise error(f"{path}: is a folder; name a file in it")
    return path
