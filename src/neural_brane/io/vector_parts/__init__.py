"""Vectors as a folder of parts, each the vectors of a range of nodes, so that many processes can write them at once.

::

    manifest.json             written last: nodes, dim, the parts, bytes and CRC-32 of every file, the provenance
    part-00000.npy            a table of float32 that can be memory-mapped, and beside it
    part-00000.ids.parquet    a column `id` in the same order (and `made_from`, where it is known)
    part-00000.parquet        or, in place of these two, the columns of `neural_brane.io.vector_parquet`
    layer.npz                 the weight and bias of what scores pairs, where a method has learned it

Every process writes its own parts with a `PartWriter`; one of them calls `finish` when all are there. `open_parts`
opens the folder, from which rows and ids are read when they are asked for. Parts may be empty, and their number says
nothing about the memory that it takes to read them.
"""

from neural_brane.io.vector_parts.columns import StoredColumn, StoredRows
from neural_brane.io.vector_parts.reading import VectorParts, is_parts, open_parts
from neural_brane.io.vector_parts.whole import finite_blocks, read_whole, write_parts
from neural_brane.io.vector_parts.writing import PartWriter, finish

__all__ = [
    "PartWriter",
    "StoredColumn",
    "StoredRows",
    "VectorParts",
    "finish",
    "finite_blocks",
    "is_parts",
    "open_parts",
    "read_whole",
    "write_parts",
]
