"""Find the nearest nodes by cosine, exactly or with an index that compares only a few vectors."""

from neural_brane.search.exact import Exact, nearest_rows
from neural_brane.search.index import EmbeddingParts, Index, load_index

__all__ = ["EmbeddingParts", "Exact", "Index", "load_index", "nearest_rows"]
