"""Vectors that stay in the folder of parts that a cluster wrote, and are searched there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.io.merging import merge_parts
from neural_brane.io.vector_parts import open_parts
from neural_brane.search import shown
from neural_brane.search.asking import nearest_nodes, similarities
from neural_brane.search.questions import find_rows

if TYPE_CHECKING:
    from neural_brane.search.index import Index


class EmbeddingParts:
    """The vectors of a folder of parts, asked like an `Embedding` and read block by block.

    Answers are those of the merged file, to the last bit. A search keeps one number per node and a few blocks of rows
    in memory; vectors and ids are never there as a whole.

    Parameters
    ----------
    folder
        As `brane embed --cluster -o FOLDER` or `brane convert FILE -o FOLDER --parts N` writes it.
    check
        Read all files once and compare them with their checksums. Without it a folder is open in milliseconds, and
        damage to vectors in .npy parts may go unnoticed; Parquet parts are compared before they are read.

    Attributes
    ----------
    vectors, ids
        Tables of rows and of ids, read where they are asked for: `vectors[5:9]`, `ids[[7, 3]]`.
    provenance
        What made the vectors.

    Examples
    --------
    >>> import tempfile
    >>> from neural_brane.io.vector_parts import write_parts
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_parts(folder, np.array(["a", "b", "c"]), np.array([[1, 0], [2, 0], [0, 1]], np.float32), parts=2)
    >>> e = EmbeddingParts(folder)
    >>> e.nearest("a", k=2), e["c"].tolist(), len(e), e.dim
    ([('b', 1.0), ('c', 0.0)], [0.0, 1.0], 3, 2)
    """

    def __init__(self, folder: str | Path, *, check: bool = True):
        self.parts = open_parts(folder)
        if check:
            self.parts.check()
        self.vectors, self.ids, self.provenance = self.parts.vectors, self.parts.ids, self.parts.provenance

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return self.parts.dim

    def __len__(self) -> int:
        return self.parts.nodes

    def __repr__(self) -> str:
        return shown.as_text(self.ids[:4], self.dim, self.provenance, nodes=len(self)).replace("(", "Parts(", 1)

    def __getitem__(self, nodes: Any) -> np.ndarray:
        """A node's vector by its id; of a list of ids, a table with a row for each."""
        single = isinstance(nodes, str) or np.ndim(nodes) == 0
        found = self.vectors[find_rows(self.ids, [nodes] if single else nodes)]
        return found[0] if single else found

    def similarity(self, one: Any, other: Any, *, matrix: bool = False, center: bool = False) -> Any:
        """The cosine of nodes or vectors, as `Embedding.similarity` gives it."""
        return similarities(self.vectors, self.ids, one, other, matrix=matrix, center=center)

    def nearest(self, target: Any, k: int = 10, *, center: bool = False) -> Any:
        """The `k` nodes whose vectors point most nearly the same way, as `Embedding.nearest` gives them."""
        return nearest_nodes(self.vectors, self.ids, target, k, center=center)

    def save(self, path: str | Path) -> None:
        """Merge the parts into one file, in the format that its suffix says, block by block as `brane convert` does."""
        merge_parts(self.parts.folder, path)

    def index(self, **options: Any) -> Index:
        """An index by faiss, as `Embedding.index` builds it: k-means sees a sample, and rows are added in blocks.

        The index itself holds all vectors and ids while it is built; one that is saved is opened by memory map.
        """
        from neural_brane.search.index import build_index

        return build_index(self.vectors, np.asarray(self.ids), self.provenance, **options)
