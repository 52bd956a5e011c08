"""The nearest nodes by cosine: `Exact` looks at every vector, an `Index` at few of them.

`Embedding.nearest` and `Embedding.index` are the usual way in; `EmbeddingParts` for vectors in a folder of parts.
"""

from neural_brane.search.exact import Exact, nearest_rows
from neural_brane.search.index import Index
from neural_brane.search.index_file import load_index
from neural_brane.search.parts import EmbeddingParts

__all__ = ["EmbeddingParts", "Exact", "Index", "load_index", "nearest_rows"]
