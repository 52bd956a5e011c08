"""A folder of parts becomes one file, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.io.vector_parts import finite_blocks, open_parts
from neural_brane.io.vectors import VectorFile


def merge_parts(folder: str | Path, output: str | Path, *, tell: Callable[[int], object] | None = None) -> None:
    """Write the vectors of a folder of parts to one file, in the format that its suffix says.

    Vectors are never in memory as a whole, and ids only for .npz and .safetensors. The folder is compared with its
    checksums first, and stays. `tell` is called with the number of rows after each block.

    >>> import tempfile
    >>> from neural_brane.io.vector_parts import write_parts
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_parts(folder / "parts", np.array(["a", "b", "c"]), np.eye(3), parts=2)
    >>> merge_parts(folder / "parts", folder / "vectors.csv")
    >>> (folder / "vectors.csv").read_text().splitlines()[:2]
    ['id,d0,d1,d2', 'a,1.0,0.0,0.0']
    """
    file = VectorFile(output)
    parts = open_parts(folder)
    parts.check()
    write_blocks(file, Path(folder), parts, tell=tell)


def write_blocks(file: VectorFile, source: Path, found: Any, *, tell: Callable[[int], object] | None = None) -> None:
    """Write what `found` has, an embedding or a folder of parts that came from `source`, to a file.

    Ids that the format cannot hold, and vectors that the disk cannot, are refused first.
    """
    file.check_ids(found.ids)
    file.check_size(found.ids, found.dim)

    def blocks() -> Iterator[np.ndarray]:
        for block in finite_blocks(source, found.vectors):
            yield block
            if tell is not None:
                tell(len(block))

    known: dict[str, Any] = {"provenance": found.provenance, "layer": found.layer, "made_from": found.made_from}
    file.write(found.ids, blocks, dim=found.dim, **known)
